/* SPDX-License-Identifier: MIT
 *
 * The formatting and the one write(2) of log.h.
 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *log_target = "stderr"; /* set once, before the first hook returns */

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
        text_add_bytes(text, &byte, 1);
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

void log_set_target(const char *target)
{
    log_target = target;
}

/* Opens the file of the target for this one text: no descriptor of ours stays open in the program.
 */
static int log_open(const char *path)
{
    struct text name;
    text_init(&name);
    for (const char *at = path; *at; at++) {
        if (at[0] == '%' && at[1] == 'p') {
            text_add_number(&name, (uint64_t)getpid());
            at++;
        } else {
            text_add_bytes(&name, at, 1);
        }
    }
    return open(text_string(&name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
}

void log_write(const struct text *text)
{
    int saved = errno;
    if (strcmp(log_target, "stderr") == 0) {
        (void)!write(STDERR_FILENO, text->bytes, text->length);
    } else if (strcmp(log_target, "none") != 0) {
        int file = log_open(log_target);
        if (file >= 0) {
            (void)!write(file, text->bytes, text->length);
            close(file);
        }
    }
    errno = saved;
}
