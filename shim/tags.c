/* SPDX-License-Identifier: MIT
 *
 * A stack of names in thread-local memory.
 */
#include "tags.h"

#include <string.h>

static _Thread_local struct {
    unsigned depth;
    /* By owner: all that it has pushed, and those among them that found no place. */
    uint32_t pushed[TAGS_OWNERS], unkept[TAGS_OWNERS];
    struct tags_name names[TAGS_DEPTH];
} tags __attribute__((tls_model("initial-exec")));

/* A loop pushes the same name again: its number still holds then. Names are short: a byte at a time
 * is faster than three calls of libc. */
static void tags_set(struct tags_name *at, const char *name)
{
    size_t length = 0;
    int changes = 0;
    for (; name[length] != '\0' && length < sizeof at->text - 1; length++) {
        changes |= at->text[length] ^ name[length];
        at->text[length] = name[length];
    }
    if (changes == 0 && at->text[length] == '\0')
        return;
    at->text[length] = '\0';
    at->is_numbered = false;
}

unsigned tags_push(unsigned owner, const char *name)
{
    if (tags.depth == TAGS_DEPTH) {
        tags.unkept[owner]++;
        return tags.pushed[owner]++;
    }
    struct tags_name *at = &tags.names[tags.depth++];
    tags_set(at, name ? name : "");
    at->owner = (uint8_t)owner;
    return tags.pushed[owner]++;
}

int tags_pop(unsigned owner)
{
    unsigned at = tags.depth;
    if (tags.pushed[owner] == 0)
        return -1;
    if (tags.unkept[owner] > 0) {
        tags.unkept[owner]--;
        return (int)--tags.pushed[owner];
    }
    while (tags.names[at - 1].owner != owner)
        at--;
    /* Seldom: another owner has pushed since, and not popped. */
    if (at < tags.depth)
        memmove(&tags.names[at - 1], &tags.names[at], (tags.depth - at) * sizeof(struct tags_name));
    tags.depth--;
    return (int)--tags.pushed[owner];
}

struct tags_name *tags_current(void)
{
    for (unsigned at = tags.depth; at > 0; at--) {
        if (tags.names[at - 1].text[0] != '\0')
            return &tags.names[at - 1];
    }
    return NULL;
}
