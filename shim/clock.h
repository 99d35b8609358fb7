/* SPDX-License-Identifier: MIT
 *
 * A clock's time as one number. CLOCK_MONOTONIC_COARSE is good to some milliseconds and costs a
 * seventh of the exact one: enough for ages and pauses.
 *
 * Any thread, after fork, in signal handlers; errno is kept.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now); /* which cannot fail: the clocks named here are always there */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
