/* SPDX-License-Identifier: MIT
 *
 * The report of the run, see tell.h: where GPU_LIMIT_REPORT wants it.
 */
#include "tell.h"

#include "clock.h"
#include "limit_books.h"
#include "limit_report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { REPORT_ARGUMENTS = 64 };

/* The command line as the ledger has it, or none. */
static unsigned tell_command(const struct gpulimit_header *header,
                             const char *arguments[REPORT_ARGUMENTS])
{
    unsigned count = 0;
    for (uint32_t at = 0; header && at < header->command_bytes && count < REPORT_ARGUMENTS;) {
        arguments[count++] = header->command + at;
        at += (uint32_t)strnlen(header->command + at, header->command_bytes - at) + 1;
    }
    return count;
}

static void tell_fill_head(struct report_head *head, const char *arguments[REPORT_ARGUMENTS])
{
    const struct gpulimit_header *header = region_header();
    *head = (struct report_head){
        .version = GPULIMIT_VERSION,
        .pid = getpid(),
        .uid = (uint32_t)getuid(),
        .state = "exited",
        .command = arguments,
        .command_count = tell_command(header, arguments),
        .limit_text = start_config()->limit_text,
        .counts_requests = limit_counts_requests(),
        .start_time_ns = header ? header->created_time_ns : 0,
        .end_time_ns = header ? atomic_load_explicit(&header->ended_time_ns, memory_order_relaxed)
                              : clock_ns(CLOCK_REALTIME),
    };
}

/* The figures of a device that the process has used. */
static bool tell_fill_device(unsigned device, struct report_device *report)
{
    const struct gpulimit_header *header = region_header();
    if (!start_knows_device(device))
        return false;
    struct books *books = tell_lock_books();
    if (!books)
        return false;
    limit_report(books, device,
                 header ? header->created_mono_ns : books->ledger.timelines[device].start_mono_ns,
                 report);
    books_unlock();
    return true;
}

/* Not inlined, likewise below: only one of the two texts is on the stack at a time. */
__attribute__((noinline)) static void tell_report_to_people(const struct report_head *head)
{
    struct text text;
    struct report_device device;
    report_tell_head(&text, "gpulimit: ", head);
    log_write_stderr(&text);
    for (unsigned number = 0; number < GPULIMIT_DEVICES; number++) {
        if (!tell_fill_device(number, &device))
            continue;
        report_tell(&text, "gpulimit:   ", head, &device);
        log_write_stderr(&text);
    }
    if (region_header()) {
        report_tell_next(&text, "gpulimit:   ", head);
        log_write_stderr(&text);
    }
}

/* Over its file size limit a process that writes is killed. */
static bool tell_may_write(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= REPORT_BYTES_MAX;
}

__attribute__((noinline)) static void tell_report_to_file(const struct report_head *head,
                                                          const char *path)
{
    struct text name;
    struct writer writer;
    struct report_device device;
    text_init(&name);
    log_add_path(&name, path);
    if (!tell_may_write())
        return;
    int file = open(text_string(&name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (file < 0)
        return;
    writer_begin(&writer, file, REPORT_BYTES_MAX);
    report_begin(&writer, head);
    for (unsigned number = 0; number < GPULIMIT_DEVICES; number++) {
        if (tell_fill_device(number, &device))
            report_add_device(&writer, &device);
    }
    report_end(&writer);
    (void)writer_end(&writer); /* a full disk costs the report */
    close(file);
}

/* A process that has used no device, a fork's child among them, has nothing to report. */
static bool tell_has_devices(void)
{
    bool has_any = false;
    for (unsigned device = 0; device < GPULIMIT_DEVICES; device++)
        has_any = has_any || start_knows_device(device);
    return has_any;
}

void tell_report(void)
{
    const struct config *config = start_config();
    const char *arguments[REPORT_ARGUMENTS];
    struct report_head head;
    if (!config || config->report[0] == '\0' || config->error.length > 0 || !tell_has_devices())
        return;
    int saved = errno;
    tell_fill_head(&head, arguments);
    if (strcmp(config->report, "stderr") == 0)
        tell_report_to_people(&head);
    else
        tell_report_to_file(&head, config->report);
    errno = saved;
}
