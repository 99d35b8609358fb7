/* SPDX-License-Identifier: MIT
 *
 * The values of gpulimit-stat's options: numbers, lists and choices, read strictly.
 */
#include "options_values.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "users.h"

void values_complain(const char *format, ...)
{
    va_list arguments;

    fputs("gpulimit-stat: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs("\nTry 'gpulimit-stat --help'.\n", stderr);
}

void values_complain_option(const char *word, int letter)
{
    if (letter > 0 && letter < 256) {
        values_complain("unknown option '-%c'", letter);
    } else {
        values_complain("unknown option, or one that takes no value: '%s'", word);
    }
}

bool values_is_number(const char *word)
{
    return (word[0] >= '0' && word[0] <= '9') || word[0] == '.';
}

/* Takes the next item off a list; NULL at its end. The item is for the caller to keep. */
static char *values_take_item(const char **list)
{
    size_t length = strcspn(*list, ",");
    char *item = memory_check(strndup(*list, length));

    *list += length + ((*list)[length] == ',');
    return item;
}

static bool values_read_number(const char *word, uint64_t most, uint64_t *number)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(word, &end, 10);
    if (word[0] < '0' || word[0] > '9' || *end != '\0' || errno != 0 || value > most) {
        return false;
    }
    *number = value;
    return true;
}

bool values_add_pids(const char *list, struct view_filter *filter)
{
    int32_t *pids = NULL;

    do {
        char *item = values_take_item(&list);
        uint64_t pid;

        if (!values_read_number(item, INT32_MAX, &pid) || pid == 0) {
            values_complain("'%s' is not a process id (example: -p 4121,4122)", item);
            free(item);
            return false;
        }
        free(item);
        pids = memory_grow((void *)(uintptr_t)filter->pids, filter->pid_count, sizeof(*pids));
        pids[filter->pid_count++] = (int32_t)pid;
        filter->pids = pids;
    } while (*list != '\0');
    return true;
}

bool values_add_users(const char *list, struct view_filter *filter)
{
    uint32_t *uids = NULL;

    do {
        char *item = values_take_item(&list);
        uint32_t uid;

        if (!users_find(item, &uid)) {
            values_complain("there is no user '%s'", item);
            free(item);
            return false;
        }
        free(item);
        uids = memory_grow((void *)(uintptr_t)filter->uids, filter->uid_count, sizeof(*uids));
        uids[filter->uid_count++] = uid;
        filter->uids = uids;
    } while (*list != '\0');
    return true;
}

bool values_add_gpus(const char *list, struct view_filter *filter)
{
    const char **gpus = NULL;

    do {
        char *item = values_take_item(&list);

        if (item[0] == '\0') {
            values_complain("an empty name is no GPU (example: -g 0,1 or -g GPU-5a1c)");
            free(item);
            return false;
        }
        gpus = memory_grow((void *)(uintptr_t)filter->gpus, filter->gpu_count, sizeof(*gpus));
        gpus[filter->gpu_count++] = item;
        filter->gpus = gpus;
    } while (*list != '\0');
    return true;
}

void values_add_folder(const char *folder, struct options *options)
{
    const char **folders =
        memory_grow((void *)(uintptr_t)options->folders, options->folder_count, sizeof(*folders));

    folders[options->folder_count++] = folder;
    options->folders = folders;
}

void values_drop(struct options *options)
{
    for (size_t i = 0; i < options->filter.gpu_count; i++) {
        free((void *)(uintptr_t)options->filter.gpus[i]);
    }
    free((void *)(uintptr_t)options->filter.gpus);
    free((void *)(uintptr_t)options->filter.pids);
    free((void *)(uintptr_t)options->filter.uids);
    free((void *)(uintptr_t)options->folders);
}

bool values_read_key(const char *word, enum groups_key *key)
{
    if (!groups_find_key(word, key)) {
        values_complain("cannot group by '%s' (known: %s)", word, groups_list_keys());
        return false;
    }
    return true;
}

bool values_read_color(const char *word, enum color *color)
{
    static const char *const names[] = {"auto", "always", "never"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(word, names[i]) == 0) {
            *color = (enum color)i;
            return true;
        }
    }
    values_complain("--color is auto, always or never, not '%s'", word);
    return false;
}

bool values_read_count(const char *name, const char *word, uint64_t *count)
{
    if (!values_read_number(word, UINT32_MAX, count) || *count == 0) {
        values_complain("%s is a number from 1, not '%s'", name, word);
        return false;
    }
    return true;
}

bool values_read_whole(const char *name, const char *word, uint64_t *number)
{
    if (!values_read_number(word, UINT32_MAX, number)) {
        values_complain("%s is a number from 0, not '%s'", name, word);
        return false;
    }
    return true;
}

bool values_read_percent(const char *name, const char *word, uint64_t *hundredths)
{
    char *end;
    double percent = strtod(word, &end);

    if (word[strspn(word, "0123456789.")] != *end || !values_is_number(word) || !(percent <= 1e6) ||
        strcmp(end, *end == '%' ? "%" : "") != 0) {
        values_complain("%s is a number of per cent such as 5%% or 0.5%%, not '%s'", name, word);
        return false;
    }
    *hundredths = (uint64_t)(percent * (double)CHECK_PERCENT + 0.5);
    return true;
}

bool values_read_size(const char *name, const char *word, uint64_t *bytes)
{
    static const char units[] = "BKMGT";
    char *end;
    double value = strtod(word, &end);
    const char *unit = *end == '\0' ? units : strchr(units, *end);

    if (word[strspn(word, "0123456789.")] != *end || !values_is_number(word) || !unit ||
        (*end != '\0' && end[1] != '\0' && (*end == 'B' || strcmp(end + 1, "iB") != 0))) {
        values_complain("%s is a size such as 4096, 64K or 1.5G, not '%s'", name, word);
        return false;
    }
    value *= (double)(UINT64_C(1) << 10 * (unit - units));
    *bytes = value < 0x1p63 ? (uint64_t)value : (uint64_t)INT64_MAX;
    return true;
}

bool values_read_age(const char *name, const char *word, uint64_t *seconds)
{
    static const struct {
        const char *unit;
        uint64_t seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    size_t digits = strspn(word, "0123456789");
    char *number = memory_check(strndup(word, digits));
    bool is_age = false;

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && !is_age; i++) {
        is_age = strcmp(word + digits, units[i].unit) == 0 &&
                 values_read_number(number, UINT32_MAX, seconds);
        *seconds = is_age ? *seconds * units[i].seconds : *seconds;
    }
    free(number);
    if (!is_age) {
        values_complain("%s is an age such as 90, 10m, 2h or 1d, not '%s'", name, word);
    }
    return is_age;
}

bool values_read_delay(const char *word, uint64_t *delay_ns)
{
    char *end;
    double seconds = strtod(word, &end);

    if (word[strspn(word, "0123456789.")] != '\0' || *end != '\0' || !(seconds >= 0.1) ||
        seconds > 1e6) {
        values_complain("DELAY is a number of seconds from 0.1, not '%s'", word);
        return false;
    }
    *delay_ns = (uint64_t)(seconds * 1e9);
    return true;
}
