/* SPDX-License-Identifier: MIT
 *
 * python_text_copy of python_frames.h. Python keeps strings as arrays of Unicode's numbers, as wide
 * as the largest needs.
 */
#include "python_frames.h"

#include <string.h>

static uint32_t text_character(const struct python_text *text, uint32_t index)
{
    if (text->width == 1)
        return ((const uint8_t *)text->data)[index];
    if (text->width == 2)
        return ((const uint16_t *)text->data)[index];
    return ((const uint32_t *)text->data)[index];
}

static uint32_t text_encode(char *out, uint32_t character)
{
    /* Halves of surrogate pairs stand for bytes of a file's name that were no UTF-8. */
    if ((character >= 0xd800 && character < 0xe000) || character > 0x10ffff)
        character = '?';
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    uint32_t bytes = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (uint32_t i = bytes - 1; i > 0; i--, character >>= 6)
        out[i] = (char)(0x80 | (character & 0x3f));
    out[0] = (char)((0xf00u >> bytes & 0xffu) | character);
    return bytes;
}

uint32_t python_text_copy(char *into, uint32_t most, const struct python_text *text)
{
    char one[4];
    uint32_t first = text->length, used = 0;
    while (first > 0) {
        uint32_t bytes = text_encode(one, text_character(text, first - 1));
        if (used + bytes > most)
            break;
        used += bytes;
        first--;
    }
    for (char *at = into; first < text->length; first++) {
        uint32_t bytes = text_encode(one, text_character(text, first));
        memcpy(at, one, bytes);
        at += bytes;
    }
    return used;
}
