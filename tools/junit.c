/* SPDX-License-Identifier: MIT
 *
 * The outcome of a check as JUnit's XML, which servers of continuous integration show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check_print.h"
#include "memory.h"
#include "text.h"

/* Text that came from elsewhere: XML has no form for control characters, nor for U+FFFE and U+FFFF.
 */
static void junit_print_text(const char *text, FILE *out)
{
    static const struct {
        char byte;
        const char *escaped;
    } escapes[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&apos;"}};
    char *clean = text_clean(text, true);

    for (const char *at = clean; *at != '\0'; at++) {
        const char *escaped = NULL;

        for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); i++) {
            escaped = *at == escapes[i].byte ? escapes[i].escaped : escaped;
        }
        if (strncmp(at, "\xef\xbf\xbe", 3) == 0 || strncmp(at, "\xef\xbf\xbf", 3) == 0) {
            at += 2;
            escaped = "?";
        }
        if (escaped) {
            fputs(escaped, out);
        } else {
            putc(*at, out);
        }
    }
    free(clean);
}

static void junit_print_failure(const struct check_request *request,
                                const struct check_result *result, FILE *out)
{
    struct report_holders holders = check_get_holders(result);
    struct text text;

    check_explain(request, result, &text);
    fputs("    <failure message=\"", out);
    junit_print_text(text_string(&text), out);
    fputs("\">", out);
    text_init(&text);
    report_add_holders(&text, "", &holders);
    (void)text_string(&text); /* ends it */
    for (char *line = strtok(text.bytes, "\n"); line; line = strtok(NULL, "\n")) {
        junit_print_text(line, out);
        putc('\n', out);
    }
    fputs("</failure>\n", out);
}

static void junit_print(const struct check_request *request, const struct check *check, FILE *out)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"gpulimit\" tests=\"%zu\" failures=\"%zu\">\n",
            check->count, check->fails);
    for (size_t i = 0; i < check->count; i++) {
        const struct check_result *result = &check->results[i];

        fprintf(out, "  <testcase classname=\"gpulimit.check\" name=\"GPU %u %s\"%s>\n",
                result->device->gpu_index, result->row->name, result->is_ok ? "/" : "");
        if (!result->is_ok) {
            junit_print_failure(request, result, out);
            fputs("  </testcase>\n", out);
        }
    }
    fputs("</testsuite>\n", out);
}

bool check_write_junit(const struct check_request *request, const struct check *check)
{
    char *path = memory_print("%s.%d.tmp", request->junit_path, (int)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = file >= 0 ? fdopen(file, "w") : NULL;
    bool is_written = false;
    int reason;

    if (out) {
        junit_print(request, check, out);
        is_written = !ferror(out);
        is_written = fclose(out) == 0 && is_written;
        is_written = is_written && rename(path, request->junit_path) == 0;
    }
    reason = errno;
    if (file >= 0 && !is_written) {
        unlink(path);
    }
    free(path);
    errno = reason;
    return is_written;
}
