/* SPDX-License-Identifier: MIT
 *
 * Call sites of a ledger: their frames, and the rule which of these is named.
 */
#include "sites.h"

#include <string.h>

#include "gpulimit/frames.h"

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

static enum gpulimit_frame_rank sites_rank(const struct sites_frame *frame)
{
    if (frame->kind == GPULIMIT_FRAME_PYTHON) {
        return gpulimit_rank_python(frame->file);
    }
    if (frame->kind == GPULIMIT_FRAME_NATIVE) {
        return gpulimit_rank_native(frame->module ? frame->module->path : "");
    }
    return GPULIMIT_RANK_ANY;
}

static uint32_t sites_find(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site,
                           bool only_python)
{
    uint32_t chosen = SITES_NO_FRAME;
    enum gpulimit_frame_rank least = GPULIMIT_RANK_ANY;

    for (uint32_t number = 0; number < sites_get_count(site); number++) {
        struct sites_frame frame = sites_get_frame(ledger, site, number);
        enum gpulimit_frame_rank rank = sites_rank(&frame);

        if ((frame.kind == GPULIMIT_FRAME_PYTHON || !only_python) &&
            (chosen == SITES_NO_FRAME || rank < least)) {
            chosen = number;
            least = rank;
        }
    }
    return chosen;
}

uint32_t sites_choose_python(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    return sites_find(ledger, site, true);
}

uint32_t sites_choose(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    return sites_find(ledger, site, false);
}

const char *sites_get_tag(const struct gpulimit_ledger *ledger,
                          const struct gpulimit_ledger_entry *entry)
{
    return gpulimit_reader_text(ledger, entry->tag);
}

const char *sites_get_stream(const struct gpulimit_ledger *ledger,
                             const struct gpulimit_ledger_entry *entry)
{
    return gpulimit_reader_text(ledger, entry->stream);
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
