/* SPDX-License-Identifier: MIT
 *
 * Reads CUDA_VISIBLE_DEVICES as the driver does: see visible.h.
 */
#include "visible.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
    VISIBLE_PREFIX = 4, /* "GPU-" or "MIG-" */
    VISIBLE_LENGTH = VISIBLE_PREFIX + 36,
    VISIBLE_NONE = -1,    /* no device: the list ends before it */
    VISIBLE_UNKNOWN = -2, /* a MIG instance, which may well be there */
};

static bool visible_is_named(const char *text, size_t length)
{
    return length > VISIBLE_PREFIX && (strncasecmp(text, "GPU-", VISIBLE_PREFIX) == 0 ||
                                       strncasecmp(text, "MIG-", VISIBLE_PREFIX) == 0);
}

bool visible_uuid(const char *text, char uuid[VISIBLE_UUID_BYTES])
{
    if (!visible_is_named(text, strlen(text)) || strlen(text) != VISIBLE_LENGTH)
        return false;
    memcpy(uuid, "GPU-", VISIBLE_PREFIX);
    for (unsigned i = VISIBLE_PREFIX; i <= VISIBLE_LENGTH; i++)
        uuid[i] = (char)tolower((unsigned char)text[i]);
    return true;
}

/* Whether a name of that length is a UUID's beginning. */
static bool visible_fits(const char *name, size_t length, const char *uuid)
{
    return strncasecmp(name + VISIBLE_PREFIX, uuid + VISIBLE_PREFIX, length - VISIBLE_PREFIX) == 0;
}

/* The place in PCI order of the one GPU whose UUID begins with a name. */
static int visible_find_uuid(const struct visible_gpus *gpus, const char *name, size_t length)
{
    int found = VISIBLE_NONE;
    for (unsigned i = 0; i < gpus->count; i++) {
        if (!visible_fits(name, length, gpus->uuids[i]))
            continue;
        if (found != VISIBLE_NONE)
            return VISIBLE_NONE;
        found = (int)i;
    }
    if (found == VISIBLE_NONE && toupper((unsigned char)name[0]) == 'M')
        return VISIBLE_UNKNOWN;
    return found;
}

static int visible_find(const struct visible_gpus *gpus, const char *name, size_t length)
{
    unsigned index = 0;
    if (visible_is_named(name, length))
        return visible_find_uuid(gpus, name, length);
    if (length == 0 || length > 3)
        return VISIBLE_NONE;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)name[i]))
            return VISIBLE_NONE;
        index = index * 10 + (unsigned)(name[i] - '0');
    }
    return index < gpus->count ? (int)index : VISIBLE_NONE;
}

/* Without a list, all are visible; of MIG instances, which no list of GPUs holds, CUDA takes one.
 */
static int visible_ordinal_of_all(const struct visible_gpus *gpus, const char *uuid)
{
    for (unsigned i = 0; i < gpus->count; i++) {
        if (strcmp(gpus->uuids[i], uuid) == 0)
            return (int)i;
    }
    return 0;
}

int visible_ordinal(const char *list, const struct visible_gpus *gpus, const char *uuid)
{
    bool is_seen[VISIBLE_GPUS] = {false};
    int ordinal = -1;
    if (!list)
        return visible_ordinal_of_all(gpus, uuid);
    for (int place = 0; *list; place++) {
        list += strspn(list, " ");
        size_t length = strcspn(list, ", ");
        int gpu = visible_find(gpus, list, length);
        if (gpu == VISIBLE_NONE)
            break;
        if (gpu >= 0 && is_seen[gpu])
            return -1; /* one that is named twice makes all of them invisible */
        if (gpu >= 0)
            is_seen[gpu] = true;
        if (ordinal < 0 &&
            (gpu >= 0 ? strcmp(gpus->uuids[gpu], uuid) == 0 : visible_fits(list, length, uuid)))
            ordinal = place;
        list += length;
        list += strspn(list, " ,");
    }
    return ordinal;
}
