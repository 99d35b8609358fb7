/* SPDX-License-Identifier: MIT
 *
 * The command line of gpulimit-stat, understood or refused. The options themselves are rows of
 * options.def; their values are options_values.c's.
 */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "options_values.h"
#include "text.h"

enum option_number {
#define OPTION(_NAME, _letter, _long, _argument, _text) OPTION_##_NAME,
#include "options.def"
    OPTIONS
};

static const struct option_row option_rows[OPTIONS] = {
#define OPTION(_NAME, _letter, _long, _argument, _text) {_letter, _long, _argument, _text},
#include "options.def"
};

static const struct {
    const char *name;
    const char *text;
} verb_rows[] = {
    {"", ""},
#define VERB(_NAME, _name, _text) {_name, _text},
#include "verbs.def"
};

enum { VERBS = sizeof(verb_rows) / sizeof(verb_rows[0]) };

static const char options_examples[] =
    "  gpulimit-stat                      who holds how much of which GPU, and of which limit\n"
    "  gpulimit-stat 5                    the same every 5 seconds\n"
    "  gpulimit-stat allocs -p 4121       what process 4121 holds it with, and where it asked\n"
    "  gpulimit-stat doctor -p 4121       is it really under its limit?\n"
    "  gpulimit-stat report -p 4121       what it held at most, when, and for whom; also once it ended\n"
    "  gpulimit-stat check --peak-below 900M run.json     fails a test that needs more\n"
    "  gpulimit-stat -a --json            all there is, ended processes too, for a script\n";

static const char options_columns[] =
    "  USED       what counts against LIMIT; PEAK is the highest so far\n"
    "  OVERHEAD   of that, what the driver takes outside allocations: context, code, streams\n"
    "             (JSON: overhead_bytes, measured as truth_source says: nvml, delta or off)\n"
    "  UNTRACKED  what NVML, and so nvidia-smi, shows of the process beyond USED: about 0\n"
    "             (JSON: untracked_bytes; - or null: NVML does not know the process)\n";

static void options_print_help(void)
{
    printf("Usage: gpulimit-stat [OPTIONS] [VERB] [DELAY [COUNT]]\n"
           "Shows the GPU memory of processes that run under libgpulimit.so.\n\n%s\nColumns:\n"
           "%s\nVerbs:\n",
           options_examples, options_columns);
    for (size_t i = 1; i < VERBS; i++) {
        printf("  %-25s%s\n", verb_rows[i].name, verb_rows[i].text);
    }
    puts("\nOptions:");
    for (size_t i = 0; i < OPTIONS; i++) {
        char *names = option_rows[i].letter
                          ? memory_print("-%c, --%s", option_rows[i].letter, option_rows[i].name)
                          : memory_print("    --%s", option_rows[i].name);
        char *whole = memory_print("%s%s%s", names, option_rows[i].argument[0] != '\0' ? " " : "",
                                   option_rows[i].argument);

        printf("  %-24s %s\n", whole, option_rows[i].text);
        free(names);
        free(whole);
    }
    puts("\nExit: 0 ok, 1 failed or no such process, 2 usage, 3 a ledger could not be read.");
}

static bool options_set(struct options *options, enum option_number option, const char *value)
{
    switch (option) {
    case OPTION_PID:
        return values_add_pids(value, &options->filter);
    case OPTION_USER:
        return values_add_users(value, &options->filter);
    case OPTION_GPU:
        return values_add_gpus(value, &options->filter);
    case OPTION_ALL:
        options->filter.has_ended = true;
        return true;
    case OPTION_JSON:
        options->is_json = true;
        return true;
    case OPTION_ALLOCS:
        options->has_allocations = true;
        return true;
    case OPTION_BYTES:
        options->is_bytes = true;
        return true;
    case OPTION_NOHEADINGS:
        options->has_headings = false;
        return true;
    case OPTION_BY:
        return values_read_key(value, &options->groups.key);
    case OPTION_TOP:
        return values_read_count("--top", value, &options->groups.top);
    case OPTION_MIN_SIZE:
        return values_read_size("--min-size", value, &options->groups.min_bytes);
    case OPTION_OLDER_THAN:
        return values_read_age("--older-than", value, &options->groups.min_seconds);
    case OPTION_GROWING:
        options->is_growing = true;
        return true;
    case OPTION_LIST:
        options->groups.is_list = true;
        return true;
    case OPTION_VERBOSE:
        options->has_stacks = true;
        return true;
    case OPTION_DIFF:
        options->is_diff = true;
        return true;
    case OPTION_PEAK_BELOW:
        options->check.has_peak = true;
        return values_read_size("--peak-below", value, &options->check.peak_below_bytes);
    case OPTION_MAX_DENIALS:
        options->check.has_denials = true;
        return values_read_whole("--max-denials", value, &options->check.max_denials);
    case OPTION_MAX_LIVE:
        options->check.has_live = true;
        return values_read_size("--max-live-at-exit", value, &options->check.max_live_bytes);
    case OPTION_COMPARE:
        options->check.base_path = value;
        return true;
    case OPTION_TOLERANCE:
        return values_read_percent("--tolerance", value, &options->check.tolerance);
    case OPTION_JUNIT:
        options->check.junit_path = value;
        return true;
    case OPTION_COLOR:
        return values_read_color(value, &options->color);
    case OPTION_LEDGER_DIR:
        values_add_folder(value, options);
        return true;
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTIONS:
        break;
    }
    return false;
}

static bool options_set_verb(struct options *options, const char *word)
{
    size_t nearest = 0;
    size_t nearest_distance = 3; /* further off it is a guess */

    for (size_t i = 1; i < VERBS; i++) {
        size_t distance = text_get_distance(word, verb_rows[i].name);

        if (distance == 0) {
            options->verb = (enum verb)i;
            return true;
        }
        if (distance < nearest_distance) {
            nearest = i;
            nearest_distance = distance;
        }
    }
    if (nearest > 0) {
        values_complain("unknown verb '%s'; did you mean '%s'?", word, verb_rows[nearest].name);
    } else {
        values_complain("unknown verb '%s'", word);
    }
    return false;
}

/* What report and check are about, if not processes. */
static bool options_set_files(struct options *options, char **words)
{
    for (; *words; words++) {
        if (options->file_count == sizeof(options->files) / sizeof(options->files[0])) {
            values_complain("one word too many, '%s'", *words);
            return false;
        }
        options->files[options->file_count++] = *words;
    }
    return true;
}

/* [VERB] [DELAY [COUNT]]: no verb begins with a digit. */
static bool options_set_words(struct options *options, char **words)
{
    if (*words && !values_is_number(*words)) {
        if (!options_set_verb(options, *words++)) {
            return false;
        }
    }
    if (options->verb == VERB_REPORT || options->verb == VERB_CHECK) {
        return options_set_files(options, words);
    }
    if (*words && (options->verb == VERB_HOOKS || options->verb == VERB_DOCTOR)) {
        values_complain("%s takes no further words, '%s'", verb_rows[options->verb].name, *words);
        return false;
    }
    if (*words && !values_read_delay(*words++, &options->delay_ns)) {
        return false;
    }
    if (options->delay_ns > 0 && *words && !values_read_count("COUNT", *words++, &options->count)) {
        return false;
    }
    if (*words) {
        values_complain("one word too many, '%s'", *words);
        return false;
    }
    return true;
}

static bool options_fit_report(const struct options *options)
{
    size_t wanted = options->is_diff ? 2 : 1;

    if (options->is_diff && (options->file_count != 2 || options->is_json)) {
        values_complain("--diff compares two files, for people (example: report a.json b.json "
                        "--diff)");
        return false;
    }
    if ((options->filter.pid_count > 0) == (options->file_count > 0) ||
        options->file_count > wanted) {
        values_complain("report is about processes, -p, or about a file (example: report -p 4121)");
        return false;
    }
    if (options->is_json && options->filter.pid_count > 1) {
        values_complain("with --json, report is about one process");
        return false;
    }
    return true;
}

static bool options_fit_check(const struct options *options)
{
    const struct check_request *check = &options->check;

    if (options->filter.pid_count + options->file_count != 1) {
        values_complain("check is about one process, -p, or one file (example: check "
                        "--max-denials 0 run.json)");
        return false;
    }
    if (!check->has_peak && !check->has_denials && !check->has_live && !check->base_path) {
        values_complain("check what? (--peak-below, --max-denials, --max-live-at-exit, "
                        "--compare)");
        return false;
    }
    if (check->tolerance > 0 && !check->base_path) {
        values_complain("--tolerance goes with --compare");
        return false;
    }
    return true;
}

/* Which verb an option is for is the beginning of its text. */
static bool options_is_for(enum option_number option, const char *verb)
{
    size_t length = strlen(verb);

    return strncmp(option_rows[option].text, verb, length) == 0 &&
           option_rows[option].text[length] == ':';
}

/* Options of one verb that another would pass over in silence, although somebody counts on them. */
static bool options_fit_verb(const struct options *options)
{
    const struct check_request *check = &options->check;

    if (options->of_allocs && options->verb != VERB_ALLOCS) {
        values_complain("--%s goes with allocs: gpulimit-stat allocs --%s%s%s",
                        options->of_allocs->name, options->of_allocs->name,
                        options->of_allocs->argument[0] != '\0' ? " " : "",
                        options->of_allocs->argument);
        return false;
    }
    if (options->is_diff && options->verb != VERB_REPORT) {
        values_complain("--diff goes with report");
        return false;
    }
    if (options->verb != VERB_CHECK &&
        (check->has_peak || check->has_denials || check->has_live || check->base_path ||
         check->tolerance > 0 || check->junit_path)) {
        values_complain("assertions go with check (example: check --max-denials 0 run.json)");
        return false;
    }
    return true;
}

static bool options_fit_growing(const struct options *options)
{
    enum groups_key key = options->groups.key;

    if (options->groups.is_list) {
        values_complain("--growing is about groups; --list has none");
        return false;
    }
    if (key != GROUPS_BY_DEFAULT && key != GROUPS_BY_SITE && key != GROUPS_BY_PYTHON) {
        values_complain("--growing goes with --by site or --by python: of these it is known what "
                        "has been freed");
        return false;
    }
    return true;
}

static bool options_fit_together(const struct options *options)
{
    if (!options_fit_verb(options) || (options->is_growing && !options_fit_growing(options)) ||
        (options->verb == VERB_REPORT && !options_fit_report(options)) ||
        (options->verb == VERB_CHECK && !options_fit_check(options))) {
        return false;
    }
    if (options->has_allocations && !options->is_json) {
        values_complain("--allocs goes with --json; for a table: gpulimit-stat allocs");
        return false;
    }
    if (options->groups.is_list && options->has_stacks) {
        values_complain("--list has no groups for --verbose to show stacks of");
        return false;
    }
    return true;
}

enum options_outcome options_parse(int argc, char **argv, struct options *options)
{
    struct option longs[OPTIONS + 1];
    char shorts[2 * OPTIONS + 2];
    int value;

    *options = (struct options){.has_headings = true};
    option_rows_list(option_rows, OPTIONS, ':', longs, shorts);
    opterr = 0;
    while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        enum option_number option =
            (enum option_number)option_rows_find(option_rows, OPTIONS, value);

        if (option == OPTION_HELP) {
            options_print_help();
            return OPTIONS_DONE;
        }
        if (option == OPTION_VERSION) {
            puts("gpulimit-stat " GPULIMIT_VERSION);
            return OPTIONS_DONE;
        }
        if (value == ':') {
            values_complain("'%s' needs a value", argv[optind - 1]);
            return OPTIONS_USAGE;
        }
        if (value == '?') {
            values_complain_option(argv[optind - 1], optopt);
            return OPTIONS_USAGE;
        }
        if (!options_set(options, option, optarg)) {
            return OPTIONS_USAGE;
        }
        if (!options->of_allocs && options_is_for(option, "allocs")) {
            options->of_allocs = &option_rows[option];
        }
    }
    if (!options_set_words(options, argv + optind) || !options_fit_together(options)) {
        return OPTIONS_USAGE;
    }
    if (options->folder_count == 0) {
        const char *folder = getenv("GPU_LIMIT_DIR");

        values_add_folder(folder && folder[0] != '\0' ? folder : "/dev/shm", options);
    }
    return OPTIONS_GO;
}

void options_drop(struct options *options)
{
    values_drop(options);
}
