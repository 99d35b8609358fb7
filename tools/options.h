/* SPDX-License-Identifier: MIT
 *
 * The command line of gpulimit-stat, understood or refused.
 */
#ifndef GPULIMIT_TOOLS_OPTIONS_H
#define GPULIMIT_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "check.h"
#include "groups.h"
#include "option_rows.h"
#include "view.h"

enum verb {
    VERB_LIST, /* no verb */
#define VERB(_NAME, _name, _text) VERB_##_NAME,
#include "verbs.def"
};

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct options {
    enum verb verb;
    struct view_filter filter;
    const char *const *folders;
    size_t folder_count;
    struct groups_filter groups;
    bool is_json;
    bool has_allocations; /* --allocs */
    bool is_bytes;
    bool has_headings;
    bool has_stacks; /* --verbose */
    bool is_growing; /* --growing */
    const struct option_row
        *of_allocs;       /* the first option given that is for allocs alone; NULL: none */
    const char *files[2]; /* report, check: what they are about, if not processes */
    size_t file_count;
    bool is_diff;
    struct check_request check;
    enum color color;
    uint64_t delay_ns; /* 0: once */
    uint64_t count;    /* with a delay: ticks; 0 for ever */
};

enum options_outcome {
    OPTIONS_GO,
    OPTIONS_DONE,  /* --help or --version has been answered on stdout */
    OPTIONS_USAGE, /* the complaint has been printed on stderr */
};

/* Parses the command line; to be called once. Whatever the outcome, the lists in `options` are for
 * options_drop. */
enum options_outcome options_parse(int argc, char **argv, struct options *options);
void options_drop(struct options *options);

#endif
