/* SPDX-License-Identifier: MIT
 *
 * The wording of refusal.h.
 */
#include "refusal.h"

static void refusal_add_setting(struct text *text, const struct refusal *refusal)
{
    text_add(text, "GPU_LIMIT_MB=");
    text_add_quoted(text, refusal->limit_text, 60);
}

/* The smallest limit that would have let the request pass, as a value to copy. */
static void refusal_add_advice(struct text *text, const struct refusal *refusal,
                               uint64_t need_bytes)
{
    text_add(text, "gpulimit:   To let it pass, set GPU_LIMIT_MB to ");
    text_add_number(text, need_bytes / (1024 * 1024) + (need_bytes % (1024 * 1024) != 0));
    text_add(text, refusal->is_setting
                       ? " or more, or ask for less (a smaller stack, heap or printf buffer).\n"
                       : " or more, or ask for less (a smaller batch).\n");
    if (!refusal->has_ledger)
        return;
    text_add(text, "gpulimit:   See who holds the memory: gpulimit-stat allocs -p ");
    text_add_number(text, (uint64_t)refusal->pid);
    text_add(text, "\n");
}

void refusal_explain(struct text *text, const struct refusal *refusal)
{
    uint64_t left =
        refusal->limit_bytes > refusal->used_bytes ? refusal->limit_bytes - refusal->used_bytes : 0;
    text_init(text);
    text_add(text, "gpulimit: refused ");
    text_add_size(text, refusal->requested_bytes);
    text_add(text, " on GPU ");
    text_add_number(text, refusal->device);
    if (refusal->limit_bytes == 0) {
        text_add(text, ": this GPU is not named in ");
        refusal_add_setting(text, refusal);
        text_add(text,
                 ", so none of its memory is allowed.\n"
                 "gpulimit:   To allow some, add a limit for it, or for all others with \"*=\".\n");
        return;
    }
    if (refusal->requested_bytes > refusal->limit_bytes) {
        text_add(text, ": larger than the whole limit of ");
        text_add_size(text, refusal->limit_bytes);
        text_add(text, ", so it can never succeed (");
    } else {
        text_add(text, ": ");
        text_add_size(text, refusal->used_bytes);
        text_add(text, " of the limit of ");
        text_add_size(text, refusal->limit_bytes);
        text_add(text, " in use, ");
        text_add_size(text, left);
        text_add(text, " left (");
    }
    refusal_add_setting(text, refusal);
    text_add(text, ").\ngpulimit:   asked for by ");
    text_add(text, refusal->api);
    text_add(text, " in process ");
    text_add_number(text, (uint64_t)refusal->pid);
    text_add(text, " (");
    text_add_quoted(text, refusal->command, 32);
    text_add(text, "), which got an ordinary CUDA out-of-memory error.\n");
    if (refusal->knows_card_free) {
        text_add(text, "gpulimit:   The GPU itself still has ");
        text_add_size(text, refusal->card_free_bytes);
        text_add(text, " free: only the limit stopped this.\n");
    }
    uint64_t need = refusal->used_bytes + refusal->requested_bytes;
    if (need >= refusal->requested_bytes && need < UINT64_C(1) << 50)
        refusal_add_advice(text, refusal, need);
}
