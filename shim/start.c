/* SPDX-License-Identifier: MIT
 *
 * See start.h. Everything here happens once per process, so it may take a mutex and make system
 * calls.
 */
#include "start.h"

#include "api.h"
#include "books.h"
#include "sweep.h"
#include "tell.h"
#include "unknown.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static pthread_mutex_t start_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool start_is_done;
static const struct start_driver *start_with;
static const struct config *start_settings;
static atomic_bool start_known[BUDGET_DEVICES];
static char start_uuids[BUDGET_DEVICES][48]; /* of the known ones, constant from then on */

const struct config *start_config(void)
{
    return start_settings;
}

const struct start_driver *start_driver(void)
{
    return start_with;
}

/* In a fork's child: as if the program had just been started. */
static void start_in_child(void)
{
    unknown_attach(NULL, NULL);
    region_forget();
    budget_reset();
    start_with->forget();
    tell_reset();
    for (unsigned device = 0; device < BUDGET_DEVICES; device++)
        atomic_store(&start_known[device], false);
    atomic_store(&start_is_done, false);
    /* Whoever held it does not exist here: the forking thread was not in start_process. */
    start_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void start_work(const struct config *config)
{
    const char *reason = NULL;
    sweep_dead_ledgers(config->dir);
    region_open(config->dir, config->limit_text, config->count_mode, api_names, APIS, &reason);
    struct books *books = books_lock();
    books->ledger.count_mode = config->count_mode;
    books_unlock();
    books_watch_fork(start_in_child);
    tell_banner(config, reason);
    unknown_attach(region_header(), tell_unknown);
}

bool start_process(const struct start_driver *driver)
{
    const struct config *config = config_get();
    /* Acquire pairs with the release below: whoever sees it done sees all that was done. */
    if (atomic_load_explicit(&start_is_done, memory_order_acquire))
        return config->error.length == 0;
    int saved = errno;
    pthread_mutex_lock(&start_mutex);
    if (!atomic_load_explicit(&start_is_done, memory_order_relaxed)) {
        start_with = driver;
        start_settings = config;
        if (config->error.length > 0)
            log_write(&config->error);
        else
            start_work(config);
        atomic_store_explicit(&start_is_done, true, memory_order_release);
    }
    pthread_mutex_unlock(&start_mutex);
    errno = saved;
    return config->error.length == 0;
}

bool start_knows_device(unsigned device)
{
    return atomic_load_explicit(&start_known[device], memory_order_acquire);
}

const char *start_uuid(unsigned device)
{
    return start_uuids[device];
}

bool start_find_device(const char *uuid, unsigned *device)
{
    for (*device = 0; *device < BUDGET_DEVICES; ++*device) {
        if (start_knows_device(*device) && strcmp(start_uuids[*device] + 4, uuid + 4) == 0)
            return true;
    }
    return false;
}

void start_add_device(unsigned device, const char *uuid, uint64_t total_bytes)
{
    uint64_t limit = config_limit_for(start_config(), device, uuid, total_bytes);
    struct books *books = books_lock();
    if (!atomic_load_explicit(&start_known[device], memory_order_relaxed)) {
        budget_set_limit(device, limit);
        books->ledger.totals[device].limit_bytes = limit;
        ledger_publish(&books->ledger, device, GPULIMIT_KIND_NONE);
        tell_card(device, total_bytes);
        region_add_device(device, uuid, total_bytes); /* now there is something to see */
        strncpy(start_uuids[device], uuid, sizeof start_uuids[device] - 1);
        /* Release pairs with start_knows_device: who sees it known sees its limit and UUID. */
        atomic_store_explicit(&start_known[device], true, memory_order_release);
    }
    books_unlock();
}

/* The program ends by itself. What is still live stays in the file, as the state at exit. */
__attribute__((destructor)) static void start_end(void)
{
    tell_end();
    region_end();
    tell_report();
}
