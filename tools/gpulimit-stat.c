/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat: options, then read, choose, print, once or again and again. Nothing but the
 * sequence is decided here.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit_doctor.h"
#include "emit_json.h"
#include "emit_table.h"
#include "options.h"
#include "report.h"
#include "symbols.h"
#include "ticks.h"
#include "untracked.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNREADABLE = 3, EXIT_INTERRUPTED = 130 };

static bool stat_wants_colors(enum color color)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    if (color != COLOR_AUTO) {
        return color == COLOR_ALWAYS;
    }
    return isatty(STDOUT_FILENO) && (!no_color || no_color[0] == '\0') && terminal &&
           strcmp(terminal, "dumb") != 0;
}

static struct emit_style stat_choose_style(const struct options *options)
{
    return (struct emit_style){
        .out = stdout,
        .is_terminal = isatty(STDOUT_FILENO),
        .width = ticks_get_terminal_width(),
        .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
        .has_colors = stat_wants_colors(options->color),
        .has_headings = options->has_headings,
        .has_states = options->filter.has_ended,
        .is_exact = options->is_bytes,
        .is_stream = options->delay_ns > 0,
        .has_stacks = options->has_stacks,
        .symbols = symbols_open(),
    };
}

/* Whether entries are needed at all: counters alone are a fraction of the work. */
static bool stat_wants_entries(const struct options *options)
{
    return options->verb == VERB_ALLOCS || options->has_allocations;
}

static unsigned int stat_choose_parts(const struct options *options)
{
    if (options->is_growing) {
        return GPULIMIT_READER_HISTORY;
    }
    return stat_wants_entries(options) ? GPULIMIT_READER_ENTRIES : GPULIMIT_READER_SUMMARY;
}

static void stat_take_snapshot(const struct options *options, struct snapshot *snapshot)
{
    struct snapshot_request request = {
        .folders = options->folders,
        .folder_count = options->folder_count,
        .uids = options->filter.uids,
        .uid_count = options->filter.uid_count,
        .parts = stat_choose_parts(options),
    };

    snapshot_take(&request, snapshot);
}

static size_t stat_print_table(const struct options *options, const struct view *view,
                               const struct emit_style *style)
{
    struct groups groups;
    size_t lines;

    if (view->row_count == 0 && options->filter.pid_count > 0) {
        return 0; /* the line that says so is enough */
    }
    if (options->verb != VERB_ALLOCS) {
        return emit_table_processes(view, style);
    }
    groups_open(view, &options->groups, &groups);
    lines = options->groups.is_list ? emit_table_allocations(view, &groups, style)
                                    : emit_table_groups(&groups, style);
    groups_close(&groups);
    return lines;
}

/* True if all that -p asked for is there; else, if it is to be told, a line for each that is not.
 */
static bool stat_check_pids(const struct options *options, const struct snapshot *snapshot,
                            const struct view *view, bool is_told)
{
    bool has_all = true;

    for (size_t i = 0; i < options->filter.pid_count; i++) {
        int32_t pid = options->filter.pids[i];
        bool is_shown = false;
        bool has_ended = false;

        for (size_t j = 0; j < view->ledger_count; j++) {
            is_shown |= view_is_pid(view->ledgers[j], pid);
        }
        for (size_t j = 0; j < snapshot->ledger_count; j++) {
            has_ended |= view_is_pid(snapshot->ledgers[j], pid) &&
                         snapshot->ledgers[j]->state != GPULIMIT_STATE_LIVE;
        }
        has_all &= is_shown;
        if (!is_shown && is_told && has_ended && !options->filter.has_ended) {
            fprintf(stderr, "gpulimit-stat: process %d has ended; add -a for its last figures\n",
                    pid);
        } else if (!is_shown && is_told) {
            fprintf(stderr,
                    "gpulimit-stat: process %d has no ledger that fits: it does not run under "
                    "libgpulimit.so, or has not used CUDA yet\n",
                    pid);
        }
    }
    return has_all;
}

static void stat_hint(const struct options *options, const struct view *view)
{
    if (view->row_count > 0 || options->filter.pid_count > 0 || !isatty(STDERR_FILENO)) {
        return;
    }
    if (view->ended_count > 0) {
        fprintf(stderr, "No such process is running; %zu ended: gpulimit-stat -a shows them.\n",
                view->ended_count);
    } else if (options->filter.uid_count > 0 || options->filter.gpu_count > 0) {
        fputs("No process under libgpulimit.so fits.\n", stderr);
    } else {
        fputs("No process here runs under libgpulimit.so and has used CUDA. To start one:\n"
              "  gpulimit-run -m 1G -- python train.py\n",
              stderr);
    }
}

static int stat_choose_exit(const struct options *options, const struct snapshot *snapshot,
                            bool has_pids)
{
    /* Who asked for some processes and got them need not mind what else there is. */
    bool misses = snapshot->has_forbidden && (options->filter.pid_count == 0 || !has_pids);

    if (snapshot->has_unreadable || misses) {
        return EXIT_UNREADABLE;
    }
    return has_pids && !snapshot->has_missing_folder ? EXIT_OK : EXIT_FAILED;
}

/* One of a series of looks. */
struct look {
    bool is_first; /* says everything; later ones less */
    bool is_over;  /* set if all processes that -p asked for are gone */
    size_t lines;  /* printed so far, since the headings */
    int status;    /* of this look */
};

static void stat_print_json(const struct options *options, const struct snapshot *snapshot,
                            const struct view *view, const struct emit_style *style,
                            const struct growth *growth)
{
    emit_json_view(view, &snapshot->warnings,
                   &(struct emit_json_style){.out = stdout,
                                             .has_allocations = stat_wants_entries(options),
                                             .is_stream = style->is_stream,
                                             .growth = growth,
                                             .symbols = style->symbols});
}

/* Returns the number of lines, as the tables do. */
static size_t stat_print_growing(const struct options *options, const struct snapshot *snapshot,
                                 const struct view *view, const struct emit_style *style,
                                 const struct look *look)
{
    struct groups_filter filter = options->groups;
    struct groups groups;
    struct growth growth;
    size_t lines = 0;

    filter.key = filter.key == GROUPS_BY_DEFAULT ? GROUPS_BY_SITE : filter.key;
    filter.top = 0; /* those that grow most need not be among those that hold most */
    groups_open(view, &filter, &groups);
    growth_open(view, &groups, options->groups.top, &growth);
    if (options->is_json) {
        stat_print_json(options, snapshot, view, style, &growth);
    } else if (growth.count > 0) {
        lines = emit_table_growth(&growth, filter.key, style);
    } else if (view->row_count > 0 && look->is_first) {
        fputs("gpulimit-stat: nothing grows: no call site has asked for 1M or more, in 3 pieces or "
              "more, since start-up and kept it\n",
              stderr);
    }
    growth_close(&growth);
    groups_close(&groups);
    return lines;
}

static void stat_print(const struct options *options, const struct snapshot *snapshot,
                       const struct view *view, const struct emit_style *style, struct look *look)
{
    size_t printed;

    if (options->is_json && !options->is_growing) {
        stat_print_json(options, snapshot, view, style, NULL);
        return;
    }
    printed = options->is_growing ? stat_print_growing(options, snapshot, view, style, look)
                                  : stat_print_table(options, view, style);
    if (options->is_json) {
        return;
    }
    if (style->is_stream && style->is_terminal &&
        printed > 2) { /* to tell one tick from the next */
        putchar('\n');
        printed++;
    }
    look->lines += printed;
}

static void stat_prepare_symbols(const struct view *view, struct symbols *symbols)
{
    for (size_t i = 0; i < view->ledger_count; i++) {
        if (view->ledgers[i]->lock_pid > 0) {
            symbols_add_process(symbols, view->ledgers[i]->lock_pid);
        }
    }
}

static void stat_look(const struct options *options, const struct emit_style *style,
                      struct look *look)
{
    struct snapshot snapshot;
    struct view view;
    bool has_pids;

    stat_take_snapshot(options, &snapshot);
    view_open(&snapshot, &options->filter, &view);
    view_warn(&view, stat_wants_entries(options), &snapshot.warnings);
    if (options->is_json || options->verb == VERB_LIST) {
        untracked_fill(&view);
    }
    stat_prepare_symbols(&view, style->symbols);
    look->is_over = options->filter.pid_count > 0 && view.row_count == 0;
    stat_print(options, &snapshot, &view, style, look);
    fflush(stdout); /* before stderr, for those who look at both */
    if (look->is_first) {
        warnings_print(&snapshot.warnings);
    }
    if (look->is_first && !options->is_json) {
        stat_hint(options, &view);
    }
    has_pids = stat_check_pids(options, &snapshot, &view, look->is_first || look->is_over);
    look->status = stat_choose_exit(options, &snapshot, has_pids);
    view_close(&view);
    snapshot_drop(&snapshot);
}

/* Repeats the headings when the last ones are about to leave the screen, as vmstat does. */
static int stat_stream(const struct options *options, struct emit_style style)
{
    struct look look = {0};
    int worst = EXIT_OK;

    ticks_start(options->delay_ns);
    for (uint64_t tick = 0; options->count == 0 || tick < options->count; tick++) {
        size_t height = ticks_get_terminal_height();

        if (tick > 0 && !ticks_wait()) {
            return EXIT_INTERRUPTED;
        }
        look.is_first = tick == 0;
        style.has_headings =
            options->has_headings && (look.is_first || (height > 0 && look.lines + 1 >= height));
        look.lines = style.has_headings ? 0 : look.lines;
        stat_look(options, &style, &look);
        if (ferror(stdout)) {
            return EXIT_FAILED;
        }
        if (look.is_over && !look.is_first) { /* a process that ends is no failure of ours */
            return worst;
        }
        worst = look.status > worst ? look.status : worst;
        if (look.is_over) {
            return worst;
        }
    }
    return worst;
}

static int stat_examine(const struct options *options, const struct emit_style *style)
{
    struct snapshot snapshot;
    struct doctor doctor;
    int status;

    stat_take_snapshot(options, &snapshot);
    doctor_examine(&(struct doctor_request){.snapshot = &snapshot,
                                            .folders = options->folders,
                                            .folder_count = options->folder_count,
                                            .pids = options->filter.pids,
                                            .pid_count = options->filter.pid_count},
                   &doctor);
    if (options->is_json) {
        emit_json_doctor(&doctor, stdout);
    } else {
        emit_doctor(&doctor, style);
    }
    status = doctor.fails > 0 ? EXIT_FAILED : EXIT_OK;
    doctor_drop(&doctor);
    snapshot_drop(&snapshot);
    return status;
}

static int stat_go(const struct options *options, const struct emit_style *style)
{
    struct look look = {.is_first = true};

    if (options->verb == VERB_HOOKS && options->is_json) {
        emit_json_hooks(stdout);
        return EXIT_OK;
    }
    if (options->verb == VERB_HOOKS) {
        emit_table_hooks(style);
        return EXIT_OK;
    }
    if (options->verb == VERB_DOCTOR) {
        return stat_examine(options, style);
    }
    if (options->verb == VERB_REPORT) {
        return report_run(options, style);
    }
    if (options->verb == VERB_CHECK) {
        return report_run_check(options, style);
    }
    if (options->delay_ns > 0) {
        return stat_stream(options, *style);
    }
    stat_look(options, style, &look);
    return look.status;
}

int main(int argc, char **argv)
{
    struct options options;
    struct emit_style style;
    int status = EXIT_OK;

    setlocale(LC_CTYPE, ""); /* widths of characters; numbers stay as they are */
    switch (options_parse(argc, argv, &options)) {
    case OPTIONS_USAGE:
        status = EXIT_USAGE;
        break;
    case OPTIONS_DONE:
        break;
    case OPTIONS_GO:
        style = stat_choose_style(&options);
        status = stat_go(&options, &style);
        symbols_close(style.symbols);
        break;
    }
    options_drop(&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("gpulimit-stat: standard output");
        return EXIT_FAILED;
    }
    return status;
}
