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

/* A loop pushes the same name again: its number still holds then. */
static void tags_set(struct tags_name *at, const char *name)
{
    size_t length = strnlen(name, sizeof at->text - 1);
    if (memcmp(at->text, name, length) == 0 && at->text[length] == '\0')
        return;
    memcpy(at->text, name, length);
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
