/* SPDX-License-Identifier: MIT
 *
 * The rule of site_name.h.
 */
#include "site_name.h"

#include "log.h"

#include "gpulimit/frames.h"

#include <string.h>

/* Of equals the first to come stays: it is the innermost. */
static bool site_is_better(const struct site_name *name, enum gpulimit_frame_rank rank)
{
    return name->text[0] == '\0' || rank < name->rank;
}

static void site_keep(struct site_name *name, enum gpulimit_frame_rank rank, struct text *text)
{
    name->rank = rank;
    memset(name->text, 0, sizeof name->text);
    memcpy(name->text, text_string(text), strnlen(text_string(text), SITE_NAME_BYTES - 1));
}

void site_name_add_python(struct site_name *name, const char *file, const char *function,
                          uint32_t line)
{
    enum gpulimit_frame_rank rank = gpulimit_rank_python(file);
    struct text text;
    if (!site_is_better(name, rank))
        return;
    text_init(&text);
    text_add(&text, gpulimit_frame_base(file));
    text_add(&text, ":");
    text_add_number(&text, line);
    text_add(&text, " ");
    text_add(&text, function);
    site_keep(name, rank, &text);
}

void site_name_add_native(struct site_name *name, const char *path, uint64_t place)
{
    enum gpulimit_frame_rank rank = gpulimit_rank_native(path);
    struct text text;
    if (!site_is_better(name, rank))
        return;
    text_init(&text);
    text_add(&text, path[0] != '\0' ? gpulimit_frame_base(path) : "code made at run time");
    text_add(&text, "+0x");
    text_add_hex(&text, place);
    site_keep(name, rank, &text);
}
