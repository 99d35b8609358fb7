/* SPDX-License-Identifier: MIT
 *
 * The wording of refusal.h: one line about all that came after the first refusal.
 */
#include "refusal.h"

#include <string.h>

/* The time of day, of the one zone that nobody has to be asked for: localtime reads files. */
static void refusal_add_time(struct text *text, uint64_t time_s)
{
    const uint64_t parts[] = {time_s / 3600 % 24, time_s / 60 % 60, time_s % 60};
    for (unsigned i = 0; i < 3; i++) {
        text_add(text, i > 0 ? ":" : "");
        text_add(text, parts[i] < 10 ? "0" : "");
        text_add_number(text, parts[i]);
    }
    text_add(text, " UTC");
}

static void refusal_add_requests(struct text *text, uint64_t count, const char *kind)
{
    text_add_number(text, count);
    text_add(text, kind);
    text_add(text, count == 1 ? " request" : " requests");
}

void refusal_tell_more(struct text *text, unsigned device, const struct pace_turn *turn)
{
    text_init(text);
    text_add(text, "gpulimit: refused ");
    refusal_add_requests(text, turn->count, " more");
    if (turn->largest_bytes > 0) {
        text_add(text, turn->count == 1 ? " (" : " (largest ");
        text_add_size(text, turn->largest_bytes);
        text_add(text, ")");
    }
    text_add(text, " on GPU ");
    text_add_number(text, device);
    text_add(text, " since ");
    refusal_add_time(text, turn->since_time_s);
    text_add(text, "\n");
}

/* "1019.8 of 1024 MiB": a unit that both have is said once. */
static void refusal_add_part(struct text *text, uint64_t bytes, uint64_t whole_bytes)
{
    struct text part, whole;
    text_init(&part);
    text_init(&whole);
    text_add_size(&part, bytes);
    text_add_size(&whole, whole_bytes);
    const char *unit = strchr(text_string(&part), ' ');
    if (strcmp(unit, strchr(text_string(&whole), ' ')) == 0)
        part.length = (size_t)(unit - part.bytes);
    text_add(text, text_string(&part));
    text_add(text, " of ");
    text_add(text, text_string(&whole));
}

void refusal_add_end(struct text *text, const struct refusal_end *end)
{
    text_add(text, "gpulimit: GPU ");
    text_add_number(text, end->device);
    if (end->limit_bytes == 0) {
        text_add(text, " is not named in GPU_LIMIT_MB=");
        text_add_quoted(text, end->limit_text, 60);
    } else {
        text_add(text, " peak ");
        refusal_add_part(text, end->peak_bytes, end->limit_bytes);
        /* A context's size is known when it is there, late code's when a kernel has brought it. */
        if (end->peak_bytes > end->limit_bytes)
            text_add(text, " (over it by overhead that nobody could refuse)");
    }
    text_add(text, ", ");
    refusal_add_requests(text, end->refused, "");
    text_add(text, " refused");
    if (end->recovered > 0) {
        text_add(text, " (");
        text_add_number(text, end->recovered);
        text_add(text, " later succeeded)");
    }
    if (end->driver_refused > 0) {
        text_add(text, ", and ");
        text_add_number(text, end->driver_refused);
        text_add(text, " by the driver itself");
    }
    text_add(text, ".\n");
}
