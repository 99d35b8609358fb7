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

/* What is refused, where that is not just memory, and what a person can ask less of, if there is
 * anything. */
static const struct {
    const char *name;
    const char *ask_less;
} refusal_words[] = {
    [LIMIT_ALLOCATION] = {"", "a smaller batch"},
    [LIMIT_CONTEXT] = {"a context", NULL},
    [LIMIT_GREEN_CONTEXT] = {"a green context", "fewer contexts"},
    [LIMIT_CODE] = {"code", "fewer libraries, CUDA_MODULE_LOADING=LAZY"},
    [LIMIT_STREAM] = {"a stream", "fewer streams"},
    [LIMIT_SETTING] = {"", "a smaller stack, heap or printf buffer"},
};

static bool refusal_is_overhead(const struct refusal *refusal)
{
    return refusal->what != LIMIT_ALLOCATION && refusal->what != LIMIT_SETTING;
}

static void refusal_add_request(struct text *text, const struct refusal *refusal)
{
    const char *name = refusal_words[refusal->what].name;
    text_add(text, "gpulimit: refused ");
    text_add(text, name);
    if (refusal->requested_bytes > 0) {
        text_add(text, name[0] != '\0' ? " of " : "");
        text_add_size(text, refusal->requested_bytes);
    }
    text_add(text, " on GPU ");
    text_add_number(text, refusal->device);
}

/* The smallest limit that would have let the request pass, as a value to copy. */
static void refusal_add_advice(struct text *text, const struct refusal *refusal,
                               uint64_t need_bytes)
{
    text_add(text, "gpulimit:   To let it pass, set GPU_LIMIT_MB to ");
    text_add_number(text, need_bytes / (1024 * 1024) + (need_bytes % (1024 * 1024) != 0));
    text_add(text, " or more");
    if (refusal_is_overhead(refusal))
        text_add(text, ", or GPU_LIMIT_COUNT=allocations, which counts what the program allocates "
                       "and nothing else");
    if (refusal_words[refusal->what].ask_less) {
        text_add(text, ", or ask for less (");
        text_add(text, refusal_words[refusal->what].ask_less);
        text_add(text, ")");
    }
    text_add(text, ".\n");
    if (!refusal->has_ledger)
        return;
    text_add(text, "gpulimit:   See who holds the memory: gpulimit-stat allocs -p ");
    text_add_number(text, (uint64_t)refusal->pid);
    text_add(text, "\n");
}

/* nvidia-smi and the program's own count differ by just this, and nobody shows it. */
static void refusal_add_overhead(struct text *text, const struct refusal *refusal)
{
    if (refusal->overhead_bytes == 0)
        return;
    text_add(text, "gpulimit:   Of what is in use, ");
    text_add_size(text, refusal->overhead_bytes);
    text_add(text, " is overhead that the driver takes: contexts, code, stacks, streams.\n");
}

static void refusal_add_why(struct text *text, const struct refusal *refusal)
{
    uint64_t left =
        refusal->limit_bytes > refusal->used_bytes ? refusal->limit_bytes - refusal->used_bytes : 0;
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
}

void refusal_explain(struct text *text, const struct refusal *refusal)
{
    text_init(text);
    refusal_add_request(text, refusal);
    if (refusal->limit_bytes == 0) {
        text_add(text, ": this GPU is not named in ");
        refusal_add_setting(text, refusal);
        text_add(text,
                 ", so none of its memory is allowed.\n"
                 "gpulimit:   To allow some, add a limit for it, or for all others with \"*=\".\n");
        return;
    }
    refusal_add_why(text, refusal);
    text_add(text, ").\ngpulimit:   asked for by ");
    text_add(text, refusal->api);
    text_add(text, " in process ");
    text_add_number(text, (uint64_t)refusal->pid);
    text_add(text, " (");
    text_add_quoted(text, refusal->command, 32);
    text_add(text, "), which got an ordinary CUDA out-of-memory error.\n");
    refusal_add_overhead(text, refusal);
    if (refusal->knows_card_free) {
        text_add(text, "gpulimit:   The GPU itself still has ");
        text_add_size(text, refusal->card_free_bytes);
        text_add(text, " free: only the limit stopped this.\n");
    }
    uint64_t need = refusal->used_bytes + refusal->requested_bytes;
    if (need >= refusal->requested_bytes && need < UINT64_C(1) << 50)
        refusal_add_advice(text, refusal, need);
}
