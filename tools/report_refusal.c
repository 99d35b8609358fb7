/* SPDX-License-Identifier: MIT
 *
 * The report of one refusal (schema gpulimit.oom/1) for people: what was asked for and why there
 * was no room, who asked, who held the memory, what had just happened, what to do. What a file
 * lacks is left out.
 */
#include "report_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emit_site.h"
#include "memory.h"

enum {
    REPORT_FRAMES_MAX = 12,   /* of the stack that asked */
    REPORT_TOP_MAX = 10,      /* sites that have a line */
    REPORT_LISTED_MAX = 1000, /* sites that are looked at: the library lists far fewer */
    REPORT_EVENTS_MAX = 5,
    REPORT_OTHERS_MAX = 5, /* processes */
    REPORT_NAME_BYTES = 90,
};

/* 0 where there is none. */
static uint64_t report_get_number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

/* "" where there is none. */
static const char *report_get_text(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void report_add_figure(struct text *text, const char *before, json_t *object,
                              const char *key)
{
    if (json_is_integer(json_object_get(object, key))) {
        text_add(text, before);
        text_add_size(text, report_get_number(object, key));
    }
}

static void report_say_word(struct text *text, const char *label, const char *word)
{
    if (word[0] != '\0') {
        text_add(text, label);
        text_add_quoted(text, word, REPORT_NAME_BYTES);
        text_add(text, "\n");
    }
}

static const char *report_get_cause(json_t *root)
{
    static const struct {
        const char *cause, *words;
    } causes[] = {
        {"limit", "by the limit"},
        {"limit_larger_than_total", "as larger than the whole limit"},
        {"overhead", "by the limit, since overhead leaves too little"},
        {"driver", "by the driver, though the limit had room"},
        {"config", "since GPU_LIMIT_MB does not name that GPU"},
    };

    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (strcmp(report_get_text(root, "cause"), causes[i].cause) == 0) {
            return causes[i].words;
        }
    }
    return "";
}

static void report_say_request(json_t *root, struct text *text)
{
    json_t *request = json_object_get(root, "request");
    json_t *gpu = json_object_get(root, "gpu");
    json_t *usage = json_object_get(root, "usage");
    const char *what = report_get_text(request, "what");

    text_add(text, "refused");
    if (what[0] != '\0' && strcmp(what, "allocation") != 0) {
        text_add(text, " a ");
        text_add_quoted(text, what, 20);
    }
    if (report_get_number(request, "bytes") > 0) {
        report_add_figure(text, " ", request, "bytes");
    }
    text_add(text, " on GPU ");
    text_add_number(text, report_get_number(gpu, "index"));
    text_add(text, " ");
    text_add(text, report_get_cause(root));
    text_add(text, "\n  in use        ");
    report_add_figure(text, "", usage, "used_bytes");
    report_add_figure(text, " of ", json_object_get(root, "limit"), "bytes");
    if (report_get_number(usage, "shortfall_bytes") > 0) {
        report_add_figure(text, ", short by ", usage, "shortfall_bytes");
    }
    text_add(text, "\n");
}

static void report_say_process(json_t *root, struct text *text)
{
    json_t *command = json_object_get(root, "command");
    size_t count = json_array_size(command);

    text_add(text, "  process       ");
    text_add_number(text, report_get_number(root, "pid"));
    for (size_t i = 0; i < count && i < 6; i++) {
        const char *argument = json_string_value(json_array_get(command, i));

        text_add(text, i == 0 ? " (" : " ");
        text_add_quoted(text, argument ? argument : "?", 60);
    }
    text_add(text, count > 6 ? " ...)\n" : count > 0 ? ")\n" : "\n");
    report_say_word(text, "  at            ", report_get_text(root, "time"));
}

/* A native frame as the tool names it: by the source, if the file is still there. For the caller to
 * free(). */
static char *report_name_native(json_t *frame, struct symbols *symbols)
{
    const char *hex = report_get_text(frame, "build_id");
    struct gpulimit_module module = {0};
    unsigned int byte;

    strncpy(module.path, report_get_text(frame, "module"), sizeof(module.path) - 1);
    while (module.build_id_bytes < sizeof(module.build_id) && sscanf(hex, "%2x", &byte) == 1) {
        module.build_id[module.build_id_bytes++] = (uint8_t)byte;
        hex += strlen(hex) < 2 ? strlen(hex) : 2;
    }
    return emit_site_label(
        &(struct sites_frame){.kind = GPULIMIT_FRAME_NATIVE,
                              .module = module.path[0] != '\0' ? &module : NULL,
                              .address = strtoull(report_get_text(frame, "offset"), NULL, 16),
                              .file = "",
                              .function = ""},
        symbols, false);
}

static char *report_name_python(json_t *frame)
{
    return memory_print("%s:%" PRIu64 " %s", report_get_text(frame, "file"),
                        report_get_number(frame, "line"), report_get_text(frame, "function"));
}

/* The stack that asked: of Python, or of native code where there is none. */
static void report_say_stack(json_t *request, struct symbols *symbols, struct text *text)
{
    json_t *python = json_object_get(request, "python_frames");
    json_t *native = json_object_get(request, "native_frames");
    bool is_python = json_array_size(python) > 0;
    size_t count = json_array_size(is_python ? python : native);

    for (size_t i = 0; i < count && i < REPORT_FRAMES_MAX; i++) {
        json_t *frame = json_array_get(is_python ? python : native, i);
        char *name = is_python ? report_name_python(frame) : report_name_native(frame, symbols);

        report_say_word(text, i == 0 ? "  called from   " : "                ", name);
        free(name);
    }
}

static void report_say_asker(json_t *root, struct symbols *symbols, struct text *text)
{
    json_t *request = json_object_get(root, "request");

    report_say_word(text, "  asked for by  ", report_get_text(request, "where"));
    report_say_word(text, "  by calling    ", report_get_text(request, "api"));
    report_say_word(text, "  in phase      ", report_get_text(root, "tag"));
    report_say_stack(request, symbols, text);
}

static int report_compare_sites(const void *first, const void *second)
{
    const struct report_site *a = first;
    const struct report_site *b = second;

    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : strcmp(a->where, b->where);
}

static uint64_t report_add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The places that held most, each name once, the largest first. For the caller to free(). */
static struct report_site *report_gather_top(json_t *top, size_t *count)
{
    struct report_site *sites = NULL;

    *count = 0;
    for (size_t i = 0; i < json_array_size(top) && i < REPORT_LISTED_MAX; i++) {
        json_t *object = json_array_get(top, i);
        const char *where = report_get_text(object, "where");
        size_t at = 0;

        where = where[0] != '\0' ? where : "(unknown)";
        while (at < *count && strcmp(sites[at].where, where) != 0) {
            at++;
        }
        if (at == *count) {
            sites = memory_grow(sites, *count, sizeof(*sites));
            sites[(*count)++] = (struct report_site){.where = where};
        }
        sites[at].bytes = report_add_up(sites[at].bytes, report_get_number(object, "bytes"));
        sites[at].count = report_add_up(sites[at].count, report_get_number(object, "count"));
    }
    if (*count > 0) {
        qsort(sites, *count, sizeof(*sites), report_compare_sites);
    }
    return sites;
}

static void report_say_holder(struct text *text, const char *where, uint64_t bytes, uint64_t count)
{
    const struct report_holders one = {.sites = {{.where = where, .bytes = bytes, .count = count}},
                                       .site_count = 1};

    if (bytes > 0) {
        report_add_holders(text, "", &one);
    }
}

static void report_say_holders(json_t *root, struct text *text)
{
    json_t *others = json_object_get(root, "others");
    json_t *nobodys = json_object_get(root, "without_site");
    struct report_holders rest = {.others = report_get_number(others, "sites"),
                                  .others_bytes = report_get_number(others, "bytes")};
    size_t count;
    struct report_site *sites = report_gather_top(json_object_get(root, "live_top"), &count);

    text_add(text, "held then by\n");
    for (size_t i = 0; i < count; i++) {
        if (i < REPORT_TOP_MAX) {
            report_say_holder(text, sites[i].where, sites[i].bytes, sites[i].count);
        } else {
            rest.others++;
            rest.others_bytes = report_add_up(rest.others_bytes, sites[i].bytes);
        }
    }
    report_add_holders(text, "", &rest);
    report_say_holder(text, "of no known call site", report_get_number(nobodys, "bytes"),
                      report_get_number(nobodys, "count"));
    report_say_holder(text, "idle in pools", report_get_number(root, "idle_bytes"), 0);
    report_say_holder(text, "requests under way", report_get_number(root, "under_way_bytes"), 0);
    report_say_holder(text, "overhead: context, code, streams",
                      report_get_number(root, "overhead_bytes"), 0);
    free(sites);
}

static void report_say_event(json_t *root, json_t *event, struct text *text)
{
    uint64_t now_ns = report_get_number(root, "monotonic_ns");
    uint64_t then_ns = report_get_number(event, "monotonic_ns");
    char *age =
        memory_print("  %8.2f s  ", (double)(now_ns > then_ns ? now_ns - then_ns : 0) / 1e9);

    text_add(text, age);
    text_add_quoted(text, report_get_text(event, "what"), 20);
    report_add_figure(text, " ", event, "bytes");
    if (report_get_text(event, "where")[0] != '\0') {
        text_add(text, " by ");
        text_add_quoted(text, report_get_text(event, "where"), REPORT_NAME_BYTES);
    }
    text_add(text, "\n");
    free(age);
}

/* The refusal that the report is about is an event too. */
static void report_say_events(json_t *root, struct text *text)
{
    json_t *events = json_object_get(root, "recent_events");
    json_t *latest = json_array_get(events, 0);
    bool is_itself = strcmp(report_get_text(latest, "what"), "refused") == 0 &&
                     report_get_number(latest, "bytes") ==
                         report_get_number(json_object_get(root, "request"), "bytes");
    size_t first = is_itself ? 1 : 0;

    text_add(text, json_array_size(events) > first ? "before that, the latest first\n" : "");
    for (size_t i = first; i < json_array_size(events) && i < first + REPORT_EVENTS_MAX; i++) {
        report_say_event(root, json_array_get(events, i), text);
    }
}

static void report_say_card(json_t *root, struct text *text)
{
    json_t *others = json_object_get(root, "other_processes");
    json_t *gpu = json_object_get(root, "gpu");

    if (json_is_integer(json_object_get(gpu, "physical_free_bytes"))) {
        report_add_figure(text, "The GPU itself had ", gpu, "physical_free_bytes");
        report_add_figure(text, " free of ", gpu, "physical_total_bytes");
        text_add(text, ".\n");
    }
    for (size_t i = 0; i < json_array_size(others) && i < REPORT_OTHERS_MAX; i++) {
        json_t *other = json_array_get(others, i);

        report_add_figure(text, "  of it ", other, "used_bytes");
        text_add(text, " was held by process ");
        text_add_number(text, report_get_number(other, "pid"));
        text_add(text, " (");
        text_add_quoted(text, report_get_text(other, "command"), 40);
        text_add(text, ")\n");
    }
}

static void report_say_hints(json_t *root, struct text *text)
{
    json_t *hints = json_object_get(root, "hints");

    for (size_t i = 0; i < json_array_size(hints); i++) {
        text_add_quoted(text, report_get_text(json_array_get(hints, i), "text"), 300);
        text_add(text, "\n");
    }
}

void report_print_refusal(json_t *root, const struct emit_style *style)
{
    static void (*const parts[])(json_t *, struct text *) = {report_say_holders, report_say_events,
                                                             report_say_card, report_say_hints};
    struct text text;

    text_init(&text);
    report_say_request(root, &text);
    report_say_process(root, &text);
    report_say_asker(root, style->symbols, &text);
    report_print_text(&text, style);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        text_init(&text); /* none takes another's room */
        parts[i](root, &text);
        report_print_text(&text, style);
    }
}
