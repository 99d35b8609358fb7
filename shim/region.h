/* SPDX-License-Identifier: MIT
 *
 * The ledger file: creates it, grows it, and writes its records as include/gpulimit/region.h says.
 * It mirrors; nothing is ever read back from it, so whatever happens to it, the limit holds.
 *
 * Without a file (no space, no folder, no permission) every function does nothing. Writers hold the
 * books' lock; region_open and region_forget are called once before, and after a fork.
 */
#ifndef SHIM_REGION_H
#define SHIM_REGION_H

#include "tally.h"
#include "timeline.h"

#include "gpulimit/region.h"

#include <stdbool.h>

/* What a record of a device is made of. */
struct region_totals {
#define FIELD(_name, _type, _text) uint64_t _name;
#include "gpulimit/tbl/fields.def"
    struct {
        uint64_t bytes;
        uint64_t count;
    } by_kind[GPULIMIT_KINDS];
    enum gpulimit_truth truth_source;
    uint64_t hidden_bytes;
    uint64_t driver_denials;
    uint64_t peak_mono_ns, peak_epoch, peak_overhead_bytes;
    uint64_t denied_bytes, denied_mono_ns;
    uint64_t largest_bytes;
};

/* Creates the file in a folder and fills in whose it is. apis[apis_count]: what entries' api
 * numbers mean. Returns false when there can be none; *reason then says why, and stays valid. */
bool region_open(const char *dir, const char *limit_text, enum gpulimit_count_mode count_mode,
                 const char *const apis[], unsigned apis_count, const char **reason);

/* The path of the file; "" if there is none. */
const char *region_path(void);

/* The header of the file, to be written as region.h of include/ allows; NULL if there is none.
 * Stays mapped until region_forget. */
struct gpulimit_header *region_header(void);

/* Says in the file that the process has ended by itself. The file stays, for post-mortems. */
void region_end(void);

/* In a fork's child: the file is the parent's. Nothing of it is changed. */
void region_forget(void);

void region_add_device(unsigned device, const char *uuid, uint64_t total_bytes);

/* Writes a device's counters, of the kinds of memory only the one that has changed. */
void region_put_device(unsigned device, const struct region_totals *totals,
                       enum gpulimit_kind kind);

/* Writes the entry of a number, growing the file if it must. Returns false if the file has no place
 * for it. */
bool region_put_entry(uint32_t number, const struct gpulimit_entry *entry);

/* Frees the entry's place. */
void region_drop_entry(uint32_t number);

/* Adds a record to one of the append-only sections (modules, texts, sites). Returns its number,
 * from 1, or 0 if there is no room for it. What refers to it is written after it, with release
 * order. */
uint32_t region_append(enum gpulimit_section section, const void *record);

/* Writes the tally of a number, from 1 and without gaps. */
void region_put_tally(uint32_t number, const struct tally *tally);

/* Writes a device's timeline, from sample number `first` on. */
void region_put_timeline(unsigned device, const struct timeline *timeline, uint32_t first);

/* Write an event and a mark, over the oldest if there is no more room. Their numbers count from 1,
 * without gaps. */
void region_put_event(const struct gpulimit_event *event);
void region_put_mark(const struct gpulimit_mark *mark);

/* How many live allocations are not listed. */
void region_put_unlisted(uint64_t count);

#endif
