/* SPDX-License-Identifier: MIT
 *
 * The parsers behind tbl/env.def. Each says in its error what it got and what would have been
 * right.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CONFIG_PREFIX "GPU_LIMIT_"

static void config_fail(struct config *config, const char *name, const char *value, const char *why,
                        const char *example)
{
    if (config->error.length > 0)
        return;
    text_add(&config->error, "gpulimit: " CONFIG_PREFIX);
    text_add_quoted(&config->error, name, 40);
    text_add(&config->error, "=\"");
    text_add_quoted(&config->error, value, 200);
    text_add(&config->error, "\" ");
    text_add(&config->error, why);
    text_add(&config->error, "; no GPU memory will be allowed until it is mended (");
    text_add(&config->error, example);
    text_add(&config->error, ").\n");
}

/* Copies a value: the program may change its environment later. Returns false, with it cut, if it
 * is too long. */
static bool config_copy(char *copy, size_t size, const char *value)
{
    size_t length = strnlen(value, size);
    bool fits = length < size;
    memcpy(copy, value, fits ? length : size - 1);
    copy[fits ? length : size - 1] = '\0';
    return fits;
}

/* Parses "1024", "512M", "1.5G", "50%" of the given length into a rule. */
static bool config_parse_amount(const char *value, size_t length, struct config_rule *rule)
{
    char copy[32];
    if (length == 0 || length >= sizeof copy || !isdigit((unsigned char)value[0]))
        return false;
    size_t digits = strspn(value, "0123456789");
    if (digits < length && value[digits] == '.')
        digits += 1 + strspn(value + digits + 1, "0123456789");
    if (digits > length || value[digits - 1] == '.')
        return false;
    memcpy(copy, value, length);
    copy[length] = '\0';
    char *unit = copy + digits;
    /* Not strtod: its decimal point is the locale's. */
    double number = 0, weight = 1;
    bool fraction = false;
    for (char *at = copy; at < unit; at++) {
        if (*at == '.') {
            fraction = true;
        } else if (fraction) {
            weight /= 10;
            number += (*at - '0') * weight;
        } else {
            number = number * 10 + (*at - '0');
        }
    }
    if (strcmp(unit, "%") == 0) {
        rule->percent = number;
        return number > 0 && number <= 100;
    }
    static const struct {
        const char *text;
        double bytes;
    } units[] = {
        {"", 0x1p20},   {"K", 0x1p10},   {"KB", 0x1p10},  {"KiB", 0x1p10}, {"M", 0x1p20},
        {"MB", 0x1p20}, {"MiB", 0x1p20}, {"G", 0x1p30},   {"GB", 0x1p30},  {"GiB", 0x1p30},
        {"T", 0x1p40},  {"TB", 0x1p40},  {"TiB", 0x1p40},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].text) != 0)
            continue;
        double bytes = number * units[i].bytes;
        if (bytes < 1 || bytes > 0x1p50)
            return false;
        rule->bytes = (uint64_t)bytes;
        return true;
    }
    return false;
}

/* Parses the "0", "GPU-...", "MIG-..." or "*" before an '='. */
static bool config_parse_scope(const char *value, size_t length, struct config_rule *rule)
{
    if (length == 1 && value[0] == '*') {
        rule->scope = CONFIG_ANY;
        return true;
    }
    if (length > 4 && length < sizeof rule->uuid &&
        (strncmp(value, "GPU-", 4) == 0 || strncmp(value, "MIG-", 4) == 0)) {
        rule->scope = CONFIG_UUID;
        memcpy(rule->uuid, value, length);
        return true;
    }
    if (length < 1 || length > 3 || strspn(value, "0123456789") < length)
        return false;
    rule->scope = CONFIG_INDEX;
    for (size_t i = 0; i < length; i++)
        rule->index = rule->index * 10 + (unsigned)(value[i] - '0');
    return true;
}

static bool config_parse_rule(const char *value, size_t length, struct config_rule *rule)
{
    *rule = (struct config_rule){.scope = CONFIG_ANY};
    const char *equals = memchr(value, '=', length);
    if (!equals)
        return config_parse_amount(value, length, rule);
    size_t before = (size_t)(equals - value);
    return config_parse_scope(value, before, rule) &&
           config_parse_amount(equals + 1, length - before - 1, rule);
}

static void config_parse_limits(struct config *config, const char *name, const char *value)
{
    config_copy(config->limit_text, sizeof config->limit_text, value);
    for (const char *at = value;; at++) {
        size_t length = strcspn(at, ",");
        /* A plain limit stands alone: in "1G,1=2G" nobody could say what the first part means. */
        bool plain = memchr(at, '=', length) == NULL;
        bool alone = at == value && at[length] == '\0';
        if (config->rules_count == CONFIG_RULES || (plain && !alone) ||
            !config_parse_rule(at, length, &config->rules[config->rules_count])) {
            config_fail(
                config, name, value, "is not a limit of GPU memory",
                "GPU_LIMIT_MB=1024, 512M, 1.5G, 50%, or by device 0=1G,1=2G,*=512M; unset it for "
                "no limit");
            return;
        }
        config->rules_count++;
        at += length;
        if (*at == '\0')
            return;
    }
}

static void config_parse_count(struct config *config, const char *name, const char *value)
{
    if (strcmp(value, "process") == 0)
        config->count_mode = GPULIMIT_COUNT_PROCESS;
    else if (strcmp(value, "allocations") == 0)
        config->count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    else
        config_fail(config, name, value, "is no way of counting",
                    "GPU_LIMIT_COUNT=process or allocations");
}

static void config_parse_exceed(struct config *config, const char *name, const char *value)
{
    if (strcmp(value, "fail") != 0)
        config_fail(config, name, value, "is not a policy of this version",
                    "GPU_LIMIT_ON_EXCEED=fail");
}

static void config_parse_verbose(struct config *config, const char *name, const char *value)
{
    if (value[0] >= '0' && value[0] <= '4' && value[1] == '\0')
        config->verbose = (unsigned)(value[0] - '0');
    else
        config_fail(config, name, value, "is no verbosity", "GPU_LIMIT_VERBOSE=0 to 4");
}

static void config_parse_nvml(struct config *config, const char *name, const char *value)
{
    config->nvml_is_real = strcmp(value, "real") == 0;
    if (!config->nvml_is_real && strcmp(value, "limit") != 0)
        config_fail(config, name, value, "is nothing that NVML could show",
                    "GPU_LIMIT_NVML=limit or real");
}

/* "min:1M" behind the comma. */
static bool config_parse_least(struct config *config, const char *value)
{
    struct config_rule least = {.scope = CONFIG_ANY};
    if (strncmp(value, ",min:", 5) != 0 ||
        !config_parse_amount(value + 5, strlen(value + 5), &least) || least.percent > 0)
        return false;
    config->stacks_min_bytes = least.bytes;
    return true;
}

static void config_parse_stacks(struct config *config, const char *name, const char *value)
{
    static const struct {
        const char *text;
        bool has_native, has_python;
    } words[] = {{"off", false, false},
                 {"native", true, false},
                 {"python", false, true},
                 {"all", true, true}};
    size_t length = strcspn(value, ",");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].text) != length || strncmp(words[i].text, value, length) != 0)
            continue;
        config->has_native_stacks = words[i].has_native;
        config->has_python_stacks = words[i].has_python;
        if (value[length] == '\0' || config_parse_least(config, value + length))
            return;
    }
    config_fail(config, name, value, "is no way of recording call sites",
                "GPU_LIMIT_STACKS=off, native, python or all, and from which size on: all,min:1M");
}

static void config_parse_log(struct config *config, const char *name, const char *value)
{
    bool is_place =
        strcmp(value, "stderr") == 0 || strcmp(value, "none") == 0 || strchr(value, '/');
    if (is_place && strlen(value) < sizeof config->log)
        config_copy(config->log, sizeof config->log, value);
    else /* the message goes to stderr then */
        config_fail(config, name, value, "is no place for messages",
                    "GPU_LIMIT_LOG=stderr, none, or a path with a '/' in it");
}

static void config_parse_report(struct config *config, const char *name, const char *value)
{
    size_t length = strlen(value);
    bool is_json = length > 5 && strcmp(value + length - 5, ".json") == 0;
    if (!config_copy(config->report, sizeof config->report, value) ||
        (!is_json && strcmp(value, "stderr") != 0))
        config_fail(config, name, value, "is no place for a report",
                    "GPU_LIMIT_REPORT=stderr, or a path that ends in .json");
}

static void config_parse_dir(struct config *config, const char *name, const char *value)
{
    if (!config_copy(config->dir, sizeof config->dir, value) || value[0] != '/')
        config_fail(config, name, value, "is not an absolute path", "GPU_LIMIT_DIR=/dev/shm");
}

static void config_parse_report_dir(struct config *config, const char *name, const char *value)
{
    if (!config_copy(config->report_dir, sizeof config->report_dir, value) ||
        (value[0] != '/' && strcmp(value, "none") != 0))
        config_fail(config, name, value, "is neither an absolute path nor none",
                    "GPU_LIMIT_REPORT_DIR=/var/tmp/reports");
}

static void config_parse_termination_log(struct config *config, const char *name, const char *value)
{
    if (!config_copy(config->termination_log, sizeof config->termination_log, value) ||
        value[0] != '/')
        config_fail(config, name, value, "is not an absolute path",
                    "GPU_LIMIT_TERMINATION_LOG=/dev/termination-log");
}

static void config_parse_later(struct config *config, const char *name, const char *value)
{
    config_fail(config, name, value, "is not supported by this version", "unset it");
}

static const struct {
    const char *name;
    void (*parse)(struct config *config, const char *name, const char *value);
} config_variables[] = {
#define ENV(_name, _parse, _default, _text) {#_name, config_parse_##_parse},
#include "gpulimit/tbl/env.def"
};

/* All of them, for who has misspelt one. */
static const char config_names[] = "GPU_LIMIT_MB is; after GPU_LIMIT_ there can be"
#define ENV(_name, _parse, _default, _text) " " #_name
#include "gpulimit/tbl/env.def"
    ;

static void config_parse_variable(struct config *config, const char *name, size_t length,
                                  const char *value)
{
    for (size_t i = 0; i < sizeof config_variables / sizeof config_variables[0]; i++) {
        const char *known = config_variables[i].name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            config_variables[i].parse(config, known, value);
            return;
        }
    }
    char unknown[64];
    if (length >= sizeof unknown)
        length = sizeof unknown - 1;
    memcpy(unknown, name, length);
    unknown[length] = '\0';
    config_fail(config, unknown, value, "is no variable of gpulimit", config_names);
}

/* A folder of the session's, which is not ours to complain about. */
static void config_note_runtime_dir(struct config *config, const char *variable)
{
    static const char name[] = "XDG_RUNTIME_DIR=";
    const char *value = variable + sizeof name - 1;
    if (strncmp(variable, name, sizeof name - 1) == 0 &&
        (value[0] != '/' || !config_copy(config->runtime_dir, sizeof config->runtime_dir, value)))
        config->runtime_dir[0] = '\0';
}

void config_parse(struct config *config, char *const environment[])
{
    *config = (struct config){.verbose = 1,
                              .log = "stderr",
                              .dir = "/dev/shm",
                              .has_native_stacks = true,
                              .has_python_stacks = true,
                              .stacks_min_bytes = UINT64_C(1) << 20};
    for (char *const *at = environment; *at; at++) {
        config_note_runtime_dir(config, *at);
        if (strncmp(*at, CONFIG_PREFIX, sizeof CONFIG_PREFIX - 1) != 0)
            continue;
        const char *name = *at + sizeof CONFIG_PREFIX - 1;
        const char *equals = strchr(name, '=');
        if (equals)
            config_parse_variable(config, name, (size_t)(equals - name), equals + 1);
    }
}

static struct config config_of_process;

static void config_read(void)
{
    config_parse(&config_of_process, environ);
    log_set_target(config_of_process.log);
}

const struct config *config_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, config_read);
    return &config_of_process;
}

static uint64_t config_rule_bytes(const struct config_rule *rule, uint64_t total_bytes)
{
    if (rule->bytes > 0)
        return rule->bytes;
    return (uint64_t)((double)total_bytes * rule->percent / 100);
}

/* Whether a rule's UUID is another's beginning. What stands before the digits does not count: CUDA
 * does not tell a MIG instance ("MIG-") from a card ("GPU-"). */
static bool config_is_uuid(const char *beginning, const char *uuid)
{
    return strncasecmp(beginning + 4, uuid + 4, strlen(beginning + 4)) == 0;
}

uint64_t config_limit_for(const struct config *config, unsigned index, const char *uuid,
                          uint64_t total_bytes)
{
    if (config->rules_count == 0)
        return GPULIMIT_NO_LIMIT;
    uint64_t any = 0;
    for (unsigned i = 0; i < config->rules_count; i++) {
        const struct config_rule *rule = &config->rules[i];
        if ((rule->scope == CONFIG_INDEX && rule->index == index) ||
            (rule->scope == CONFIG_UUID && config_is_uuid(rule->uuid, uuid)))
            return config_rule_bytes(rule, total_bytes);
        if (rule->scope == CONFIG_ANY)
            any = config_rule_bytes(rule, total_bytes);
    }
    return any;
}
