/* SPDX-License-Identifier: MIT
 *
 * Verbosity and once-only, see tell.h.
 */
#include "tell.h"

#include "limit_overhead.h"
#include "refusal.h"
#include "region.h"
#include "start.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <unistd.h>

static atomic_bool tell_has_explained;

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

void tell_refusal(const struct ticket *ticket)
{
    const struct config *config = start_config();
    if (config->error.length > 0 || config->verbose == 0 || ticket->device >= BUDGET_DEVICES ||
        atomic_exchange(&tell_has_explained, true))
        return;
    int saved = errno;
    char command[16] = "?"; /* as long as the kernel's */
    (void)prctl(PR_GET_NAME, command);
    struct refusal refusal = {.api = api_names[ticket->api],
                              .device = ticket->device,
                              .what = ticket->what,
                              .requested_bytes = ticket->bytes,
                              .used_bytes = budget_used(ticket->device),
                              .overhead_bytes = limit_overhead(ticket->device),
                              .limit_bytes = budget_limit(ticket->device),
                              .limit_text = config->limit_text,
                              .command = command,
                              .pid = getpid(),
                              .has_ledger = region_path()[0] != '\0'};
    refusal.knows_card_free = start_driver()->card_free(ticket->device, &refusal.card_free_bytes);
    struct text text;
    refusal_explain(&text, &refusal);
    log_write(&text);
    errno = saved;
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

void tell_reset(void)
{
    atomic_store(&tell_has_explained, false);
}
