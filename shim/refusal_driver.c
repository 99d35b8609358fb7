/* SPDX-License-Identifier: MIT
 *
 * The wording of refusal.h: of a request that the driver refused, and not the limit.
 */
#include "refusal.h"

/* A driver that refuses what the card has free means another shortage: no piece of that size, a
 * pool's own maximum. */
static bool refusal_card_is_full(const struct refusal *refusal)
{
    return refusal->card_free_bytes < refusal->need_bytes;
}

static void refusal_add_card_free(struct text *text, const struct refusal *refusal)
{
    if (!refusal->knows_card_free)
        return;
    if (refusal->need_bytes == 0) /* nobody knows how much it was */
        text_add(text, ": the card has ");
    else if (refusal_card_is_full(refusal))
        text_add(text, ": the card is really full, ");
    else
        text_add(text, ": for a reason of its own, with ");
    text_add_size(text, refusal->card_free_bytes);
    text_add(text, " free of ");
    text_add_size(text, refusal->card_total_bytes);
}

/* How many of the other processes are named. */
enum { REFUSAL_NEIGHBOURS = 4 };

/* Adds the other processes whose ledgers can be read, and returns what they hold together. */
static uint64_t refusal_add_neighbours(struct text *text, const struct neighbours *neighbours)
{
    uint64_t more = neighbours->others, more_bytes = neighbours->others_bytes, bytes = 0;
    for (unsigned i = 0; i < neighbours->named_count; i++) {
        const struct neighbour *one = &neighbours->named[i];
        bytes += one->bytes;
        if (i >= REFUSAL_NEIGHBOURS) {
            more++;
            more_bytes += one->bytes;
            continue;
        }
        text_add(text, "; process ");
        text_add_number(text, (uint64_t)one->pid);
        text_add(text, " (");
        text_add_quoted(text, one->command, 32);
        text_add(text, ") ");
        text_add_size(text, one->bytes);
    }
    if (more > 0) {
        text_add(text, "; ");
        text_add_number(text, more);
        text_add(text, " more processes ");
        text_add_size(text, more_bytes);
    }
    return bytes + neighbours->others_bytes;
}

/* Who has the card, as far as ledgers and the card itself tell. */
static void refusal_add_shares(struct text *text, const struct refusal *refusal)
{
    const struct neighbours *neighbours = refusal->neighbours;
    uint64_t known = refusal->holders.used_bytes;
    uint64_t taken = 0;
    text_add(text, "gpulimit:   held by this process ");
    text_add_size(text, known);
    if (neighbours)
        known += refusal_add_neighbours(text, neighbours);
    if (refusal->knows_card_free && refusal->card_free_bytes <= refusal->card_total_bytes)
        taken = refusal->card_total_bytes - refusal->card_free_bytes;
    if (taken > known) {
        text_add(text, neighbours && neighbours->is_complete ? "; others, outside gpulimit, "
                                                             : "; others ");
        text_add_size(text, taken - known);
    }
    text_add(text, ".\ngpulimit:   See who: gpulimit-stat, nvidia-smi\n");
}

void refusal_explain_driver(struct text *text, const struct refusal *refusal)
{
    text_init(text);
    text_add(text, "gpulimit: the driver, not the limit, refused ");
    refusal_add_thing(text, refusal);
    text_add(text, " on GPU ");
    text_add_number(text, refusal->device);
    refusal_add_card_free(text, refusal);
    text_add(text, " (");
    text_add_size(text, refusal->holders.used_bytes);
    text_add(text, " of GPU_LIMIT_MB=");
    text_add_quoted(text, refusal->limit_text, 60);
    text_add(text, " in use).\n");
    refusal_add_asker(text, refusal);
    text_add(text, ".\n");
    refusal_add_shares(text, refusal);
    refusal_add_report(text, refusal);
}
