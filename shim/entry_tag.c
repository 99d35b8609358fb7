/* SPDX-License-Identifier: MIT
 *
 * What programs call by name: gpulimit/gpulimit.h.
 */
#define GPULIMIT_DECLARE
#pragma GCC visibility push(default)
#include "gpulimit/gpulimit.h"
#pragma GCC visibility pop

#include "limit_history.h"
#include "tags.h"

#include <errno.h>

void gpulimit_tag_push(const char *name)
{
    tags_push(TAGS_OWN, name);
}

void gpulimit_tag_pop(void)
{
    tags_pop(TAGS_OWN);
}

void gpulimit_mark(const char *name)
{
    int saved = errno;
    limit_mark(name ? name : "");
    errno = saved;
}
