/* SPDX-License-Identifier: MIT
 *
 * JSON by writer.h: two blanks of indentation a level, as jansson writes it for gpulimit-stat.
 */
#include "report/writer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void writer_flush(struct writer *writer)
{
    size_t done = 0;
    while (done < writer->length && !writer->is_failed) {
        ssize_t written = write(writer->file, writer->buffer + done, writer->length - done);
        if (written > 0)
            done += (size_t)written;
        else if (written == 0 || errno != EINTR)
            writer->is_failed = true;
    }
    writer->length = 0;
}

static void writer_put(struct writer *writer, const char *bytes, size_t length)
{
    if (writer->is_failed || !writer_has_room(writer, length)) {
        writer->is_failed = true;
        return;
    }
    writer->total += length;
    while (length > 0) {
        size_t room = sizeof writer->buffer - writer->length;
        size_t part = length < room ? length : room;
        memcpy(writer->buffer + writer->length, bytes, part);
        writer->length += part;
        bytes += part;
        length -= part;
        if (writer->length == sizeof writer->buffer)
            writer_flush(writer);
    }
}

static void writer_put_string(struct writer *writer, const char *string)
{
    writer_put(writer, string, strlen(string));
}

void writer_begin(struct writer *writer, int file, uint64_t most)
{
    writer->file = file;
    writer->depth = 0;
    writer->is_first = true;
    writer->is_failed = false;
    writer->length = 0;
    writer->total = 0;
    writer->most = most;
}

bool writer_end(struct writer *writer)
{
    writer_put(writer, "\n", 1);
    writer_flush(writer);
    return !writer->is_failed;
}

bool writer_has_room(const struct writer *writer, uint64_t bytes)
{
    return bytes <= writer->most - writer->total;
}

static void writer_put_line(struct writer *writer)
{
    writer_put(writer, "\n", 1);
    for (unsigned i = 0; i < writer->depth; i++)
        writer_put(writer, "  ", 2);
}

/* The bytes of the UTF-8 character at the start of a text, by RFC 3629; 0 if there is none. */
static size_t writer_character(const unsigned char *at)
{
    static const struct {
        unsigned char first, last; /* first byte */
        unsigned char low, high;   /* second byte */
        unsigned char bytes;
    } forms[] = {
        {0x20, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        size_t bytes = forms[i].bytes;
        if (at[0] < forms[i].first || at[0] > forms[i].last)
            continue;
        if (bytes == 1)
            return 1;
        if (at[1] < forms[i].low || at[1] > forms[i].high)
            return 0;
        for (size_t next = 2; next < bytes; next++) {
            if (at[next] < 0x80 || at[next] > 0xbf)
                return 0;
        }
        return bytes;
    }
    return 0;
}

/* Characters that act on a terminal, or hide and reorder text: whoever looks at the file may do so
 * with cat. In JSON they can be told by their numbers. Returns the number, or 0. */
static unsigned writer_unsafe(const unsigned char *at, size_t bytes)
{
    static const struct {
        unsigned first, last;
    } ranges[] = {{0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200f},
                  {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}};
    unsigned rune = at[0];
    if (bytes == 2)
        rune = (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
    else if (bytes == 3)
        rune = (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    for (size_t i = 0; bytes < 4 && i < sizeof ranges / sizeof ranges[0]; i++) {
        if (rune >= ranges[i].first && rune <= ranges[i].last)
            return rune;
    }
    return 0;
}

/* A byte that is no character stands for the one of that number: nothing is lost, and it is JSON.
 */
static void writer_put_escaped(struct writer *writer, unsigned number)
{
    static const char digits[] = "0123456789abcdef";
    const char escaped[] = {'\\',
                            'u',
                            digits[number >> 12 & 15],
                            digits[number >> 8 & 15],
                            digits[number >> 4 & 15],
                            digits[number & 15]};
    writer_put(writer, escaped, sizeof escaped);
}

static void writer_put_text(struct writer *writer, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    writer_put(writer, "\"", 1);
    while (*at != '\0') {
        size_t bytes = writer_character(at);
        unsigned unsafe = writer_unsafe(at, bytes);
        if (*at == '"' || *at == '\\')
            writer_put(writer, "\\", 1);
        if (bytes == 0 || unsafe > 0)
            writer_put_escaped(writer, bytes == 0 ? *at : unsafe);
        else
            writer_put(writer, (const char *)at, bytes);
        at += bytes == 0 ? 1 : bytes;
    }
    writer_put(writer, "\"", 1);
}

/* What comes before a value. */
static void writer_start(struct writer *writer, const char *key)
{
    if (!writer->is_first)
        writer_put(writer, ",", 1);
    if (writer->depth > 0)
        writer_put_line(writer);
    if (key) {
        writer_put_text(writer, key);
        writer_put(writer, ": ", 2);
    }
    writer->is_first = false;
}

static void writer_open(struct writer *writer, const char *key, const char *bracket)
{
    writer_start(writer, key);
    writer_put(writer, bracket, 1);
    writer->depth++;
    writer->is_first = true;
}

static void writer_close(struct writer *writer, const char *bracket)
{
    writer->depth--;
    if (!writer->is_first)
        writer_put_line(writer);
    writer_put(writer, bracket, 1);
    writer->is_first = false;
}

void writer_open_object(struct writer *writer, const char *key)
{
    writer_open(writer, key, "{");
}

void writer_open_array(struct writer *writer, const char *key)
{
    writer_open(writer, key, "[");
}

void writer_close_object(struct writer *writer)
{
    writer_close(writer, "}");
}

void writer_close_array(struct writer *writer)
{
    writer_close(writer, "]");
}

void writer_add_text(struct writer *writer, const char *key, const char *text)
{
    writer_start(writer, key);
    if (text)
        writer_put_text(writer, text);
    else
        writer_put_string(writer, "null");
}

/* Writes the digits of a number, at least so many, to the end of a buffer. Returns the first. */
static char *writer_digits(char *end, uint64_t number, unsigned base, unsigned least)
{
    *end = '\0';
    for (; number > 0 || least > 0; number /= base) {
        *--end = "0123456789abcdef"[number % base];
        least -= least > 0;
    }
    return end;
}

void writer_add_number(struct writer *writer, const char *key, uint64_t number)
{
    char digits[21];
    writer_start(writer, key);
    writer_put_string(writer, writer_digits(digits + sizeof digits - 1, number, 10, 1));
}

void writer_add_bool(struct writer *writer, const char *key, bool is_true)
{
    writer_start(writer, key);
    writer_put_string(writer, is_true ? "true" : "false");
}

void writer_add_null(struct writer *writer, const char *key)
{
    writer_add_text(writer, key, NULL);
}

void writer_add_address(struct writer *writer, const char *key, uint64_t address)
{
    char digits[17];
    writer_start(writer, key);
    writer_put_string(writer, "\"0x");
    writer_put_string(writer, writer_digits(digits + sizeof digits - 1, address, 16, 1));
    writer_put(writer, "\"", 1);
}

/* The calendar of a day since 1970, by the Gregorian rule of 400 years; gmtime_r would take libc's
 * lock around the time zone. Years begin in March here, so that leap days end them. */
static void writer_date(uint64_t day, unsigned *year, unsigned *month, unsigned *of_month)
{
    uint64_t days = day + 719468; /* since 1 March of the year 0 */
    uint64_t era = days / 146097;
    uint64_t of_era = days % 146097;
    uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned from_march = (unsigned)((5 * of_year + 2) / 153);
    *of_month = (unsigned)(of_year - (153 * from_march + 2) / 5 + 1);
    *month = from_march < 10 ? from_march + 3 : from_march - 9;
    *year = (unsigned)(era * 400 + year_of_era) + (*month <= 2);
}

static void writer_put_part(struct writer *writer, const char *before, uint64_t number,
                            unsigned digits)
{
    char room[21];
    writer_put_string(writer, before);
    writer_put_string(writer, writer_digits(room + sizeof room - 1, number, 10, digits));
}

void writer_add_time(struct writer *writer, const char *key, uint64_t time_ns)
{
    uint64_t seconds = time_ns / 1000000000u;
    unsigned year, month, day;
    if (time_ns == 0) {
        writer_add_null(writer, key);
        return;
    }
    writer_start(writer, key);
    writer_date(seconds / 86400, &year, &month, &day);
    writer_put_part(writer, "\"", year, 4);
    writer_put_part(writer, "-", month, 2);
    writer_put_part(writer, "-", day, 2);
    writer_put_part(writer, "T", seconds / 3600 % 24, 2);
    writer_put_part(writer, ":", seconds / 60 % 60, 2);
    writer_put_part(writer, ":", seconds % 60, 2);
    writer_put_part(writer, ".", time_ns / 1000000 % 1000, 3);
    writer_put_string(writer, "Z\"");
}

void writer_add_seconds(struct writer *writer, const char *key, uint64_t time_ns)
{
    writer_start(writer, key);
    writer_put_part(writer, "", time_ns / 1000000000u, 1);
    writer_put_part(writer, ".", time_ns / 1000000 % 1000, 3);
}
