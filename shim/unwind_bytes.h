/* SPDX-License-Identifier: MIT
 *
 * Reads the numbers of .eh_frame, never past the end of what they stand in.
 *
 * No state. Any thread.
 */
#ifndef SHIM_UNWIND_BYTES_H
#define SHIM_UNWIND_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct unwind_bytes {
    const uint8_t *at, *end;
    bool is_bad; /* something was read past the end, or is not understood */
};

static inline uint64_t unwind_fixed(struct unwind_bytes *bytes, size_t size)
{
    uint64_t value = 0;
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->is_bad = true;
        bytes->at = bytes->end;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    return value;
}

static inline uint64_t unwind_leb(struct unwind_bytes *bytes, bool is_signed)
{
    uint64_t value = 0, byte = 0x80;
    unsigned shift = 0;
    for (; (byte & 0x80) && shift < 63; shift += 7) {
        byte = unwind_fixed(bytes, 1);
        value |= (byte & 0x7f) << shift;
    }
    if (byte & 0x80)
        bytes->is_bad = true;
    if (is_signed && (byte & 0x40))
        value |= UINT64_MAX << shift;
    return value;
}

static inline uint64_t unwind_uleb(struct unwind_bytes *bytes)
{
    return unwind_leb(bytes, false);
}

static inline int64_t unwind_sleb(struct unwind_bytes *bytes)
{
    return (int64_t)unwind_leb(bytes, true);
}

static inline struct unwind_bytes unwind_block(struct unwind_bytes *bytes, uint64_t size)
{
    struct unwind_bytes block = {.at = bytes->at, .end = bytes->at};
    if ((uint64_t)(bytes->end - bytes->at) < size)
        bytes->is_bad = true;
    else
        block.end = bytes->at += size;
    return block;
}

/* A record of .eh_frame, without its length. */
static inline struct unwind_bytes unwind_record(const uint8_t *at)
{
    uint32_t size;
    memcpy(&size, at, sizeof size);
    struct unwind_bytes record = {.at = at + sizeof size, .end = at + sizeof size};
    if (size == UINT32_MAX)
        record.is_bad = true; /* 64 bits of length follow: of what nobody has */
    else
        record.end += size;
    return record;
}

#endif
