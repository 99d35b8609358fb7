/* SPDX-License-Identifier: MIT
 *
 * The part of limit_oom.h that judges: why it was refused, and what can be done. The codes are for
 * programs and stay, the texts are for people.
 */
#include "limit_oom_parts.h"

enum limit_oom_cause limit_oom_cause(const struct limit_oom *oom, const struct limit_live *live)
{
    const struct refusal *refusal = oom->refusal;
    if (oom->is_by_driver)
        return LIMIT_OOM_DRIVER;
    if (refusal->limit_bytes == 0)
        return LIMIT_OOM_CONFIG;
    if (refusal->need_bytes > refusal->limit_bytes)
        return LIMIT_OOM_LARGER;
    if (live->overhead_bytes > refusal->limit_bytes - refusal->need_bytes)
        return LIMIT_OOM_OVERHEAD;
    return LIMIT_OOM_LIMIT;
}

uint64_t limit_oom_shortfall(const struct limit_oom *oom, const struct limit_live *live)
{
    const struct refusal *refusal = oom->refusal;
    uint64_t left =
        refusal->limit_bytes > live->used_bytes ? refusal->limit_bytes - live->used_bytes : 0;
    uint64_t over =
        live->used_bytes > refusal->limit_bytes ? live->used_bytes - refusal->limit_bytes : 0;
    uint64_t need = refusal->need_bytes;
    if (need <= left)
        return over;
    need = need - left + over;
    return need < over ? UINT64_MAX : need; /* of a size near 2^64 */
}

static void limit_oom_hint(struct writer *writer, const char *code, struct text *text)
{
    writer_open_object(writer, NULL);
    writer_add_text(writer, "code", code);
    writer_add_text(writer, "text", text_string(text));
    writer_close_object(writer);
    text_init(text);
}

static void limit_oom_hint_words(struct writer *writer, const char *code, const char *words)
{
    writer_open_object(writer, NULL);
    writer_add_text(writer, "code", code);
    writer_add_text(writer, "text", words);
    writer_close_object(writer);
}

/* The smallest limit that would have let the request pass. */
static void limit_oom_hint_limit(struct writer *writer, struct text *text,
                                 const struct limit_oom *oom, const struct limit_live *live)
{
    uint64_t shortfall = limit_oom_shortfall(oom, live);
    if (shortfall == 0) {
        limit_oom_hint_words(writer, "try_again", "There is room by now: a second try can pass.");
    } else if (shortfall < UINT64_C(1) << 50) {
        uint64_t need = oom->refusal->limit_bytes + shortfall;
        text_add(text, "To let it pass, set GPU_LIMIT_MB to ");
        text_add_number(text, need / (1024 * 1024) + (need % (1024 * 1024) != 0));
        text_add(text, " or more.");
        limit_oom_hint(writer, "raise_limit", text);
    }
    if (live->idle_bytes > 0 && live->idle_bytes >= shortfall) {
        text_add_size(text, live->idle_bytes);
        text_add(text, " is held by memory pools, graphs and shared blocks, and by no allocation.");
        limit_oom_hint(writer, "idle_memory", text);
    }
}

static void limit_oom_hint_free(struct writer *writer, const char *code, struct text *text,
                                const char *words, const struct refusal *refusal)
{
    text_add(text, words);
    text_add_size(text, refusal->card_free_bytes);
    text_add(text, " free of ");
    text_add_size(text, refusal->card_total_bytes);
    text_add(text, ". gpulimit-stat and nvidia-smi say who holds the rest.");
    limit_oom_hint(writer, code, text);
}

static void limit_oom_hint_card(struct writer *writer, struct text *text,
                                const struct limit_oom *oom)
{
    const struct refusal *refusal = oom->refusal;
    if (refusal->knows_card_free && refusal->need_bytes > refusal->card_free_bytes)
        limit_oom_hint_free(writer, "card_full", text,
                            oom->is_by_driver ? "The card is really full, "
                                              : "Without the limit it would not fit either: ",
                            refusal);
    else if (oom->is_by_driver && refusal->need_bytes == 0 && refusal->knows_card_free)
        /* Nobody knows how much it was. */
        limit_oom_hint_free(writer, "card_free", text, "The card has ", refusal);
    else if (oom->is_by_driver && refusal->knows_card_free)
        limit_oom_hint_words(writer, "driver_reason",
                             "The driver refused for a reason of its own, such as no piece of that "
                             "size or a pool's own maximum: a higher limit does not help.");
}

void limit_oom_add_hints(struct writer *writer, const struct limit_oom *oom,
                         const struct limit_live *live)
{
    enum limit_oom_cause cause = limit_oom_cause(oom, live);
    const char *ask_less = refusal_ask_less(oom->refusal->what);
    struct text text;
    text_init(&text);
    writer_open_array(writer, "hints");
    if (cause == LIMIT_OOM_CONFIG) {
        limit_oom_hint_words(writer, "name_device",
                             "This GPU is not named in GPU_LIMIT_MB: add a limit for it, or for "
                             "all others with \"*=\".");
    } else if (!oom->is_by_driver) {
        limit_oom_hint_limit(writer, &text, oom, live);
        if (cause == LIMIT_OOM_OVERHEAD)
            limit_oom_hint_words(writer, "overhead_stays",
                                 refusal_fits_uncounted(oom->refusal)
                                     ? "Freeing memory cannot help, as overhead stays. "
                                       "GPU_LIMIT_COUNT=allocations counts what the program "
                                       "allocates and nothing else."
                                     : "Freeing memory cannot help, as overhead stays.");
    }
    limit_oom_hint_card(writer, &text, oom);
    if (ask_less) {
        text_add(&text, "Ask for less: ");
        text_add(&text, ask_less);
        text_add(&text, ".");
        limit_oom_hint(writer, "ask_less", &text);
    }
    writer_close_array(writer);
}
