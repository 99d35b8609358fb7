/* SPDX-License-Identifier: MIT
 *
 * What went wrong while looking, kept for the end: one line each on stderr, and warnings[] in JSON.
 */
#include "warnings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpulimit/reader.h"
#include "memory.h"
#include "text.h"

void warnings_add(struct warnings *warnings, const char *code, const char *path, const char *format,
                  ...)
{
    struct warning *warning;
    va_list arguments;
    char *message;
    int length;

    va_start(arguments, format);
    length = vasprintf(&message, format, arguments);
    va_end(arguments);
    memory_check(length < 0 ? NULL : message);
    warnings->list = memory_grow(warnings->list, warnings->count, sizeof(*warnings->list));
    warning = &warnings->list[warnings->count++];
    warning->code = code;
    warning->message = message;
    warning->path = path ? memory_check(strdup(path)) : NULL;
}

static bool warnings_is_forbidden(const struct warning *warning)
{
    return strcmp(warning->code, gpulimit_reader_status_name(GPULIMIT_READER_FORBIDDEN)) == 0;
}

static void warnings_print_one(const struct warning *warning)
{
    char *message = text_clean(warning->message, false);
    char *path = text_clean(warning->path ? warning->path : "", false);

    fprintf(stderr, "gpulimit-stat: %s%s%s\n", path, path[0] != '\0' ? " " : "", message);
    free(message);
    free(path);
}

void warnings_print(const struct warnings *warnings)
{
    const struct warning *forbidden = NULL;
    size_t forbidden_count = 0;

    for (size_t i = 0; i < warnings->count; i++) {
        if (warnings_is_forbidden(&warnings->list[i])) {
            forbidden = &warnings->list[i];
            forbidden_count++;
        } else {
            warnings_print_one(&warnings->list[i]);
        }
    }
    if (forbidden_count == 1) {
        warnings_print_one(forbidden);
    } else if (forbidden_count > 1) {
        fprintf(stderr, "gpulimit-stat: %zu ledgers may not be read\n", forbidden_count);
    }
}

void warnings_drop(struct warnings *warnings)
{
    for (size_t i = 0; i < warnings->count; i++) {
        free(warnings->list[i].message);
        free(warnings->list[i].path);
    }
    free(warnings->list);
    *warnings = (struct warnings){0};
}
