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

char *image_copy(const void *image)
{
    return image_recognize(image) == IMAGE_BINARY ? strndup(image, 4) : strdup(image);
}

/* What follows a directive that stands as a word of its own: `ld.global.u32` has one as well.
 * `directive` comes with its dot. */
static const char *image_find_directive(const char *at, const char *directive)
{
    size_t length = strlen(directive);

    for (const char *image = at; (at = strstr(at, directive)) != NULL; at++)
        if (isspace((unsigned char)at[length]) && (at == image || isspace((unsigned char)at[-1])))
            return at + length;
    return NULL;
}

static const char *image_find_space(const char *at)
{
    const char *global = image_find_directive(at, ".global");
    const char *constant = image_find_directive(at, ".const");

    return !global || (constant && constant < global) ? constant : global;
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

static bool image_has_word(const char *at, const char *word)
{
    size_t length = strlen(word);

    for (const char *image = at; (at = strstr(at, word)) != NULL; at++)
        if (!isalnum((unsigned char)at[length]) && at[length] != '_' && at > image &&
            !isalnum((unsigned char)at[-1]) && at[-1] != '_')
            return true;
    return false;
}

struct overhead_needs image_needs(enum image_kind kind, const void *image)
{
    if (kind == IMAGE_BINARY)
        return (struct overhead_needs){0};
    return (struct overhead_needs){
        .heap = image_has_word(image, kind == IMAGE_PTX ? "malloc" : "heap"),
        .printf = image_has_word(image, kind == IMAGE_PTX ? "vprintf" : "printf"),
    };
}

static uint64_t image_local_bytes(const char *at, const char *end)
{
    struct image_variable variable;
    uint64_t bytes = 0;

    while ((at = image_find_directive(at, ".local")) != NULL && (!end || at < end))
        if (image_read_declaration(at, &variable))
            bytes += variable.bytes;
    return bytes;
}

static bool image_find_entry(const char *at, const char *name, struct overhead_needs *needs)
{
    size_t length = strlen(name);

    while ((at = image_find_directive(at, ".entry")) != NULL) {
        at += strspn(at, " \t\r\n");
        if (strcspn(at, "( \t\r\n{") != length || strncmp(at, name, length) != 0)
            continue;
        needs->local_bytes = image_local_bytes(at, image_find_directive(at, ".entry"));
        return true;
    }
    return false;
}

bool image_find_kernel(enum image_kind kind, const void *image, const char *name,
                       struct overhead_needs *needs)
{
    *needs = image_needs(kind, image);
    if (kind == IMAGE_PTX)
        return image_find_entry(image, name, needs);
    if (kind == IMAGE_TEXT)
        needs->local_bytes = image_number(image, "local=");
    return kind == IMAGE_BINARY || strcmp(name, "kernel") == 0;
}
