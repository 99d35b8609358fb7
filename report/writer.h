/* SPDX-License-Identifier: MIT
 *
 * JSON, written to a descriptor through a buffer of the caller's. It has a bound: what would go
 * beyond it is left out, and whoever writes a list asks first whether there is room. Nothing is
 * allocated and no lock taken: reports are written in somebody's process, in the middle of a call.
 *
 * A writer belongs to one thread. errno is not kept.
 */
#ifndef GPULIMIT_REPORT_WRITER_H
#define GPULIMIT_REPORT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WRITER_BUFFER = 2048 };

struct writer {
    int file;
    unsigned depth; /* of objects and arrays that are open */
    bool is_first;  /* nothing stands yet in the innermost of them */
    bool is_failed; /* a write was, or the bound was reached: the text is no JSON */
    size_t length;  /* bytes that wait in the buffer */
    uint64_t total; /* bytes so far, those that wait included */
    uint64_t most;  /* the bound */
    char buffer[WRITER_BUFFER];
};

/* Begins a text of at most so many bytes. */
void writer_begin(struct writer *writer, int file, uint64_t most);

/* Ends it with a newline. Returns false if what has been written is not all of it. */
bool writer_end(struct writer *writer);

/* Whether so many bytes more fit. */
bool writer_has_room(const struct writer *writer, uint64_t bytes);

/* Each of these adds a member to the innermost object, or with a NULL key an element to the
 * innermost array. */
void writer_open_object(struct writer *writer, const char *key);
void writer_open_array(struct writer *writer, const char *key);
void writer_add_text(struct writer *writer, const char *key, const char *text); /* NULL: null */
void writer_add_number(struct writer *writer, const char *key, uint64_t number);
void writer_add_bool(struct writer *writer, const char *key, bool is_true);
void writer_add_null(struct writer *writer, const char *key);

/* As a string: "0x7f0000000000". */
void writer_add_address(struct writer *writer, const char *key, uint64_t address);

/* Nanoseconds as seconds, to the millisecond: 12.045. */
void writer_add_seconds(struct writer *writer, const char *key, uint64_t time_ns);

/* A CLOCK_REALTIME in nanoseconds, as RFC 3339 has it, in UTC, to the millisecond; 0: null. */
void writer_add_time(struct writer *writer, const char *key, uint64_t time_ns);

void writer_close_object(struct writer *writer);
void writer_close_array(struct writer *writer);

#endif
