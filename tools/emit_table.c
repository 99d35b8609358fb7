/* SPDX-License-Identifier: MIT
 *
 * Prints views as tables for people. Decides widths and colours, not contents.
 */
#include "emit_table.h"

#include <stdlib.h>
#include <string.h>

#include "emit_grid.h"
#include "memory.h"
#include "users.h"

enum { EMIT_USE_HIGH = 75, EMIT_USE_VERY_HIGH = 90 };

#define EMIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* "python train.py", and with a notebook "python -m ipykernel_launcher -f /run/kernel-1.json
 * [lab3.ipynb]". On a terminal, where the end is cut off, that notebook is what its owner looks
 * for: "python [lab3.ipynb]". */
static void emit_command(struct grid *grid, const struct gpulimit_ledger *ledger)
{
    const char *slash = strrchr(ledger->notebook, '/');
    const char *notebook = slash ? slash + 1 : ledger->notebook;
    bool is_short = notebook[0] != '\0' && grid->style->is_terminal;
    uint32_t count = is_short && ledger->argument_count > 1 ? 1 : ledger->argument_count;
    char *command = memory_check(strdup(""));
    char *whole;

    for (uint32_t i = 0; i < count; i++) {
        char *longer = memory_print("%s%s%s", command, i > 0 ? " " : "", ledger->arguments[i]);

        free(command);
        command = longer;
    }
    slash = is_short ? strrchr(command, '/') : NULL;
    whole = notebook[0] != '\0' ? memory_print("%s [%s]", slash ? slash + 1 : command, notebook)
                                : memory_check(strdup(command));
    grid_add_foreign(grid, whole);
    free(whole);
    free(command);
}

static const char *emit_choose_use_color(unsigned int use)
{
    return use >= EMIT_USE_VERY_HIGH ? GRID_RED : use >= EMIT_USE_HIGH ? GRID_YELLOW : NULL;
}

/* LIMIT and USE% stand apart in the table, with USED between them and PEAK. */
static void emit_use(struct grid *grid, const struct gpulimit_ledger_device *device)
{
    char cell[16];

    if (device->limit_bytes == GPULIMIT_NO_LIMIT) {
        grid_add_text(grid, "-", NULL);
        grid_add_text(grid, "-", NULL);
        return;
    }
    grid_add_bytes(grid, device->limit_bytes);
    snprintf(cell, sizeof(cell), "%u%%", view_get_use(device));
    grid_add_text(grid, cell, emit_choose_use_color(view_get_use(device)));
}

static void emit_device(struct grid *grid, const struct view_row *row)
{
    const struct gpulimit_ledger_device *device = row->device;

    grid_add_bytes(grid, device->charged_bytes);
    emit_use(grid, device);
    grid_add_bytes(grid, device->peak_bytes);
    if (device->truth_source != GPULIMIT_TRUTH_OFF) {
        grid_add_bytes(grid, device->overhead_bytes);
    } else {
        grid_add_text(grid, "-", NULL);
    }
    if (row->has_untracked) {
        grid_add_difference(grid, row->untracked_bytes);
    } else {
        grid_add_text(grid, "-", NULL);
    }
    grid_add_number(grid, device->live_allocations, NULL);
    grid_add_number(grid, device->denials, device->denials > 0 ? GRID_BOLD_RED : NULL);
}

size_t emit_table_processes(const struct view *view, const struct emit_style *style)
{
    enum { EMIT_STATE = 12, EMIT_DEVICE_CELLS = 8 };
    static const struct grid_column all[] = {
        {"GPU", true, false, 3, 0},       {"PID", true, false, 6, 0},
        {"USER", false, false, 6, 0},     {"USED", true, false, 7, 0},
        {"LIMIT", true, false, 6, 0},     {"USE%", true, false, 4, 0},
        {"PEAK", true, false, 7, 0},      {"OVERHEAD", true, false, 8, 1},
        {"UNTRACKED", true, false, 9, 3}, {"ALLOCS", true, false, 6, 2},
        {"DENIED", true, false, 6, 0},    {"AGE", true, false, 6, 0},
        {"STATE", false, false, 6, 0},    {"COMMAND", false, true, 10, 0},
    };
    struct grid_column columns[EMIT_COUNT(all)];
    size_t count = 0;
    struct grid grid;

    for (size_t i = 0; i < EMIT_COUNT(all); i++) {
        if (i != EMIT_STATE || style->has_states) {
            columns[count++] = all[i];
        }
    }
    grid_open(columns, count, style, &grid);
    for (size_t i = 0; i < view->row_count; i++) {
        const struct gpulimit_ledger *ledger = view->rows[i].ledger;
        const struct gpulimit_ledger_device *device = view->rows[i].device;

        grid_add_line(&grid, ledger->state == GPULIMIT_STATE_STALE ? GRID_DIM : NULL);
        if (device) {
            grid_add_number(&grid, device->gpu_index, NULL);
        } else {
            grid_add_text(&grid, "-", NULL);
        }
        grid_add_number(&grid, (uint64_t)ledger->pid, NULL);
        grid_add_foreign(&grid, users_get_name(ledger->owner_uid));
        if (device) {
            emit_device(&grid, &view->rows[i]);
        } else {
            for (int cell = 0; cell < EMIT_DEVICE_CELLS; cell++) {
                grid_add_text(&grid, "-", NULL);
            }
        }
        grid_add_age(&grid, view_get_age(view, ledger));
        if (style->has_states) {
            grid_add_text(&grid, gpulimit_reader_state_name(ledger->state), NULL);
        }
        emit_command(&grid, ledger);
    }
    return grid_close(&grid);
}
