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

static void emit_device(struct grid *grid, const struct gpulimit_ledger_device *device)
{
    grid_add_bytes(grid, device->charged_bytes);
    emit_use(grid, device);
    grid_add_bytes(grid, device->peak_bytes);
    grid_add_number(grid, device->live_allocations, NULL);
    grid_add_number(grid, device->denials, device->denials > 0 ? GRID_BOLD_RED : NULL);
}

size_t emit_table_processes(const struct view *view, const struct emit_style *style)
{
    static const struct grid_column with_states[] = {
        {"GPU", true, false, 3},  {"PID", true, false, 6},    {"USER", false, false, 6},
        {"USED", true, false, 7}, {"LIMIT", true, false, 6},  {"USE%", true, false, 4},
        {"PEAK", true, false, 7}, {"ALLOCS", true, false, 6}, {"DENIED", true, false, 6},
        {"AGE", true, false, 6},  {"STATE", false, false, 6}, {"COMMAND", false, true, 7},
    };
    static const struct grid_column without_states[] = {
        {"GPU", true, false, 3},  {"PID", true, false, 6},     {"USER", false, false, 6},
        {"USED", true, false, 7}, {"LIMIT", true, false, 6},   {"USE%", true, false, 4},
        {"PEAK", true, false, 7}, {"ALLOCS", true, false, 6},  {"DENIED", true, false, 6},
        {"AGE", true, false, 6},  {"COMMAND", false, true, 7},
    };
    struct grid grid;

    if (style->has_states) {
        grid_open(with_states, EMIT_COUNT(with_states), style, &grid);
    } else {
        grid_open(without_states, EMIT_COUNT(without_states), style, &grid);
    }
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
            emit_device(&grid, device);
        } else {
            for (int cell = 0; cell < 6; cell++) {
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
