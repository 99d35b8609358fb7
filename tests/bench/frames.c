/* SPDX-License-Identifier: MIT
 *
 * Times native_frames by the number of frames, and native_module_of. Run by hand: it prints
 * nanoseconds, the least of some rounds, and asserts nothing.
 *
 *   usage: frames     prints lines: NAME FRAMES NANOSECONDS
 *
 * The frames are those of the unit tests' shared object: this program's own are left out, as the
 * library's are in it.
 */
#include "native_chain.h"
#include "native_frames.h"

#include <stdio.h>
#include <time.h>

enum { ROUNDS = 9, CALLS = 10000, DEPTH = 40 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void keep_least(double *least, double start, unsigned calls)
{
    double each = (now_ns() - start) / calls;
    if (*least == 0 || each < *least)
        *least = each;
}

static void time_frames(void *argument)
{
    uint64_t addresses[NATIVE_FRAMES_MOST];
    unsigned most = *(unsigned *)argument, count = 0;
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < CALLS; i++)
            count = native_frames(addresses, most);
        keep_least(&least, start, CALLS);
    }
    printf("native_frames %u %.0f\n", count, least);
}

static void time_first(void *argument)
{
    uint64_t addresses[NATIVE_FRAMES_MOST];
    double start = now_ns();
    (void)argument;
    unsigned count = native_frames(addresses, NATIVE_FRAMES_MOST);
    printf("native_frames_first %u %.0f\n", count, now_ns() - start);
}

static void time_module(void)
{
    struct native_module module;
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (int i = 0; i < CALLS / 10; i++)
            native_module_of((uintptr_t)chain_outer, &module);
        keep_least(&least, start, CALLS / 10);
    }
    printf("native_module_of 1 %.0f\n", least);
}

int main(void)
{
    chain_deep(time_first, NULL, DEPTH);
    for (unsigned i = 0; i < 5; i++) {
        unsigned most = (unsigned[]){1, 4, 10, 14, 30}[i];
        chain_deep(time_frames, &most, DEPTH);
    }
    time_module();
    return 0;
}
