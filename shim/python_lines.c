/* SPDX-License-Identifier: MIT
 *
 * The three forms of python_lines.h. Each step reads at least one byte of the table, so a walk is
 * as long as the table at most. Whatever the table holds, nothing outside it is read.
 */
#include "python_lines.h"

enum {
    LINES_NONE_3_10 = -128,
    /* The kinds of an entry in 3.11 that say something of lines; all others stay on their line. */
    LINES_ONE_LINE = 10, /* up to 12: so many lines further, less 10 */
    LINES_LAST_ONE_LINE = 12,
    LINES_NO_COLUMNS = 13,
    LINES_LONG = 14,
    LINES_NO_LINE = 15,
};

static int32_t lines_3_9(const uint8_t *table, size_t bytes, int32_t line, uint32_t offset)
{
    uint32_t start = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        start += table[i];
        if (start > offset)
            break;
        line += (int8_t)table[i + 1];
    }
    return line;
}

static int32_t lines_3_10(const uint8_t *table, size_t bytes, int32_t line, uint32_t offset)
{
    uint32_t end = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2) {
        int8_t step = (int8_t)table[i + 1];
        if (step != LINES_NONE_3_10)
            line += step;
        end += table[i];
        if (offset < end)
            return step == LINES_NONE_3_10 ? 0 : line;
    }
    return 0;
}

/* A number of 3.11: six bits a byte, the lowest first, bit 6 set while there are more; its own
 * lowest bit is the sign. */
static int32_t lines_read_signed(const uint8_t *table, size_t bytes, size_t at)
{
    uint32_t value = 0;
    for (unsigned shift = 0; at < bytes && shift < 32; at++, shift += 6) {
        value |= (uint32_t)(table[at] & 0x3f) << shift;
        if (!(table[at] & 0x40))
            break;
    }
    int32_t size = (int32_t)(value >> 1);
    return value & 1 ? -size : size;
}

static int32_t lines_3_11(const uint8_t *table, size_t bytes, int32_t first, uint32_t offset)
{
    uint32_t end = 0, line = (uint32_t)first; /* unsigned: garbage must not overflow */
    size_t i = 0;
    while (i < bytes) {
        unsigned kind = table[i] >> 3 & 15;
        end += ((table[i] & 7u) + 1) * 2;
        if (kind >= LINES_ONE_LINE && kind <= LINES_LAST_ONE_LINE)
            line += kind - LINES_ONE_LINE;
        else if (kind == LINES_NO_COLUMNS || kind == LINES_LONG)
            line += (uint32_t)lines_read_signed(table, bytes, i + 1);
        if (offset < end)
            return kind == LINES_NO_LINE ? 0 : (int32_t)line;
        do /* the first byte of each entry has bit 7 set */
            i++;
        while (i < bytes && !(table[i] & 0x80));
    }
    return 0;
}

int32_t python_lines_find(enum python_lines form, const uint8_t *table, size_t bytes,
                          int32_t first_line, uint32_t offset)
{
    if (form == PYTHON_LINES_3_9)
        return lines_3_9(table, bytes, first_line, offset);
    if (form == PYTHON_LINES_3_10)
        return lines_3_10(table, bytes, first_line, offset);
    return lines_3_11(table, bytes, first_line, offset);
}
