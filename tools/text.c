/* SPDX-License-Identifier: MIT
 *
 * Numbers and foreign strings as people read them. Pure: no files, no clock, no locale.
 */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

enum { TEXT_ESCAPE_BYTES = 10 }; /* the longest: \U0010ffff */

void text_print_bytes(uint64_t bytes, bool exact, char cell[TEXT_CELL_BYTES])
{
    static const struct {
        uint64_t below;
        unsigned int shift;
        char unit;
    } scales[] = {
        {UINT64_C(1) << 10, 0, 'B'},   {UINT64_C(1) << 20, 10, 'K'}, {UINT64_C(10) << 30, 20, 'M'},
        {UINT64_C(10) << 40, 30, 'G'}, {UINT64_MAX, 40, 'T'},
    };
    size_t scale = 0;
    uint64_t unit;

    if (exact) {
        snprintf(cell, TEXT_CELL_BYTES, "%" PRIu64, bytes);
        return;
    }
    while (bytes >= scales[scale].below && scales[scale].below != UINT64_MAX) {
        scale++;
    }
    unit = UINT64_C(1) << scales[scale].shift;
    if (bytes % unit == 0) {
        snprintf(cell, TEXT_CELL_BYTES, "%" PRIu64 "%c", bytes / unit, scales[scale].unit);
    } else {
        snprintf(cell, TEXT_CELL_BYTES, "%.1f%c", (double)bytes / (double)unit, scales[scale].unit);
    }
}

void text_print_age(uint64_t seconds, char cell[TEXT_CELL_BYTES])
{
    uint64_t minutes = seconds / 60;
    uint64_t hours = minutes / 60;

    if (minutes == 0) {
        snprintf(cell, TEXT_CELL_BYTES, "%" PRIu64 "s", seconds);
    } else if (hours == 0) {
        snprintf(cell, TEXT_CELL_BYTES, "%" PRIu64 "m%02" PRIu64 "s", minutes, seconds % 60);
    } else if (hours < 24) {
        snprintf(cell, TEXT_CELL_BYTES, "%" PRIu64 "h%02" PRIu64 "m", hours, minutes % 60);
    } else {
        snprintf(cell, TEXT_CELL_BYTES, "%" PRIu64 "d%02" PRIu64 "h", hours / 24, hours % 24);
    }
}

/* Decodes one character. Returns its length in bytes; 0 if there is no valid one. */
static size_t text_decode(const char *at, uint32_t *rune)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* shorter forms exist below */
    unsigned char lead = (unsigned char)*at;
    size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    if (length <= 1) {
        *rune = lead;
        return length;
    }
    if (lead > 0xf4) {
        return 0;
    }
    *rune = lead & (0xffu >> (length + 1));
    for (size_t byte = 1; byte < length; byte++) {
        if (((unsigned char)at[byte] & 0xc0) != 0x80) { /* which also stops at the NUL */
            return 0;
        }
        *rune = *rune << 6 | ((unsigned char)at[byte] & 0x3fu);
    }
    if (*rune < least[length] || *rune > 0x10ffff || (*rune >= 0xd800 && *rune < 0xe000)) {
        return 0;
    }
    return length;
}

/* Characters that act on the terminal, or make text look like other text. */
static bool text_is_unsafe(uint32_t rune)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},
        {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (rune >= ranges[i].first && rune <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

char *text_clean(const char *bytes, bool is_utf8)
{
    char *clean = memory_check(malloc(TEXT_ESCAPE_BYTES * strlen(bytes) + 1));
    char *end = clean;

    for (const char *at = bytes; *at != '\0';) {
        uint32_t rune;
        size_t length = text_decode(at, &rune);

        if (length == 0) {
            end += sprintf(end, "\\x%02x", (unsigned char)*at);
            length = 1;
        } else if (text_is_unsafe(rune) || (rune >= 0x80 && !is_utf8)) {
            end += sprintf(end,
                           rune < 0x80      ? "\\x%02x"
                           : rune < 0x10000 ? "\\u%04x"
                                            : "\\U%08x",
                           rune);
        } else {
            memcpy(end, at, length);
            end += length;
        }
        at += length;
    }
    *end = '\0';
    return clean;
}

char *text_to_utf8(const char *bytes)
{
    char *valid = memory_check(malloc(TEXT_ESCAPE_BYTES * strlen(bytes) + 1));
    char *end = valid;

    for (const char *at = bytes; *at != '\0';) {
        uint32_t rune;
        size_t length = text_decode(at, &rune);

        if (length == 0) {
            end += sprintf(end, "\\x%02x", (unsigned char)*at);
            length = 1;
        } else {
            memcpy(end, at, length);
            end += length;
        }
        at += length;
    }
    *end = '\0';
    return valid;
}

size_t text_get_distance(const char *word, const char *other)
{
    enum { LONGEST = 24 };
    size_t table[LONGEST + 1][LONGEST + 1];
    size_t rows = strnlen(word, LONGEST);
    size_t columns = strnlen(other, LONGEST);

    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            size_t best = i == 0   ? j
                          : j == 0 ? i
                                   : table[i - 1][j - 1] + (word[i - 1] != other[j - 1]);

            if (i > 0 && j > 0) {
                best = table[i - 1][j] + 1 < best ? table[i - 1][j] + 1 : best;
                best = table[i][j - 1] + 1 < best ? table[i][j - 1] + 1 : best;
            }
            if (i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1]) {
                best = table[i - 2][j - 2] + 1 < best ? table[i - 2][j - 2] + 1 : best;
            }
            table[i][j] = best;
        }
    }
    return table[rows][columns];
}
