/* SPDX-License-Identifier: MIT
 *
 * User names and numbers, asked of the system once each: behind getpwuid may be a directory server,
 * and a table that is printed every second must not ask it every second.
 */
#include "users.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

enum { USERS_KEPT = 64 };

const char *users_get_name(uint32_t uid)
{
    static struct {
        uint32_t uid;
        char name[64]; /* "" for a free slot */
    } kept[USERS_KEPT];
    const size_t slot = uid % USERS_KEPT;

    if (kept[slot].name[0] == '\0' || kept[slot].uid != uid) {
        const struct passwd *entry = getpwuid(uid);

        kept[slot].uid = uid;
        if (entry && entry->pw_name[0] != '\0') {
            snprintf(kept[slot].name, sizeof(kept[slot].name), "%s", entry->pw_name);
        } else {
            snprintf(kept[slot].name, sizeof(kept[slot].name), "%" PRIu32, uid);
        }
    }
    return kept[slot].name;
}

bool users_find(const char *name, uint32_t *uid)
{
    const struct passwd *entry = getpwnam(name);
    unsigned long number;
    char *end;

    if (entry) {
        *uid = entry->pw_uid;
        return true;
    }
    errno = 0;
    number = strtoul(name, &end, 10);
    if (name[0] < '0' || name[0] > '9' || *end != '\0' || errno != 0 || number > UINT32_MAX) {
        return false;
    }
    *uid = (uint32_t)number;
    return true;
}
