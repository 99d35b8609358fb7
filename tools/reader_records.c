/* SPDX-License-Identifier: MIT
 *
 * Copies bytes and records out of a file that its writer is changing, such that each record is of
 * one moment.
 *
 * A sequence lock needs the sequence number read before and after the fields. One pread cannot give
 * that: the kernel copies in an order that it does not promise. So the same bytes are read three
 * times in a row. Between reading the number in the first copy and reading it in the third lies the
 * whole of the second read. If the number is even and the same at both ends, no write began or
 * ended in between, since each write adds two and passes through an odd number on the way: every
 * field of the second copy was still. (A number that comes full circle in that time would take two
 * thousand million writes.)
 */
#include "reader_records.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint32_t records_get_sequence(const void *record)
{
    uint32_t sequence;

    memcpy(&sequence, record, sizeof(sequence));
    return sequence;
}

bool records_are_settled(const void *first, const void *third)
{
    uint32_t before = records_get_sequence(first);

    return before % 2 == 0 && before == records_get_sequence(third);
}

enum records_outcome records_copy(int fd, uint64_t offset, size_t size, void *bytes)
{
    char *at = bytes;

    while (size > 0) {
        ssize_t got = pread(fd, at, size, (off_t)offset);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return RECORDS_FAILED;
        }
        if (got == 0) {
            return RECORDS_SHORT;
        }
        at += got;
        offset += (uint64_t)got;
        size -= (size_t)got;
    }
    /* Pairs with the writer's release stores: what a later read sees is no older than this one. */
    atomic_thread_fence(memory_order_acquire);
    return RECORDS_SETTLED;
}

static void records_pause(void)
{
    struct timespec millisecond = {.tv_nsec = 1000000};

    nanosleep(&millisecond, NULL); /* a signal may end it early: then we only look sooner */
}

enum records_outcome records_read(int fd, uint64_t offset, size_t size,
                                  struct records_patience *patience, void *scratch, void *record)
{
    char *first = scratch;
    char *third = first + size;
    bool has_moved = false;

    for (;;) {
        enum records_outcome outcome = records_copy(fd, offset, size, first);

        if (outcome == RECORDS_SETTLED) {
            outcome = records_copy(fd, offset, size, record);
        }
        if (outcome == RECORDS_SETTLED) {
            outcome = records_copy(fd, offset, size, third);
        }
        if (outcome != RECORDS_SETTLED || records_are_settled(first, third)) {
            return outcome;
        }
        if (records_get_sequence(first) != records_get_sequence(third)) {
            has_moved = true; /* somebody is writing: look again at once */
            if (patience->rereads == 0) {
                return RECORDS_MOVING;
            }
            patience->rereads--;
        } else {
            if (patience->pauses == 0) {
                return has_moved ? RECORDS_MOVING : RECORDS_TORN;
            }
            patience->pauses--;
            records_pause();
        }
    }
}
