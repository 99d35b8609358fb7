/* SPDX-License-Identifier: MIT
 *
 * The frame of the report, from the outside in: process, device, request, limit, use.
 */
#include "limit_oom_parts.h"

#include "clock.h"
#include "limit_books.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *limit_oom_kind(uint32_t kind)
{
    static const char *const names[GPULIMIT_KINDS] = {
#define KIND(_name, _NAME, _text) [GPULIMIT_KIND_##_NAME] = #_name,
#include "gpulimit/tbl/kinds.def"
    };
    return kind < GPULIMIT_KINDS ? names[kind] : NULL;
}

static const char *const limit_oom_causes[] = {
    [LIMIT_OOM_LIMIT] = "limit",       [LIMIT_OOM_LARGER] = "limit_larger_than_total",
    [LIMIT_OOM_OVERHEAD] = "overhead", [LIMIT_OOM_DRIVER] = "driver",
    [LIMIT_OOM_CONFIG] = "config",
};

/* As the ledger's header has it: arguments, each ended by NUL, of which the last may be cut. */
static void limit_oom_add_command(struct writer *writer, const struct limit_oom *oom)
{
    const struct gpulimit_header *header = region_header();
    char argument[sizeof header->command + 1];
    writer_open_array(writer, "command");
    if (!header || header->command_bytes == 0)
        writer_add_text(writer, NULL, oom->refusal->command);
    for (size_t at = 0; header && at < header->command_bytes && at < sizeof header->command;) {
        size_t length = strnlen(header->command + at, sizeof header->command - at);
        memcpy(argument, header->command + at, length);
        argument[length] = '\0';
        writer_add_text(writer, NULL, argument);
        at += length + 1;
    }
    writer_close_array(writer);
}

static void limit_oom_add_process(struct writer *writer, const struct limit_oom *oom,
                                  uint64_t mono_ns)
{
    const struct gpulimit_header *header = region_header();
    struct utsname system;
    writer_add_text(writer, "schema", "gpulimit.oom/1");
    writer_add_time(writer, "time", clock_ns(CLOCK_REALTIME));
    writer_add_number(writer, "monotonic_ns", mono_ns);
    writer_add_text(writer, "library_version", GPULIMIT_VERSION);
    writer_add_text(writer, "host", uname(&system) == 0 ? system.nodename : NULL);
    writer_add_number(writer, "pid", (uint64_t)getpid());
    writer_add_number(writer, "ppid", (uint64_t)getppid());
    writer_add_number(writer, "uid", getuid());
    limit_oom_add_command(writer, oom);
    writer_add_text(writer, "cgroup", header && header->cgroup[0] != '\0' ? header->cgroup : NULL);
    writer_add_text(writer, "tag", oom->refusal->tag);
}

static void limit_oom_add_device(struct writer *writer, const struct limit_oom *oom)
{
    const struct refusal *refusal = oom->refusal;
    writer_open_object(writer, "gpu");
    writer_add_number(writer, "index", refusal->device);
    writer_add_text(writer, "uuid", start_uuid(refusal->device));
    writer_add_number(writer, "physical_total_bytes", refusal->card_total_bytes);
    if (refusal->knows_card_free)
        writer_add_number(writer, "physical_free_bytes", refusal->card_free_bytes);
    else
        writer_add_null(writer, "physical_free_bytes");
    writer_close_object(writer);
}

static void limit_oom_add_request(struct writer *writer, const struct limit_oom *oom,
                                  const struct limit_live *live)
{
    static const char *const words[] = {[LIMIT_ALLOCATION] = "allocation",
                                        [LIMIT_CONTEXT] = "context",
                                        [LIMIT_GREEN_CONTEXT] = "green_context",
                                        [LIMIT_CODE] = "code",
                                        [LIMIT_STREAM] = "stream",
                                        [LIMIT_SETTING] = "setting"};
    const struct refusal *refusal = oom->refusal;
    enum gpulimit_kind kind = oom->ticket->kind;
    writer_open_object(writer, "request");
    writer_add_number(writer, "bytes", refusal->requested_bytes);
    writer_add_number(writer, "rounded_bytes", refusal->need_bytes);
    writer_add_text(writer, "api", refusal->api);
    writer_add_text(writer, "what", words[refusal->what]);
    writer_add_text(writer, "kind",
                    refusal->what == LIMIT_ALLOCATION ? limit_oom_kind(kind) : NULL);
    writer_add_text(writer, "where", refusal->asked_by);
    writer_add_number(writer, "thread_id", (uint64_t)syscall(SYS_gettid));
    writer_add_text(writer, "thread_name", refusal->command);
    limit_oom_add_frames(writer, live->kept, refusal->site);
    writer_close_object(writer);
}

static void limit_oom_add_limit(struct writer *writer, const struct refusal *refusal)
{
    writer_open_object(writer, "limit");
    writer_add_number(writer, "bytes", refusal->limit_bytes);
    writer_add_text(writer, "source", "GPU_LIMIT_MB");
    writer_add_text(writer, "text", refusal->limit_text);
    writer_add_text(writer, "count", limit_counts_requests() ? "allocations" : "process");
    writer_close_object(writer);
}

static void limit_oom_add_usage(struct writer *writer, const struct limit_oom *oom,
                                const struct limit_live *live)
{
    writer_open_object(writer, "usage");
    writer_add_number(writer, "used_bytes", live->used_bytes);
    writer_add_number(writer, "peak_bytes", live->totals.peak_bytes);
    writer_add_number(writer, "overhead_bytes", live->overhead_bytes);
    writer_add_number(writer, "shortfall_bytes", limit_oom_shortfall(oom, live));
    writer_add_number(writer, "live_allocations", live->totals.live_allocations);
    writer_add_number(writer, "denials", live->totals.denials);
    writer_open_object(writer, "by_kind");
    for (unsigned kind = 1; kind < GPULIMIT_KINDS; kind++) {
        writer_open_object(writer, limit_oom_kind(kind));
        writer_add_number(writer, "bytes", live->totals.by_kind[kind].bytes);
        writer_add_number(writer, "count", live->totals.by_kind[kind].count);
        writer_close_object(writer);
    }
    writer_close_object(writer);
    writer_close_object(writer);
}

static bool limit_oom_fill(const struct report_file *file, const struct limit_oom *oom,
                           const struct limit_live *live)
{
    struct writer writer;
    uint64_t mono_ns = clock_ns(CLOCK_MONOTONIC);
    writer_begin(&writer, file->file, file->most_bytes);
    writer_open_object(&writer, NULL);
    limit_oom_add_process(&writer, oom, mono_ns);
    limit_oom_add_device(&writer, oom);
    writer_add_text(&writer, "cause", limit_oom_causes[limit_oom_cause(oom, live)]);
    limit_oom_add_limit(&writer, oom->refusal);
    limit_oom_add_usage(&writer, oom, live);
    limit_oom_add_request(&writer, oom, live);
    limit_oom_add_live(&writer, live, mono_ns);
    writer_add_bool(&writer, "truncated", limit_oom_is_full(&writer));
    limit_oom_add_events(&writer, live);
    limit_oom_add_neighbours(&writer, oom->refusal->neighbours);
    limit_oom_add_hints(&writer, oom, live);
    writer_close_object(&writer);
    return writer_end(&writer);
}

bool limit_oom_write(const struct limit_oom *oom, char path[REPORT_FILE_PATH])
{
    const struct config *config = start_config();
    struct report_file file;
    struct limit_live live;
    if (!report_file_begin(&file, config->report_dir, config->runtime_dir, oom->number))
        return false;
    limit_live_take(oom->refusal->device, &live);
    bool is_written = limit_oom_fill(&file, oom, &live);
    if (oom->number == OOM_FIRST) {
        report_file_remove(&file, OOM_LARGEST, oom->begun_ns);
        report_file_remove(&file, OOM_LATEST, oom->begun_ns);
    }
    memcpy(path, file.path, sizeof file.path);
    return report_file_end(&file, is_written);
}
