/* SPDX-License-Identifier: MIT
 *
 * The formatting of words.h.
 */
#include "report/words.h"

#include <string.h>

void text_init(struct text *text)
{
    text->length = 0;
}

static void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    size_t room = sizeof text->bytes - 1 - text->length;
    if (length > room)
        length = room;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

void text_add_byte(struct text *text, char byte)
{
    text_add_bytes(text, &byte, 1);
}

void text_add(struct text *text, const char *string)
{
    text_add_bytes(text, string, strlen(string));
}

void text_add_quoted(struct text *text, const char *string, size_t max_bytes)
{
    for (size_t i = 0; string[i] != '\0' && i < max_bytes; i++) {
        char byte = string[i];
        if ((unsigned char)byte < ' ' || byte == 0x7f)
            byte = '?';
        text_add_byte(text, byte);
    }
}

void text_add_number(struct text *text, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

void text_add_hex(struct text *text, uint64_t number)
{
    char digits[16];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number > 0);
    text_add_bytes(text, digits + at, sizeof digits - at);
}

void text_add_size(struct text *text, uint64_t bytes)
{
    static const char *const units[] = {" bytes", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    unsigned unit = 0;
    uint64_t scale = 1;
    /* 1024 MiB stay MiB, as limits are set in MiB; from 10 GiB on nobody counts those. */
    while (unit + 1 < sizeof units / sizeof units[0] &&
           bytes / scale >= (unit == 2 ? 10240 : 1024)) {
        scale *= 1024;
        unit++;
    }
    uint64_t whole = bytes / scale;
    uint64_t rest = bytes % scale;
    uint64_t tenths = (rest * 10 + scale - 1) / scale; /* 10 * 2^60 still fits */
    if (tenths >= 10) {
        whole++;
        tenths = 0;
    }
    text_add_number(text, whole);
    if (tenths > 0) {
        text_add(text, ".");
        text_add_number(text, tenths);
    }
    text_add(text, units[unit]);
}

const char *text_string(struct text *text)
{
    text->bytes[text->length] = '\0';
    return text->bytes;
}
