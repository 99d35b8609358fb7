/* SPDX-License-Identifier: MIT
 *
 * The gate that every allocation passes: reserve, then the driver's call, then commit or cancel;
 * for a free: detach, then the driver's call, then release or restore. It joins the budget, which
 * enforces, the books, which remember, and the message, which explains. It knows the rules of each
 * kind of memory but not CUDA: what must be asked of the driver is asked through start_driver.
 *
 * Any thread. No lock is held when a function here returns or calls the driver. Devices are known
 * (start_add_device) before they are named here. After a fork the child starts with nothing held.
 * Sizes are in bytes; devices are CUDA's ordinals in this process.
 */
#ifndef SHIM_LIMIT_H
#define SHIM_LIMIT_H

#include "api.h"
#include "books.h"

#include "gpulimit/region.h"

/* What a request is about, for messages. */
enum limit_what {
    LIMIT_ALLOCATION,
    LIMIT_CONTEXT,
    LIMIT_GREEN_CONTEXT,
    LIMIT_CODE,
    LIMIT_STREAM,
    LIMIT_SETTING
};

/* A request on its way through the gate. Filled in by limit_reserve. */
struct ticket {
    enum gpulimit_kind kind;
    enum api api;
    enum limit_what what;
    uint32_t site;             /* see limit_site; of a refused one, who asked */
    uint32_t tag, stream_name; /* see limit_tags.h */
    unsigned device;
    uint64_t owner;       /* context (linear, managed) or pool (async) */
    uint64_t stream;      /* async: see queue.h, filled in by the entry; 0 none */
    uint64_t bytes;       /* asked for */
    uint64_t held_bytes;  /* taken from the budget for it */
    uint64_t pool_bytes;  /* async: by how much the pool may grow */
    uint16_t pool;        /* async: its place in the books */
    uint32_t pool_number; /* async: see pools_begin */
    bool has_grace;       /* nothing held: it is expected to fit into what is committed already */
    struct pool_reading reading; /* async: the entry fills it in after the driver's call */
};

/* An allocation that is out of the ledger and still in the budget: its free is under way. */
struct removal {
    struct ledger_entry entry; /* of kind GPULIMIT_KIND_NONE: nothing that we know of */
    uint64_t freed_bytes;      /* what the driver will have given back with it */
};

/* What programs are to see of a device: *total_bytes and *free_bytes come in as the driver's
 * figures and go out no larger than the limit and what remains of it. */
void limit_view(unsigned device, uint64_t *total_bytes, uint64_t *free_bytes);

/* Reserves room for a request of bytes > 0. Returns false if the limit refuses it: it is counted
 * and explained, the ticket is void, and the driver must not be called. */
bool limit_reserve(struct ticket *ticket, enum gpulimit_kind kind, unsigned device, uint64_t owner,
                   enum api api, uint64_t bytes);

/* The driver has allocated bytes at an address (vmm: a handle). The ticket is used up, unless they
 * turn out not to fit: returns false then, and the caller frees them, calls limit_give_up and
 * answers as if limit_reserve had refused. */
bool limit_commit(struct ticket *ticket, uint64_t address, uint64_t bytes);

/* What did not fit is freed. Counted and explained as a refusal; the ticket is used up. */
void limit_give_up(const struct ticket *ticket);

/* The driver has not allocated. The ticket is used up. */
void limit_cancel(struct ticket *ticket);

/* It was cancelled because the driver itself has no memory: counted and explained as such. A device
 * that is none (BUDGET_DEVICES) is no error: nothing happens. */
void limit_driver_refused(const struct ticket *ticket);

/* The driver is about to free what is at an address: takes it out of the ledger, since the same
 * address can come back to us from another thread any moment. An unknown address is no error: it
 * makes an empty removal. */
void limit_detach(struct removal *removal, uint64_t address);

/* The driver has freed: the budget gets it back. */
void limit_release(const struct removal *removal);

/* The driver has not freed: the entry is put back. */
void limit_restore(const struct removal *removal);

#endif
