/* SPDX-License-Identifier: MIT
 *
 * The wording of refusal.h: of one refusal.
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

const char *refusal_ask_less(enum limit_what what)
{
    return refusal_words[what].ask_less;
}

/* Whether nothing that the program may free makes enough room. */
static bool refusal_overhead_is_too_much(const struct refusal *refusal)
{
    uint64_t overhead = refusal->holders.overhead_bytes;
    return overhead > 0 && refusal->need_bytes <= refusal->limit_bytes &&
           overhead + refusal->need_bytes > refusal->limit_bytes;
}

static bool refusal_is_overhead(const struct refusal *refusal)
{
    return refusal->what != LIMIT_ALLOCATION && refusal->what != LIMIT_SETTING;
}

void refusal_add_thing(struct text *text, const struct refusal *refusal)
{
    const char *name = refusal_words[refusal->what].name;
    text_add(text, name);
    if (refusal->requested_bytes > 0) {
        text_add(text, name[0] != '\0' ? " of " : "");
        text_add_size(text, refusal->requested_bytes);
    }
}

static void refusal_add_request(struct text *text, const struct refusal *refusal)
{
    refusal_add_thing(text, refusal);
    if (refusal->need_bytes > refusal->requested_bytes) {
        text_add(text, ", which takes up to ");
        text_add_size(text, refusal->need_bytes);
        text_add(text, ",");
    }
    text_add(text, " on GPU ");
    text_add_number(text, refusal->device);
}

static uint64_t refusal_left(const struct refusal *refusal)
{
    uint64_t used = refusal->holders.used_bytes;
    return refusal->limit_bytes > used ? refusal->limit_bytes - used : 0;
}

/* Whether there is room by now: another thread freed after this one was refused. */
static bool refusal_is_past(const struct refusal *refusal)
{
    return refusal->holders.used_bytes <= refusal->limit_bytes &&
           refusal->need_bytes <= refusal_left(refusal);
}

static void refusal_add_why(struct text *text, const struct refusal *refusal)
{
    if (refusal->need_bytes > refusal->limit_bytes) {
        text_add(text, ": larger than the whole limit of ");
        text_add_size(text, refusal->limit_bytes);
        text_add(text, ", so it can never succeed (");
    } else {
        text_add(text, ": ");
        text_add_size(text, refusal->holders.used_bytes);
        text_add(text, " of the limit of ");
        text_add_size(text, refusal->limit_bytes);
        text_add(text, " in use, ");
        text_add_size(text, refusal_left(refusal));
        text_add(text, refusal_is_past(refusal) ? " left by now (" : " left (");
    }
    refusal_add_setting(text, refusal);
    text_add(text, ").\n");
}

static void refusal_add_tag(struct text *text, const struct refusal *refusal)
{
    if (!refusal->tag)
        return;
    text_add(text, " in \"");
    text_add_quoted(text, refusal->tag, 40);
    text_add(text, "\"");
}

void refusal_add_asker(struct text *text, const struct refusal *refusal)
{
    text_add(text, "gpulimit:   asked for by ");
    if (refusal->asked_by) {
        text_add_quoted(text, refusal->asked_by, 160);
        refusal_add_tag(text, refusal);
        text_add(text, " (");
        text_add(text, refusal->api);
        text_add(text, ")");
    } else {
        text_add(text, refusal->api);
        refusal_add_tag(text, refusal);
    }
    text_add(text, " in process ");
    text_add_number(text, (uint64_t)refusal->pid);
    text_add(text, " (");
    text_add_quoted(text, refusal->command, 32);
    text_add(text, ")");
}

static void refusal_add_counted(struct text *text, uint64_t count, const char *one,
                                const char *several)
{
    text_add_number(text, count);
    text_add(text, count == 1 ? one : several);
}

static void refusal_add_holders(struct text *text, const struct limit_holders *holders)
{
    if (holders->named_count == 0)
        return;
    text_add(text, "gpulimit:   held by ");
    for (unsigned i = 0; i < holders->named_count; i++) {
        const struct limit_holder *holder = &holders->named[i];
        text_add(text, i > 0 ? "; " : "");
        text_add_quoted(text, holder->text, 100);
        text_add(text, " ");
        text_add_size(text, holder->bytes);
        if (holder->count > 0) {
            text_add(text, " (");
            refusal_add_counted(text, holder->count, " allocation)", " allocations)");
        }
    }
    if (holders->others > 0) {
        text_add(text, "; ");
        refusal_add_counted(text, holders->others, " other ", " others ");
        text_add_size(text, holders->others_bytes);
    }
    text_add(text, ".\n");
}

static void refusal_add_card(struct text *text, const struct refusal *refusal)
{
    if (!refusal->knows_card_free)
        return;
    bool fits = refusal->need_bytes <= refusal->card_free_bytes;
    text_add(text,
             fits ? "gpulimit:   The GPU itself still has " : "gpulimit:   The GPU itself has ");
    text_add_size(text, refusal->card_free_bytes);
    text_add(text, fits ? " free: only the limit stopped this.\n"
                        : " free: without the limit it would not fit either.\n");
}

bool refusal_fits_uncounted(const struct refusal *refusal)
{
    uint64_t allocated = refusal->holders.used_bytes - refusal->holders.overhead_bytes;
    return refusal_is_overhead(refusal) ||
           (refusal_overhead_is_too_much(refusal) && allocated <= refusal->limit_bytes &&
            refusal->need_bytes <= refusal->limit_bytes - allocated);
}

/* The smallest limit that would have let the request pass, as a value to copy. */
static void refusal_add_advice(struct text *text, const struct refusal *refusal)
{
    uint64_t need = refusal->holders.used_bytes + refusal->need_bytes;
    if (need < refusal->need_bytes || need >= UINT64_C(1) << 50)
        return;
    text_add(text, "gpulimit:   ");
    if (refusal_is_past(refusal)) {
        text_add(text, "There is room by now: a second try can pass.\n");
        return;
    }
    if (refusal_overhead_is_too_much(refusal))
        text_add(text, "Freeing memory cannot help, as overhead stays. ");
    text_add(text, "To let it pass, set GPU_LIMIT_MB to ");
    text_add_number(text, need / (1024 * 1024) + (need % (1024 * 1024) != 0));
    text_add(text, " or more");
    if (refusal_fits_uncounted(refusal))
        text_add(text, ", or GPU_LIMIT_COUNT=allocations, which counts what the program allocates "
                       "and nothing else");
    if (refusal_ask_less(refusal->what)) {
        text_add(text, ", or ask for less (");
        text_add(text, refusal_ask_less(refusal->what));
        text_add(text, ")");
    }
    text_add(text, ".\n");
}

void refusal_add_report(struct text *text, const struct refusal *refusal)
{
    if (!refusal->report_path)
        return;
    text_add(text, "gpulimit:   See the whole story: gpulimit-stat report ");
    text_add_quoted(text, refusal->report_path, 512);
    text_add(text, "\n");
}

static void refusal_add_more(struct text *text, const struct refusal *refusal)
{
    refusal_add_report(text, refusal);
    if (!refusal->report_path && refusal->has_ledger) {
        text_add(text, "gpulimit:   See who holds the memory: gpulimit-stat allocs -p ");
        text_add_number(text, (uint64_t)refusal->pid);
        text_add(text, "\n");
    }
}

void refusal_explain(struct text *text, const struct refusal *refusal)
{
    text_init(text);
    text_add(text, "gpulimit: refused ");
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
    refusal_add_asker(text, refusal);
    text_add(text, ", which got an ordinary CUDA out-of-memory error.\n");
    refusal_add_holders(text, &refusal->holders);
    refusal_add_card(text, refusal);
    refusal_add_advice(text, refusal);
    refusal_add_more(text, refusal);
}
