/* SPDX-License-Identifier: MIT
 *
 * Who holds what: one entry for each live allocation, and each device's counters. Private memory is
 * what counts; what changes is mirrored into the region for readers, counters when ledger_publish
 * says so.
 *
 * It knows nothing of CUDA or of limits: who decides what is committed says so. No locking: the
 * caller has a lock. A zero-initialised struct ledger is empty and valid.
 */
#ifndef SHIM_LEDGER_H
#define SHIM_LEDGER_H

#include "budget.h"
#include "history.h"
#include "region.h"
#include "table.h"
#include "tally.h"
#include "timeline.h"

#define LEDGER_NONE UINT32_MAX

enum { LEDGER_EVENT_BYTES = 1 << 20 }; /* smaller allocations and frees are no events */

struct ledger_entry {
    uint64_t address; /* device pointer, or handle for vmm */
    uint64_t requested_bytes;
    uint64_t committed_bytes;
    uint64_t owner;        /* context or pool; 0 none */
    uint64_t born_mono_ns; /* 0: now, on this thread */
    uint64_t serial;       /* grows with each insertion */
    uint32_t thread_id;
    uint32_t site;        /* where it was asked for; 0 unknown */
    uint32_t tag, stream; /* see limit_tags.h; 0 none */
    uint32_t next;        /* chain of free places */
    uint16_t api;
    uint32_t tally; /* the ledger's own */
    uint16_t pool;  /* async: the place of its pool in struct pools */
    uint8_t kind;   /* enum gpulimit_kind; GPULIMIT_KIND_NONE: a free place */
    uint8_t device;
    bool is_handle; /* the address is none, and not to be found by */
    bool is_listed; /* in the region */
};

/* All that was ever committed and given up on a device, of which committed_bytes is the difference.
 */
struct ledger_flow {
    uint64_t grown_bytes, shrunk_bytes;
};

struct ledger {
    struct ledger_entry *entries;
    uint32_t capacity;
    uint32_t used;           /* entries[0 .. used-1] have been in use */
    uint32_t free_list;      /* number + 1 of the first free place, 0 if none */
    struct table by_address; /* of all that have one */
    uint64_t serial;
    uint64_t unlisted;
    enum gpulimit_count_mode count_mode;
    struct region_totals totals[BUDGET_DEVICES];
    struct ledger_flow flow[BUDGET_DEVICES];
    uint64_t hidden_bytes[BUDGET_DEVICES]; /* hidden_bytes in region.h, managed allocations apart */
    uint64_t now_mono_ns; /* when counters were published last, or are about to be: has_time */
    bool has_time;
    struct tallies tallies;
    struct history history;
    struct timeline timelines[GPULIMIT_DEVICES];
};

/* Inserts an entry made of the given one (next, serial, tally and is_listed are the ledger's own).
 * Returns its number, LEDGER_NONE when there is no memory. If the address is taken, the driver has
 * freed without our knowing: *stale is then the number of the old entry, which is no longer found,
 * else LEDGER_NONE. */
uint32_t ledger_insert(struct ledger *ledger, const struct ledger_entry *entry, uint32_t *stale);

/* The entry of a number; valid until the next ledger_insert. */
struct ledger_entry *ledger_at(struct ledger *ledger, uint32_t number);

/* The number of the entry at an address, or LEDGER_NONE. */
uint32_t ledger_find(const struct ledger *ledger, uint64_t address);

/* Removes an entry. */
void ledger_remove(struct ledger *ledger, uint32_t number);

/* Changes what is committed on a device by so much, put down to a kind. */
void ledger_commit(struct ledger *ledger, unsigned device, enum gpulimit_kind kind, int64_t bytes);

/* Shows readers a device's counters as they are now, and notes a new peak. Once for each change,
 * which is about one kind of memory at most (else GPULIMIT_KIND_NONE), after the last of its steps:
 * half a change is nobody's business. */
void ledger_publish(struct ledger *ledger, unsigned device, enum gpulimit_kind kind);

/* Something has happened, and its counters are published: an allocation, a free, or a request that
 * was refused, of which the entry has kind, device, api, site, tag and requested_bytes. */
void ledger_note(struct ledger *ledger, enum gpulimit_event_what what,
                 const struct ledger_entry *entry);

/* Whether any device's counters have been published. */
bool ledger_is_in_use(const struct ledger *ledger);

/* The program's own mark: what every device in use holds, under the text of that number. */
void ledger_mark(struct ledger *ledger, uint32_t text);

/* Gives the memory back and leaves an empty ledger; the region is left alone. */
void ledger_clear(struct ledger *ledger);

#endif
