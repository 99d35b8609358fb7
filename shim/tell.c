/* SPDX-License-Identifier: MIT
 *
 * Verbosity, see tell.h. Of refusals: tell_refusals.c.
 */
#include "tell.h"

#include "region.h"
#include "start.h"

#include <sched.h>

void tell_banner(const struct config *config, const char *no_ledger)
{
    if (config->verbose < 2)
        return;
    struct text text;
    text_init(&text);
    text_add(&text, "gpulimit: ");
    if (config->limit_text[0] == '\0') {
        text_add(&text, "no limit (GPU_LIMIT_MB is not set)");
    } else {
        text_add(&text, "GPU_LIMIT_MB=");
        text_add_quoted(&text, config->limit_text, 60);
    }
    text_add(&text, no_ledger ? "; no ledger: " : "; ledger ");
    text_add_quoted(&text, no_ledger ? no_ledger : region_path(), 200);
    text_add(&text, "\n");
    log_write(&text);
}

static void tell_taken(const struct ticket *ticket, uint64_t bytes, const char *on)
{
    struct text text;
    text_init(&text);
    text_add(&text, "gpulimit: ");
    text_add(&text, api_names[ticket->api]);
    text_add(&text, " ");
    text_add_size(&text, bytes);
    text_add(&text, on);
    text_add_number(&text, ticket->device);
    text_add(&text, ": ");
    text_add_size(&text, budget_used(ticket->device));
    text_add(&text, " in use\n");
    log_write(&text);
}

void tell_allocation(const struct ticket *ticket, uint64_t bytes)
{
    unsigned verbose = start_config()->verbose;
    if (verbose >= 4 || (verbose == 3 && bytes >= (1u << 20)))
        tell_taken(ticket, bytes, " on GPU ");
}

void tell_overhead(const struct ticket *ticket, uint64_t bytes)
{
    if (bytes > 0 && start_config()->verbose >= 3)
        tell_taken(ticket, bytes, " of overhead on GPU ");
}

void tell_unknown(const char *name)
{
    struct text text;
    if (start_config()->verbose < 2)
        return;
    text_init(&text);
    text_add(&text, "gpulimit: the driver is newer than this library: what ");
    text_add_quoted(&text, name, GPULIMIT_API_BYTES);
    text_add(&text, " takes is not counted\n");
    log_write(&text);
}

struct books *tell_lock_books(void)
{
    struct books *books = books_try_lock();
    for (unsigned tries = 0; !books && tries < 1000; tries++) {
        sched_yield();
        books = books_try_lock();
    }
    return books;
}
