// SPDX-License-Identifier: MIT
//
// Reads module images; see image.h.

#include "image.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_WORD "simgpu-module"

enum image_kind image_recognize(const void *image)
{
    static const unsigned char binaries[][4] = {
        {0x7f, 'E', 'L', 'F'}, {0xb1, 0x43, 0x62, 0x46}, {0x50, 0xed, 0x55, 0xba}};

    for (unsigned i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
        if (strncmp(image, (const char *)binaries[i], 4) == 0)
            return IMAGE_BINARY;
    if (strncmp(image, IMAGE_WORD, strlen(IMAGE_WORD)) == 0)
        return IMAGE_TEXT;
    return strstr(image, ".version") ? IMAGE_PTX : IMAGE_NONE;
}

static uint64_t image_number(const char *text, const char *key)
{
    const char *found = strstr(text, key);

    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

uint64_t image_code_bytes(enum image_kind kind, const void *image)
{
    return kind == IMAGE_TEXT ? image_number(image, "code=") : 0;
}

/* A state space as a word of its own: `ld.global.u32` has one as well. */
static const char *image_find_space(const char *at)
{
    for (; (at = strchr(at, '.')) != NULL; at++) {
        size_t length = strncmp(at, ".global", 7) == 0 ? 7 : strncmp(at, ".const", 6) == 0 ? 6 : 0;

        if (length && isspace((unsigned char)at[length]) && isspace((unsigned char)at[-1]))
            return at + length;
    }
    return NULL;
}

/* ".align 4 .b8 name[100]", up to the end of the declaration. */
static bool image_read_declaration(const char *at, struct image_variable *variable)
{
    uint64_t element = 0, count = 1;
    unsigned bits, align;
    int taken = 0;

    for (;;) {
        at += strspn(at, " \t\r\n");
        if (sscanf(at, ".align %u%n", &align, &taken) == 1) {
            at += taken;
        } else if (sscanf(at, ".%*1[bsuf]%u%n", &bits, &taken) == 1) {
            element = bits / 8;
            at += taken;
        } else if (*at == '.') {
            at += strcspn(at, " \t\r\n;");
        } else {
            break;
        }
    }
    size_t length = strcspn(at, "[;= \t\r\n,");
    if (!element || !length || length >= IMAGE_NAME_BYTES)
        return false;
    memcpy(variable->name, at, length);
    variable->name[length] = '\0';
    for (at += length; *at == '['; at += 1 + strcspn(at + 1, "[;=,"))
        count *= strtoull(at + 1, NULL, 10);
    variable->bytes = element * count;
    return variable->bytes != 0;
}

bool image_next_variable(enum image_kind kind, const char **at, struct image_variable *variable)
{
    if (kind == IMAGE_TEXT) {
        uint64_t bytes = image_number(*at, "globals=");

        *at += strlen(*at);
        *variable = (struct image_variable){.name = "globals", .bytes = bytes};
        return bytes != 0;
    }
    while (kind == IMAGE_PTX && (*at = image_find_space(*at)) != NULL)
        if (image_read_declaration(*at, variable))
            return true;
    return false;
}
