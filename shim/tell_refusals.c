/* SPDX-License-Identifier: MIT
 *
 * What is said of refusals, see tell.h: the first one of a device in full, then a line now and
 * then, and one at the end. Of a few, by oom_pick.h, a report is written.
 */
#include "tell.h"

#include "clock.h"
#include "limit_books.h"
#include "limit_oom.h"
#include "limit_sites.h"
#include "tags.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static pthread_mutex_t tell_mutex = PTHREAD_MUTEX_INITIALIZER; /* nothing else is locked under it */
static struct pace tell_paces[BUDGET_DEVICES];
static struct oom_pick tell_reports;
static _Atomic uint64_t tell_by_limit; /* refusals, of any device */
static atomic_bool tell_has_said_driver[BUDGET_DEVICES];
static _Atomic uint64_t tell_totals[BUDGET_DEVICES]; /* what each card has */

void tell_card(unsigned device, uint64_t total_bytes)
{
    atomic_store_explicit(&tell_totals[device], total_bytes, memory_order_relaxed);
}

/* Whether a refusal on a device is one: after an error in the configuration, which has been told
 * already and is what a person has to know, everything is refused. */
static bool tell_counts(unsigned device)
{
    return start_config()->error.length == 0 && device < BUDGET_DEVICES;
}

static bool tell_speaks(void)
{
    return start_config()->verbose > 0;
}

static bool tell_is_due(const struct ticket *ticket, struct pace_turn *turn)
{
    uint64_t mono_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t time_s = clock_ns(CLOCK_REALTIME) / 1000000000u;
    pthread_mutex_lock(&tell_mutex);
    bool is_due = pace_take(&tell_paces[ticket->device], ticket->bytes, mono_ns, time_s, turn);
    pthread_mutex_unlock(&tell_mutex);
    return is_due;
}

/* All that is known of a refused request; command: 16 bytes, as long as the kernel's. */
static void tell_describe(struct refusal *refusal, const struct ticket *ticket, char command[16])
{
    const struct tags_name *tag = tags_current();
    *refusal = (struct refusal){
        .api = api_names[ticket->api],
        .device = ticket->device,
        .what = ticket->what,
        .requested_bytes = ticket->bytes,
        .need_bytes = limit_most(ticket->kind, ticket->bytes),
        .limit_bytes = budget_limit(ticket->device),
        .limit_text = start_config()->limit_text,
        .card_total_bytes =
            atomic_load_explicit(&tell_totals[ticket->device], memory_order_relaxed),
        .command = prctl(PR_GET_NAME, command) == 0 ? command : "?",
        .pid = getpid(),
        .has_ledger = region_path()[0] != '\0',
        .site = ticket->site,
        .tag = tag ? tag->text : NULL,
    };
    refusal->asked_by = limit_site_name(refusal->site);
    limit_holders_by_site(ticket->device, &refusal->holders);
    refusal->knows_card_free = start_driver()->card_free(ticket->device, &refusal->card_free_bytes);
}

/* Which report is to be written about it: also where nothing is to be said. */
static void tell_pick(struct limit_oom *oom)
{
    const struct config *config = start_config();
    if (strcmp(config->report_dir, "none") == 0 && config->termination_log[0] == '\0')
        return;
    uint64_t mono_ns = clock_ns(CLOCK_MONOTONIC);
    oom->begun_ns = clock_ns(CLOCK_REALTIME_COARSE);
    pthread_mutex_lock(&tell_mutex);
    oom->number = oom_pick_take(&tell_reports, oom->ticket->bytes, mono_ns);
    pthread_mutex_unlock(&tell_mutex);
}

/* The text about one refusal. Not inlined, nor is the line about more: the report, which lies under
 * neither, has kilobytes on the stack, and programs have threads with small ones. */
__attribute__((noinline)) static void tell_words(const struct limit_oom *oom, bool is_said)
{
    struct text text;
    if (oom->is_by_driver)
        refusal_explain_driver(&text, oom->refusal);
    else
        refusal_explain(&text, oom->refusal);
    if (oom->number != OOM_NONE && start_config()->termination_log[0] != '\0')
        report_file_put(start_config()->termination_log, &text);
    if (is_said)
        log_write(&text);
}

__attribute__((noinline)) static void tell_more(unsigned device, const struct pace_turn *turn)
{
    struct text text;
    refusal_tell_more(&text, device, turn);
    log_write(&text);
}

/* All that is to be written about one refusal: the message, if it is to be said, and the report. */
static void tell_in_full(struct limit_oom *oom, bool is_said)
{
    struct neighbours neighbours;
    struct refusal refusal;
    char command[16], path[REPORT_FILE_PATH];
    if (!is_said && oom->number == OOM_NONE)
        return;
    tell_describe(&refusal, oom->ticket, command);
    if (oom->is_by_driver || oom->number != OOM_NONE) {
        neighbours_find(&neighbours, start_config()->dir, region_path(),
                        start_uuid(oom->ticket->device));
        refusal.neighbours = &neighbours;
    }
    oom->refusal = &refusal;
    if (oom->number != OOM_NONE && limit_oom_write(oom, path))
        refusal.report_path = path;
    tell_words(oom, is_said);
}

void tell_refusal(const struct ticket *ticket)
{
    struct pace_turn turn;
    atomic_fetch_add_explicit(&tell_by_limit, 1, memory_order_relaxed);
    if (!tell_counts(ticket->device))
        return;
    int saved = errno;
    struct limit_oom oom = {.ticket = ticket};
    tell_pick(&oom);
    bool is_due = tell_speaks() && tell_is_due(ticket, &turn);
    tell_in_full(&oom, is_due && turn.is_first);
    if (is_due && !turn.is_first)
        tell_more(ticket->device, &turn);
    errno = saved;
}

void tell_driver_refusal(const struct ticket *ticket)
{
    /* Without a limit nobody takes the driver's answer for ours. */
    if (!tell_counts(ticket->device) || budget_limit(ticket->device) == GPULIMIT_NO_LIMIT)
        return;
    int saved = errno;
    struct limit_oom oom = {.ticket = ticket, .is_by_driver = true};
    tell_pick(&oom);
    bool is_first = !atomic_exchange_explicit(&tell_has_said_driver[ticket->device], true,
                                              memory_order_relaxed);
    tell_in_full(&oom, is_first && tell_speaks());
    errno = saved;
}

static void tell_add_ends(struct text *text, const struct books *books)
{
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        const struct region_totals *totals = &books->ledger.totals[device];
        const struct refusal_end end = {.device = device,
                                        .limit_bytes = budget_limit(device),
                                        .peak_bytes = totals->peak_bytes,
                                        .limit_text = start_config()->limit_text,
                                        .refused = totals->denials,
                                        .recovered = totals->denials_recovered,
                                        .driver_refused = totals->driver_denials};
        if (end.refused > 0)
            refusal_add_end(text, &end);
    }
}

void tell_end(void)
{
    struct text text;
    if (atomic_load_explicit(&tell_by_limit, memory_order_relaxed) == 0 || !tell_counts(0) ||
        !tell_speaks())
        return;
    struct books *books = tell_lock_books();
    if (!books)
        return;
    text_init(&text);
    tell_add_ends(&text, books);
    books_unlock();
    log_write(&text);
}

void tell_reset(void)
{
    /* Whoever held it does not exist in this process. */
    tell_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store_explicit(&tell_by_limit, 0, memory_order_relaxed);
    tell_reports = (struct oom_pick){0};
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        tell_paces[device] = (struct pace){0};
        atomic_store_explicit(&tell_has_said_driver[device], false, memory_order_relaxed);
    }
}
