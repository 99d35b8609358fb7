/* SPDX-License-Identifier: MIT
 *
 * Call sites in words: one frame on one line, and whole stacks below a group.
 */
#include "emit_site.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpulimit/frames.h"
#include "memory.h"
#include "text.h"

enum { EMIT_STACKS_MAX = 5 };

/* The last component; of a package's own file, which all packages have, the package too. */
static const char *emit_get_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;

    if (slash && strncmp(base, "__", 2) == 0) {
        while (slash > path && slash[-1] != '/') {
            slash--;
        }
        base = slash;
    }
    return base;
}

static char *emit_python_label(const struct sites_frame *frame, bool is_whole)
{
    const char *file = frame->file[0] != '\0' ? frame->file : "?";

    return memory_print("%s:%" PRIu32 " %s", is_whole ? file : emit_get_base(file), frame->line,
                        frame->function[0] != '\0' ? frame->function : "?");
}

static char *emit_native_label(const struct sites_frame *frame, struct symbols *symbols,
                               bool is_whole)
{
    const char *path = frame->module ? frame->module->path : "?";
    struct symbol symbol = {0};
    char *place;
    char *label;

    if (frame->module) {
        symbol = symbols_find(symbols, frame->module, frame->address);
    }
    if (symbol.file && symbol.function && !is_whole) {
        return memory_print("%s:%" PRIu32 " %s", emit_get_base(symbol.file), symbol.line,
                            symbol.function);
    }
    place = memory_print("%s+0x%" PRIx64, is_whole ? path : emit_get_base(path), frame->address);
    if (symbol.file && symbol.function) {
        label = memory_print("%s %s (%s:%" PRIu32 ")", place, symbol.function, symbol.file,
                             symbol.line);
    } else if (symbol.function) {
        label = memory_print("%s %s", place, symbol.function);
    } else {
        return place;
    }
    free(place);
    return label;
}

char *emit_site_label(const struct sites_frame *frame, struct symbols *symbols, bool is_whole)
{
    switch (frame->kind) {
    case GPULIMIT_FRAME_NATIVE:
        return emit_native_label(frame, symbols, is_whole);
    case GPULIMIT_FRAME_PYTHON:
        return emit_python_label(frame, is_whole);
    default:
        return memory_print("?");
    }
}

const char *emit_site_api(const struct groups_item *item)
{
    const char *name = gpulimit_reader_api_name(item->ledger, item->entry->api);

    return name[0] != '\0' ? name : "-";
}

void emit_site_cell(struct grid *grid, const struct groups_item *item, enum groups_key key)
{
    struct sites_frame frame;
    char *label;

    if (item->frame == SITES_NO_FRAME) {
        label = memory_print("(%s, %s)", key == GROUPS_BY_PYTHON ? "no Python" : "unknown",
                             emit_site_api(item));
    } else {
        frame = sites_get_frame(item->ledger, item->site, item->frame);
        label = emit_site_label(&frame, grid->style->symbols, false);
    }
    grid_add_foreign(grid, label);
    free(label);
}

/* Of a group's allocations, those of one site. */
struct emit_stack {
    const struct groups_item *example;
    uint64_t bytes;
    uint64_t count;
};

static int emit_sort_stacks(const void *first, const void *second)
{
    const struct emit_stack *a = first;
    const struct emit_stack *b = second;

    if (a->bytes != b->bytes) {
        return a->bytes > b->bytes ? -1 : 1;
    }
    return a->example->site < b->example->site ? -1 : a->example->site > b->example->site;
}

/* Those that came by a known site, whose items lie together. For the caller to free(). */
static struct emit_stack *emit_gather_stacks(const struct group *group, size_t *count)
{
    struct emit_stack *stacks = NULL;

    *count = 0;
    for (uint64_t i = 0; group->example && i < group->count; i++) {
        const struct groups_item *item = &group->example[i];

        if (sites_get_count(item->site) == 0) {
            continue;
        }
        if (*count == 0 || stacks[*count - 1].example->site != item->site) {
            stacks = memory_grow(stacks, *count, sizeof(*stacks));
            stacks[(*count)++] = (struct emit_stack){.example = item};
        }
        stacks[*count - 1].bytes += item->bytes;
        stacks[*count - 1].count++;
    }
    if (*count > 0) {
        qsort(stacks, *count, sizeof(*stacks), emit_sort_stacks);
    }
    return stacks;
}

/* Whether the frame is one of those that run Python's code, whose own frames stand further down: a
 * module of the interpreter, or behind one what every program begins with. */
static bool emit_is_interpreter(const struct sites_frame *frame, const struct gpulimit_site *site,
                                bool is_behind_one)
{
    const char *base;

    if (site->python_count == 0 || frame->kind != GPULIMIT_FRAME_NATIVE || !frame->module) {
        return false;
    }
    base = gpulimit_frame_base(frame->module->path);
    return gpulimit_frame_is(GPULIMIT_INTERPRETER, base) ||
           (is_behind_one && gpulimit_frame_is(GPULIMIT_PASSAGE, base));
}

static void emit_stack_frame(const struct sites_frame *frame, const struct emit_style *style)
{
    char *label = emit_site_label(frame, style->symbols, true);
    char *clean = text_clean(label, style->is_utf8);

    fprintf(style->out, "        %s\n", clean);
    free(clean);
    free(label);
}

/* A line for frames that have been left out, if any have. */
static size_t emit_hidden(uint32_t *hidden, const struct emit_style *style)
{
    if (*hidden == 0) {
        return 0;
    }
    fprintf(style->out, "        (%" PRIu32 " of the Python interpreter)\n", *hidden);
    *hidden = 0;
    return 1;
}

static size_t emit_stack(const struct emit_stack *stack, const struct emit_style *style)
{
    const struct groups_item *item = stack->example;
    uint32_t hidden = 0;
    size_t lines = 1;
    char bytes[TEXT_CELL_BYTES];

    text_print_bytes(stack->bytes, style->is_exact, bytes);
    fprintf(style->out, "      %s in %" PRIu64 " by\n", bytes, stack->count);
    for (uint32_t number = 0; number < sites_get_count(item->site); number++) {
        struct sites_frame frame = sites_get_frame(item->ledger, item->site, number);

        if (emit_is_interpreter(&frame, item->site, hidden > 0)) {
            hidden++;
            continue;
        }
        lines += emit_hidden(&hidden, style);
        emit_stack_frame(&frame, style);
        lines++;
    }
    return lines + emit_hidden(&hidden, style);
}

size_t emit_site_stacks(const struct group *group, const struct emit_style *style)
{
    size_t count;
    struct emit_stack *stacks = emit_gather_stacks(group, &count);
    size_t lines = 0;

    for (size_t i = 0; i < count && i < EMIT_STACKS_MAX; i++) {
        lines += emit_stack(&stacks[i], style);
    }
    if (count > EMIT_STACKS_MAX) {
        uint64_t bytes = 0;
        char cell[TEXT_CELL_BYTES];

        for (size_t i = EMIT_STACKS_MAX; i < count; i++) {
            bytes += stacks[i].bytes;
        }
        text_print_bytes(bytes, style->is_exact, cell);
        fprintf(style->out, "      %s by %zu more stacks\n", cell, count - EMIT_STACKS_MAX);
        lines++;
    }
    free(stacks);
    return lines;
}

/* No cell holds a newline: foreign text has been made safe. */
size_t emit_site_weave(const char *table, const struct group *const *groups, size_t count,
                       const struct emit_style *style)
{
    size_t lines = 0;

    for (size_t line = 0; *table != '\0'; line++) {
        size_t length = strcspn(table, "\n");
        bool is_heading = style->has_headings && line == 0;

        fprintf(style->out, "%.*s\n", (int)length, table);
        if (!is_heading && line - style->has_headings < count) {
            lines += emit_site_stacks(groups[line - style->has_headings], style);
        }
        table += length + (table[length] == '\n');
    }
    return lines;
}
