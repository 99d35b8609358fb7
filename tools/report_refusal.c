/* SPDX-License-Identifier: MIT
 *
 * The report of one refusal (schema gpulimit.oom/1) for people: what was asked for and why there
 * was no room, who asked, who held the memory, what to do. What a file lacks is left out.
 */
#include "report_print.h"

#include <inttypes.h>
#include <string.h>

enum { REPORT_FRAMES_MAX = 12, REPORT_TOP_MAX = 10, REPORT_NAME_BYTES = 90 };

/* -1 where there is none. */
static int64_t report_get_number(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : -1;
}

/* "" where there is none. */
static const char *report_get_text(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static bool report_add_size(struct text *text, const char *before, int64_t bytes)
{
    if (bytes >= 0) {
        text_add(text, before);
        text_add_size(text, (uint64_t)bytes);
    }
    return bytes >= 0;
}

static void report_say_request(json_t *root, struct text *text)
{
    json_t *request = json_object_get(root, "request");
    json_t *limit = json_object_get(root, "limit");
    json_t *usage = json_object_get(root, "usage");
    bool is_driver = strcmp(report_get_text(root, "cause"), "driver") == 0;

    text_init(text);
    text_add(text, "refused");
    (void)report_add_size(text, " ", report_get_number(request, "bytes"));
    if (report_get_number(json_object_get(root, "gpu"), "index") >= 0) {
        text_add(text, " on GPU ");
        text_add_number(text, (uint64_t)report_get_number(json_object_get(root, "gpu"), "index"));
    }
    text_add(text, is_driver ? " by the driver" : " by the limit");
    if (report_add_size(text, ": ", report_get_number(usage, "used_bytes"))) {
        (void)report_add_size(text, " of ", report_get_number(limit, "bytes"));
        text_add(text, " in use");
    }
    (void)report_add_size(text, ", short by ", report_get_number(usage, "shortfall_bytes"));
    text_add(text, "\n");
}

static void report_say_process(json_t *root, struct text *text)
{
    json_t *command = json_object_get(root, "command");
    size_t count = json_array_size(command);

    text_add(text, "  process       ");
    text_add_number(text, (uint64_t)report_get_number(root, "pid"));
    for (size_t i = 0; i < count && i < 8; i++) {
        const char *argument = json_string_value(json_array_get(command, i));

        text_add(text, i == 0 ? " (" : " ");
        text_add_quoted(text, argument ? argument : "?", 60);
    }
    text_add(text, count > 0 ? ")" : "");
    if (report_get_text(root, "time")[0] != '\0') {
        text_add(text, ", ");
        text_add_quoted(text, report_get_text(root, "time"), 40);
    }
    text_add(text, "\n");
}

static void report_say_word(struct text *text, const char *label, const char *word)
{
    if (word[0] != '\0') {
        text_add(text, label);
        text_add_quoted(text, word, REPORT_NAME_BYTES);
        text_add(text, "\n");
    }
}

static void report_say_asker(json_t *root, struct text *text)
{
    json_t *request = json_object_get(root, "request");
    json_t *frames = json_object_get(request, "python_frames");

    report_say_word(text, "  asked for by  ", report_get_text(request, "where"));
    report_say_word(text, "  by calling    ", report_get_text(request, "api"));
    report_say_word(text, "  while in      ", report_get_text(root, "tag"));
    for (size_t i = 0; i < json_array_size(frames) && i < REPORT_FRAMES_MAX; i++) {
        json_t *frame = json_array_get(frames, i);

        text_add(text, i == 0 ? "  called from   " : "                ");
        text_add_quoted(text, report_get_text(frame, "file"), REPORT_NAME_BYTES);
        if (report_get_number(frame, "line") >= 0) {
            text_add(text, ":");
            text_add_number(text, (uint64_t)report_get_number(frame, "line"));
        }
        text_add(text, " ");
        text_add_quoted(text, report_get_text(frame, "function"), 60);
        text_add(text, "\n");
    }
}

/* One line of who holds, of an object with bytes and perhaps a count. */
static void report_say_holder(struct text *text, json_t *object, const char *where)
{
    struct report_holders one = {.site_count = 1};

    one.sites[0] = (struct report_site){.where = where};
    if (report_get_number(object, "bytes") <= 0) {
        return;
    }
    one.sites[0].bytes = (uint64_t)report_get_number(object, "bytes");
    one.sites[0].count =
        report_get_number(object, "count") > 0 ? (uint64_t)report_get_number(object, "count") : 0;
    report_add_holders(text, "", &one);
}

static void report_say_rest(struct text *text, json_t *root, const char *key, const char *where)
{
    json_t *value = json_object_get(root, key);
    struct report_holders one = {.site_count = 1};

    if (json_is_integer(value) && json_integer_value(value) > 0) {
        one.sites[0] =
            (struct report_site){.where = where, .bytes = (uint64_t)json_integer_value(value)};
        report_add_holders(text, "", &one);
    } else {
        report_say_holder(text, value, where);
    }
}

static void report_say_holders(json_t *root, struct text *text)
{
    json_t *top = json_object_get(root, "live_top");
    size_t count = json_array_size(top);
    int64_t left_bytes = 0;
    struct report_holders rest = {0};

    text_init(text);
    text_add(text, "held then by\n");
    for (size_t i = 0; i < count; i++) {
        json_t *site = json_array_get(top, i);
        const char *where = report_get_text(site, "where");

        if (i < REPORT_TOP_MAX) {
            report_say_holder(text, site, where[0] != '\0' ? where : "(unknown)");
        } else if (report_get_number(site, "bytes") > 0) {
            rest.others++;
            left_bytes += report_get_number(site, "bytes");
        }
    }
    json_t *others = json_object_get(root, "others");
    rest.others +=
        report_get_number(others, "sites") > 0 ? (uint64_t)report_get_number(others, "sites") : 0;
    left_bytes += report_get_number(others, "bytes") > 0 ? report_get_number(others, "bytes") : 0;
    rest.others_bytes = left_bytes > 0 ? (uint64_t)left_bytes : 0;
    report_add_holders(text, "", &rest);
    report_say_rest(text, root, "without_site", "of no known call site");
    report_say_rest(text, root, "idle_bytes", "idle in pools");
    report_say_rest(text, root, "under_way_bytes", "requests under way");
    report_say_rest(text, root, "overhead_bytes", "overhead: context, code, streams");
}

static void report_say_others(json_t *root, struct text *text)
{
    json_t *others = json_object_get(root, "other_processes");
    json_t *gpu = json_object_get(root, "gpu");
    int64_t free_bytes = report_get_number(gpu, "physical_free_bytes");

    text_init(text);
    if (report_add_size(text, "The GPU itself had ", free_bytes)) {
        (void)report_add_size(text, " free of ", report_get_number(gpu, "physical_total_bytes"));
        text_add(text, ".\n");
    }
    for (size_t i = 0; i < json_array_size(others) && i < REPORT_TOP_MAX; i++) {
        json_t *other = json_array_get(others, i);

        text_add(text, "  process ");
        text_add_number(text, (uint64_t)report_get_number(other, "pid"));
        (void)report_add_size(text, " held ", report_get_number(other, "used_bytes"));
        text_add(text, " of it\n");
    }
}

static void report_say_hints(json_t *root, struct text *text)
{
    json_t *hints = json_object_get(root, "hints");

    text_init(text);
    for (size_t i = 0; i < json_array_size(hints) && i < REPORT_TOP_MAX; i++) {
        text_add_quoted(text, report_get_text(json_array_get(hints, i), "text"), 300);
        text_add(text, "\n");
    }
}

void report_print_refusal(json_t *root, const struct emit_style *style)
{
    struct text text;

    report_say_request(root, &text);
    report_say_process(root, &text);
    report_say_asker(root, &text);
    report_print_text(&text, style);
    report_say_holders(root, &text);
    report_print_text(&text, style);
    report_say_others(root, &text);
    report_print_text(&text, style);
    report_say_hints(root, &text);
    report_print_text(&text, style);
}
