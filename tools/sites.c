/* SPDX-License-Identifier: MIT
 *
 * Call sites of a ledger: their frames, and the rule which of these is named.
 */
#include "sites.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

/* frames.def, taken apart by kind. */
static const struct {
    enum { FRAMEWORK, PASSAGE } kind;
    const char *pattern;
} sites_patterns[] = {
#define FRAME(_kind, _pattern, _text) {_kind, _pattern},
#include "gpulimit/tbl/frames.def"
};

uint32_t sites_get_count(const struct gpulimit_site *site)
{
    return site ? (uint32_t)site->native_count + site->python_count : 0;
}

struct sites_frame sites_get_frame(const struct gpulimit_ledger *ledger,
                                   const struct gpulimit_site *site, uint32_t number)
{
    const struct gpulimit_frame *record = &site->frames[number];
    struct sites_frame frame = {.kind = record->kind, .file = "", .function = ""};

    if (record->kind == GPULIMIT_FRAME_PYTHON) {
        frame.file = gpulimit_reader_text(ledger, record->file);
        frame.function = gpulimit_reader_text(ledger, (uint32_t)(record->place >> 32));
        frame.line = (uint32_t)record->place;
    } else {
        frame.module = gpulimit_reader_module(ledger, record->file);
        frame.address = record->place;
    }
    return frame;
}

static bool sites_matches(const char *text, int kind)
{
    for (size_t i = 0; i < sizeof(sites_patterns) / sizeof(sites_patterns[0]); i++) {
        if ((int)sites_patterns[i].kind == kind &&
            fnmatch(sites_patterns[i].pattern, text, 0) == 0) {
            return true;
        }
    }
    return false;
}

static bool sites_is_own_python(const struct sites_frame *frame)
{
    return frame->kind == GPULIMIT_FRAME_PYTHON && !sites_matches(frame->file, FRAMEWORK);
}

/* A module that nobody knows is none that every request passes through. */
static bool sites_is_own_native(const struct sites_frame *frame)
{
    const char *path = frame->module ? frame->module->path : "";
    const char *slash = strrchr(path, '/');

    return frame->kind == GPULIMIT_FRAME_NATIVE &&
           !sites_matches(slash ? slash + 1 : path, PASSAGE);
}

static bool sites_is_python(const struct sites_frame *frame)
{
    return frame->kind == GPULIMIT_FRAME_PYTHON;
}

static uint32_t sites_find(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site,
                           bool (*fits)(const struct sites_frame *frame))
{
    for (uint32_t number = 0; number < sites_get_count(site); number++) {
        struct sites_frame frame = sites_get_frame(ledger, site, number);

        if (fits(&frame)) {
            return number;
        }
    }
    return SITES_NO_FRAME;
}

uint32_t sites_choose_python(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    uint32_t number = sites_find(ledger, site, sites_is_own_python);

    return number != SITES_NO_FRAME ? number : sites_find(ledger, site, sites_is_python);
}

uint32_t sites_choose(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    uint32_t number = sites_find(ledger, site, sites_is_own_python);

    if (number == SITES_NO_FRAME) {
        number = sites_find(ledger, site, sites_is_own_native);
    }
    return number == SITES_NO_FRAME && sites_get_count(site) > 0 ? 0 : number;
}

const char *sites_get_tag(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    return site ? gpulimit_reader_text(ledger, site->tag) : "";
}

static int sites_compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int sites_compare_frames(const struct sites_frame *a, const struct sites_frame *b)
{
    int order = sites_compare_numbers(a->kind, b->kind);

    order = order != 0 ? order : strcmp(a->file, b->file);
    order = order != 0 ? order : sites_compare_numbers(a->line, b->line);
    order = order != 0 ? order : strcmp(a->function, b->function);
    order = order != 0 ? order
                       : strcmp(a->module ? a->module->path : "", b->module ? b->module->path : "");
    return order != 0 ? order : sites_compare_numbers(a->address, b->address);
}
