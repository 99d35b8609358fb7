/* SPDX-License-Identifier: MIT
 *
 * The straight line: reserve, commit, cancel; detach, release, restore.
 */
#include "limit.h"

#include "limit_books.h"
#include "refusal.h"
#include "start.h"
#include "tell.h"

/* The refusal that this thread has not got over yet: an allocation of as much means that it has. */
static _Thread_local struct {
    uint64_t bytes; /* 0: none */
    unsigned device;
} limit_refused __attribute__((tls_model("initial-exec")));

/* Whether requests are charged, not what the driver commits for them. */
static bool limit_counts_requests(void)
{
    return start_config()->count_mode == GPULIMIT_COUNT_ALLOCATIONS;
}

/* The most that the driver can take for a request, which is all that is known before its call. */
static uint64_t limit_most(enum gpulimit_kind kind, uint64_t bytes)
{
    if (limit_counts_requests())
        return bytes;
    if (kind == GPULIMIT_KIND_LINEAR)
        return blocks_most(bytes);
    if (kind == GPULIMIT_KIND_ASYNC)
        return pools_most(bytes);
    return bytes;
}

/* Takes the most that the request can cost. */
static bool limit_take(struct ticket *ticket)
{
    uint64_t most = limit_most(ticket->kind, ticket->bytes);
    if (!budget_take(ticket->device, most))
        return false;
    ticket->held_bytes = most;
    return true;
}

/* Whether the request may well fit into what the driver holds already: a small piece into a block
 * that others have begun, a stream-ordered one into a hole of its pool. Measured on an H200: of
 * requests up to 8 MiB that a hole fitted none made the pool grow, of those up to 100 MiB one in
 * seventy. */
static bool limit_may_be_free(const struct ticket *ticket)
{
    bool may = false;
    if (limit_counts_requests())
        return false;
    struct books *books = books_lock();
    if (ticket->kind == GPULIMIT_KIND_LINEAR) {
        may = ticket->bytes < BLOCKS_BYTES && books->blocks.users.count > 0;
    } else if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        const struct pool *pool = pools_find(&books->pools, ticket->owner);
        may = pool && holes_fit(&pool->holes, ticket->bytes);
    }
    books_unlock();
    return may;
}

/* Finds room: in the budget; without, in what is committed already; at last in the budget again,
 * when idle pools have given back what they can. Nothing is known of a pool's holes after that. */
static bool limit_find_room(struct ticket *ticket)
{
    if (limit_take(ticket))
        return true;
    ticket->has_grace = limit_may_be_free(ticket) && budget_take_grace(ticket->device);
    if (ticket->has_grace)
        return true;
    start_driver()->reclaim(ticket->device);
    return limit_take(ticket);
}

static void limit_count_denial(unsigned device)
{
    struct books *books = books_lock();
    books->ledger.totals[device].denials++;
    ledger_publish(&books->ledger, device, GPULIMIT_KIND_NONE);
    books_unlock();
}

static void limit_refuse(const struct ticket *ticket)
{
    limit_refused.bytes = ticket->bytes;
    limit_refused.device = ticket->device;
    if (ticket->device < BUDGET_DEVICES)
        limit_count_denial(ticket->device);
    tell_refusal(ticket);
}

/* Announces an allocation to its pool. Returns false if there is no room for one more pool. */
static bool limit_begin_in_pool(struct ticket *ticket)
{
    if (ticket->kind != GPULIMIT_KIND_ASYNC)
        return true;
    if (!limit_counts_requests())
        ticket->pool_bytes = ticket->held_bytes;
    struct books *books = books_lock();
    struct pool *pool = pools_insert(&books->pools, ticket->owner, (int)ticket->device);
    if (pool) {
        pools_begin(pool, ticket->pool_bytes);
        pool->live++; /* from now on, so that its place outlives a destruction meanwhile */
        ticket->pool = (uint16_t)(pool - books->pools.places);
    }
    books_unlock();
    return pool != NULL;
}

bool limit_reserve(struct ticket *ticket, enum gpulimit_kind kind, unsigned device, uint64_t owner,
                   enum api api, uint64_t bytes)
{
    *ticket =
        (struct ticket){.kind = kind, .api = api, .device = device, .owner = owner, .bytes = bytes};
    if (start_config()->error.length > 0 || device >= BUDGET_DEVICES) {
        limit_refuse(ticket);
        return false;
    }
    if (!limit_find_room(ticket)) {
        limit_refuse(ticket);
        return false;
    }
    if (!limit_begin_in_pool(ticket)) {
        ticket->kind = GPULIMIT_KIND_NONE; /* no pool to take it back from */
        limit_cancel(ticket);
        limit_refuse(ticket);
        return false;
    }
    return true;
}

/* What the allocation has cost, in committed bytes, by the rule of its kind. Returns false, with
 * nothing changed, when there is no memory to remember it by. */
static bool limit_measure(struct books *books, const struct ticket *ticket, uint64_t address,
                          uint64_t bytes, int64_t *cost)
{
    if (ticket->kind == GPULIMIT_KIND_LINEAR) {
        uint64_t touched;
        if (!blocks_add(&books->blocks, address, bytes, &touched))
            return false;
        *cost = (int64_t)touched;
    } else if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        struct pool *pool = &books->pools.places[ticket->pool];
        *cost = pools_end(pool, ticket->pool_bytes, &ticket->reading);
        holes_fill(&pool->holes, address, bytes, *cost > 0 ? (uint64_t)*cost : 0);
    } else {
        *cost = (int64_t)bytes;
    }
    return true;
}

/* One allocation less in a pool. */
static void limit_leave_pool(struct books *books, unsigned device, uint16_t place)
{
    struct pool *pool = &books->pools.places[place];
    if (--pool->live > 0 || pool->handle != 0)
        return;
    /* Destroyed by the program before: with its last allocation the driver frees all it has. */
    limit_note_change(books, device, GPULIMIT_KIND_ASYNC, -(int64_t)pool->reserved_bytes);
    pools_remove(pool);
}

/* Undoes limit_measure, as far as the driver will undo what was measured. */
static void limit_unmeasure(struct books *books, const struct ticket *ticket, uint64_t address,
                            uint64_t bytes, int64_t cost)
{
    if (ticket->kind == GPULIMIT_KIND_LINEAR) {
        blocks_remove(&books->blocks, address, bytes);
    } else if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        /* The pool holds the growth until it is trimmed: it stays charged until a reading says
         * otherwise. */
        limit_note_change(books, ticket->device, ticket->kind, cost);
        limit_leave_pool(books, ticket->device, ticket->pool);
    }
}

/* Exchanges what is held for what is to be charged: the cost may be negative, of a pool that shrank
 * meanwhile. Returns false, with what was held, if that does not fit. */
static bool limit_settle(struct ticket *ticket, int64_t charge)
{
    int64_t more = charge - (int64_t)ticket->held_bytes;
    if (more > 0 && !budget_take(ticket->device, (uint64_t)more))
        return false;
    if (more < 0)
        budget_give(ticket->device, (uint64_t)-more);
    ticket->held_bytes = (uint64_t)charge;
    return true;
}

/* Enters a measured allocation into the ledger. Returns false when there is no memory for it. */
static bool limit_enter(struct books *books, const struct ticket *ticket, uint64_t address,
                        uint64_t bytes, int64_t cost)
{
    struct ledger *ledger = &books->ledger;
    struct ledger_entry entry = {
        .address = address,
        .requested_bytes = bytes,
        .committed_bytes = ticket->kind == GPULIMIT_KIND_ASYNC ? bytes : (uint64_t)cost,
        .owner = ticket->owner,
        .api = (uint16_t)ticket->api,
        .pool = ticket->pool,
        .kind = (uint8_t)ticket->kind,
        .device = (uint8_t)ticket->device,
    };
    uint32_t stale;
    uint32_t number = ledger_insert(ledger, &entry, &stale);
    if (number == LEDGER_NONE)
        return false;
    if (ticket->kind == GPULIMIT_KIND_VMM &&
        mappings_create(&books->mappings, address, number) == MAPPINGS_NONE) {
        ledger_remove(ledger, number);
        return false;
    }
    if (stale != LEDGER_NONE)
        limit_remove_entry(books, stale);
    ledger_commit(ledger, ticket->device, ticket->kind, cost);
    if (limit_refused.bytes > 0 && limit_refused.device == ticket->device &&
        bytes >= limit_refused.bytes) {
        limit_refused.bytes = 0;
        ledger->totals[ticket->device].denials_recovered++;
    }
    ledger_publish(ledger, ticket->device, ticket->kind);
    return true;
}

bool limit_commit(struct ticket *ticket, uint64_t address, uint64_t bytes)
{
    int64_t cost = 0;
    struct books *books = books_lock();
    bool is_measured = limit_measure(books, ticket, address, bytes, &cost);
    bool is_entered = is_measured &&
                      limit_settle(ticket, limit_counts_requests() ? (int64_t)bytes : cost) &&
                      limit_enter(books, ticket, address, bytes, cost);
    if (!is_entered) {
        budget_give(ticket->device, ticket->held_bytes);
        if (is_measured)
            limit_unmeasure(books, ticket, address, bytes, cost);
    }
    books_unlock();
    if (ticket->has_grace)
        budget_give_grace(ticket->device);
    if (!is_entered)
        limit_refuse(ticket);
    else
        tell_allocation(ticket, bytes);
    return is_entered;
}

void limit_cancel(struct ticket *ticket)
{
    budget_give(ticket->device, ticket->held_bytes);
    if (ticket->kind == GPULIMIT_KIND_ASYNC) {
        struct books *books = books_lock();
        struct pool *pool = &books->pools.places[ticket->pool];
        limit_note_change(books, ticket->device, ticket->kind,
                          pools_cancel(pool, ticket->pool_bytes));
        limit_leave_pool(books, ticket->device, ticket->pool);
        books_unlock();
    }
    if (ticket->has_grace)
        budget_give_grace(ticket->device);
}

void limit_note_change(struct books *books, unsigned device, enum gpulimit_kind kind, int64_t bytes)
{
    if (bytes == 0)
        return;
    if (!limit_counts_requests())
        budget_adjust(device, bytes);
    ledger_commit(&books->ledger, device, kind, bytes);
    ledger_publish(&books->ledger, device, kind);
}

/* Takes an entry out of the books; the budget still has it. */
static void limit_take_out(struct books *books, uint32_t number, struct removal *removal)
{
    struct ledger_entry *entry = &removal->entry;
    *entry = *ledger_at(&books->ledger, number);
    if (entry->kind == GPULIMIT_KIND_LINEAR)
        removal->freed_bytes =
            blocks_remove(&books->blocks, entry->address, entry->requested_bytes);
    else if (entry->kind == GPULIMIT_KIND_ASYNC)
        removal->freed_bytes = 0; /* the pool keeps it */
    else
        removal->freed_bytes = entry->committed_bytes;
    ledger_remove(&books->ledger, number);
    ledger_commit(&books->ledger, entry->device, entry->kind, -(int64_t)removal->freed_bytes);
    ledger_publish(&books->ledger, entry->device, entry->kind);
}

/* Gives the budget what was taken out of the books. */
static void limit_give_back(const struct removal *removal)
{
    budget_give(removal->entry.device,
                limit_counts_requests() ? removal->entry.requested_bytes : removal->freed_bytes);
}

void limit_remove_entry(struct books *books, uint32_t number)
{
    struct removal removal;
    limit_take_out(books, number, &removal);
    limit_give_back(&removal);
    if (removal.entry.kind == GPULIMIT_KIND_ASYNC)
        limit_leave_pool(books, removal.entry.device, removal.entry.pool);
}

void limit_detach(struct removal *removal, uint64_t address)
{
    removal->entry.kind = GPULIMIT_KIND_NONE;
    struct books *books = books_lock();
    uint32_t number = ledger_find(&books->ledger, address);
    if (number != LEDGER_NONE)
        limit_take_out(books, number, removal);
    books_unlock();
}

void limit_release(const struct removal *removal)
{
    if (removal->entry.kind == GPULIMIT_KIND_NONE)
        return;
    limit_give_back(removal);
    if (removal->entry.kind == GPULIMIT_KIND_ASYNC) {
        struct books *books = books_lock();
        holes_open(&books->pools.places[removal->entry.pool].holes, removal->entry.address,
                   removal->entry.requested_bytes);
        limit_leave_pool(books, removal->entry.device, removal->entry.pool);
        books_unlock();
    }
}

void limit_restore(const struct removal *removal)
{
    const struct ledger_entry *entry = &removal->entry;
    if (entry->kind == GPULIMIT_KIND_NONE)
        return;
    uint64_t bytes = removal->freed_bytes;
    uint32_t stale;
    struct books *books = books_lock();
    /* Others may have come to its blocks meanwhile, or gone: what it commits now need not be what
     * it gave up. */
    if (ledger_find(&books->ledger, entry->address) != LEDGER_NONE ||
        (entry->kind == GPULIMIT_KIND_LINEAR &&
         !blocks_add(&books->blocks, entry->address, entry->requested_bytes, &bytes)) ||
        ledger_insert(&books->ledger, entry, &stale) == LEDGER_NONE) {
        /* A newer owner of the address: it was freed after all. Or no memory to remember it by. */
        limit_give_back(removal);
        if (entry->kind == GPULIMIT_KIND_ASYNC)
            limit_leave_pool(books, entry->device, entry->pool);
    } else {
        int64_t change = (int64_t)(bytes - removal->freed_bytes);
        if (!limit_counts_requests())
            budget_adjust(entry->device, change);
        ledger_commit(&books->ledger, entry->device, entry->kind, (int64_t)bytes);
        ledger_publish(&books->ledger, entry->device, entry->kind);
    }
    books_unlock();
}

void limit_view(unsigned device, uint64_t *total_bytes, uint64_t *free_bytes)
{
    if (device >= BUDGET_DEVICES)
        return;
    uint64_t limit = budget_limit(device);
    uint64_t used = budget_used(device);
    uint64_t left = limit > used ? limit - used : 0;
    if (limit == GPULIMIT_NO_LIMIT)
        return;
    if (*total_bytes > limit)
        *total_bytes = limit;
    if (*free_bytes > left)
        *free_bytes = left;
}
