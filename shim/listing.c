/* SPDX-License-Identifier: MIT
 *
 * The lock of listing.h.
 */
#include "listing.h"

#include <pthread.h>

static pthread_mutex_t listing_mutex = PTHREAD_MUTEX_INITIALIZER;

static void listing_hold(void)
{
    pthread_mutex_lock(&listing_mutex);
}

static void listing_arrange_for_forks(void)
{
    pthread_atfork(listing_hold, listing_unlock, listing_unlock);
}

void listing_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, listing_arrange_for_forks);
    listing_hold();
}

void listing_unlock(void)
{
    pthread_mutex_unlock(&listing_mutex);
}
