/* SPDX-License-Identifier: MIT
 *
 * User names and numbers, asked of the system once each.
 */
#ifndef GPULIMIT_TOOLS_USERS_H
#define GPULIMIT_TOOLS_USERS_H

#include <stdbool.h>
#include <stdint.h>

/* The name of a user, or the number in digits where the system knows no name. Lives until the next
 * call. Not thread-safe. */
const char *users_get_name(uint32_t uid);

/* Finds a user by name or by number in digits. False if there is no such name. */
bool users_find(const char *name, uint32_t *uid);

#endif
