/* SPDX-License-Identifier: MIT
 *
 * Copies bytes and records out of a file that its writer is changing, such that each record is of
 * one moment. Knows the sequence number at the start of a record and nothing else about it.
 */
#ifndef GPULIMIT_TOOLS_READER_RECORDS_H
#define GPULIMIT_TOOLS_READER_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum records_outcome {
    RECORDS_SETTLED, /* the copy is of one moment */
    RECORDS_MOVING,  /* written to again and again while we looked: the copy mixes moments close
                        together */
    RECORDS_TORN,    /* half-written, and nobody goes on with it */
    RECORDS_SHORT,   /* the file ends before the record does */
    RECORDS_FAILED,  /* errno says why */
};

/* How much waiting one ledger may cost in all: a file full of torn records must not hold up the
 * reader. */
struct records_patience {
    unsigned int rereads;
    unsigned int pauses; /* of a millisecond: long enough for a writer that lost its CPU */
};

/* Copies `size` bytes at `offset`. RECORDS_SETTLED here means only that all of them are there. */
enum records_outcome records_copy(int fd, uint64_t offset, size_t size, void *bytes);

/* Copies the record of `size` bytes at `offset`, again and again while patience lasts. `scratch`
 * has room for two more such records. But for RECORDS_SHORT and RECORDS_FAILED, `record` is the
 * last copy seen. */
enum records_outcome records_read(int fd, uint64_t offset, size_t size,
                                  struct records_patience *patience, void *scratch, void *record);

/* True if the record between two copies of its sequence number is of one moment; the reason is in
 * the .c. */
bool records_are_settled(const void *first, const void *third);

#endif
