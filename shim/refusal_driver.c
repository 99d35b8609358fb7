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

/* How the card is shared, as far as that can be known without asking anybody. */
static void refusal_add_shares(struct text *text, const struct refusal *refusal)
{
    uint64_t mine = refusal->holders.used_bytes;
    uint64_t taken = refusal->card_total_bytes - refusal->card_free_bytes;
    text_add(text, "gpulimit:   This process holds ");
    text_add_size(text, mine);
    if (refusal->knows_card_free && refusal->card_free_bytes <= refusal->card_total_bytes &&
        taken > mine) {
        text_add(text, ", everything else ");
        text_add_size(text, taken - mine);
    }
    text_add(text, ". See who: gpulimit-stat, nvidia-smi\n");
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
    text_add(text, " in use).\ngpulimit:   asked for by ");
    text_add_quoted(text, refusal->asked_by ? refusal->asked_by : refusal->api, 160);
    text_add(text, " in process ");
    text_add_number(text, (uint64_t)refusal->pid);
    text_add(text, " (");
    text_add_quoted(text, refusal->command, 32);
    text_add(text, ").\n");
    refusal_add_shares(text, refusal);
}
