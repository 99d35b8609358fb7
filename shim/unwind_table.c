/* SPDX-License-Identifier: MIT
 *
 * The look-ups of unwind_table.h.
 */
#include "unwind_table.h"

/* DW_EH_PE_*, Linux Standard Base 10.5: how the table's own numbers are written. All linkers choose
 * these. */
enum { UNWIND_TABLE_POSITION = 0x1b, UNWIND_TABLE_COUNT = 0x03, UNWIND_TABLE_ROWS = 0x3b };

struct unwind_table {
    uint8_t version, position_encoding, count_encoding, row_encoding;
    int32_t position; /* of .eh_frame */
    uint32_t count;
    struct unwind_table_row {
        int32_t begin, record; /* from the start of the table */
    } rows[];
};

static bool unwind_table_is_known(const struct unwind_table *table)
{
    return table->version == 1 && table->position_encoding == UNWIND_TABLE_POSITION &&
           table->count_encoding == UNWIND_TABLE_COUNT && table->row_encoding == UNWIND_TABLE_ROWS;
}

static uint64_t unwind_table_begin(const struct unwind_table *table, uint32_t row)
{
    return (uintptr_t)table + (uint64_t)(int64_t)table->rows[row].begin;
}

/* A record of .eh_frame, behind its length. */
static struct unwind_bytes unwind_table_record(const uint8_t *at)
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

static bool unwind_table_read(const struct unwind_table *table, uint32_t row,
                              struct unwind_function *function)
{
    function->row = row;
    function->begin = unwind_table_begin(table, row);
    function->record = unwind_table_record((const uint8_t *)table + table->rows[row].record);
    const uint8_t *common = function->record.at;
    common -= unwind_fixed(&function->record, 4);
    if (function->record.is_bad)
        return false;
    function->common = unwind_table_record(common);
    return unwind_fixed(&function->common, 4) == 0 && !function->common.is_bad;
}

bool unwind_table_find(const void *table, uint64_t address, struct unwind_function *function)
{
    const struct unwind_table *known = table;
    if (!unwind_table_is_known(known))
        return false;
    uint32_t low = 0;
    for (uint32_t high = known->count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (unwind_table_begin(known, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && unwind_table_read(known, low - 1, function);
}

static uint64_t unwind_table_mix(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
    return digest ^ digest >> 32;
}

/* In two strands, for the processor to mix both at once: an interpreter's main loop has a kilobyte.
 */
static uint64_t unwind_table_mix_all(uint64_t digest, struct unwind_bytes bytes)
{
    uint64_t words[2], other = 1;
    for (; bytes.end - bytes.at >= (ptrdiff_t)sizeof words; bytes.at += sizeof words) {
        memcpy(words, bytes.at, sizeof words);
        digest = unwind_table_mix(digest, words[0]);
        other = unwind_table_mix(other, words[1]);
    }
    for (; bytes.end - bytes.at >= 4; bytes.at += 4) {
        uint32_t half;
        memcpy(&half, bytes.at, sizeof half);
        digest = unwind_table_mix(digest, half);
    }
    while (bytes.at < bytes.end)
        digest = unwind_table_mix(digest, *bytes.at++);
    return unwind_table_mix(digest, other);
}

uint64_t unwind_table_digest(const void *table, uint32_t row)
{
    const struct unwind_table *known = table;
    struct unwind_function function;
    if (!unwind_table_is_known(known) || row >= known->count ||
        !unwind_table_read(known, row, &function))
        return 0;
    return unwind_table_mix_all(unwind_table_mix_all(function.begin, function.record),
                                function.common);
}
