/* SPDX-License-Identifier: MIT
 *
 * The layouts of python_layouts.h: tables, and where the interpreter's own table has them.
 */
#include "python_layouts.h"

#include <string.h>

enum { LAYOUT_FIRST_TABLE = 13, LAYOUT_OFFSET_MAX = 1024 };

static const struct python_layout layouts_own[] = {
    [9] = {.thread_frame = 24,
           .thread_cframe = PYTHON_NO_CFRAME,
           .frame_code = 32,
           .frame_previous = 24,
           .frame_instruction = 104,
           .frame_owner = PYTHON_NO_OWNER,
           .code_file = 104,
           .code_function = 112,
           .code_first_line = 40,
           .code_lines = 120,
           .bytes_size = 16,
           .bytes_data = 32,
           .text_length = 16,
           .text_state = 32,
           .text_ascii = 48,
           .text_wide = 72,
           .instruction = PYTHON_INSTRUCTION_BYTES,
           .lines = PYTHON_LINES_3_9},
    [10] = {.thread_frame = 24,
            .thread_cframe = PYTHON_NO_CFRAME,
            .frame_code = 32,
            .frame_previous = 24,
            .frame_instruction = 96,
            .frame_owner = PYTHON_NO_OWNER,
            .code_file = 104,
            .code_function = 112,
            .code_first_line = 40,
            .code_lines = 120,
            .bytes_size = 16,
            .bytes_data = 32,
            .text_length = 16,
            .text_state = 32,
            .text_ascii = 48,
            .text_wide = 72,
            .instruction = PYTHON_INSTRUCTION_UNITS,
            .lines = PYTHON_LINES_3_10},
    [11] = {.thread_frame = 56,
            .thread_cframe = 8,
            .frame_code = 32,
            .frame_previous = 48,
            .frame_instruction = 56,
            .frame_owner = 69,
            .code_file = 112,
            .code_function = 128,
            .code_first_line = 72,
            .code_lines = 136,
            .code_start = 184,
            .bytes_size = 16,
            .bytes_data = 32,
            .text_length = 16,
            .text_state = 32,
            .text_ascii = 48,
            .text_wide = 72,
            .instruction = PYTHON_INSTRUCTION_POINTER,
            .lines = PYTHON_LINES_3_11},
    [12] = {.thread_frame = 56,
            .thread_cframe = 0,
            .frame_code = 0,
            .frame_previous = 8,
            .frame_instruction = 56,
            .frame_owner = 70,
            .code_file = 112,
            .code_function = 128,
            .code_first_line = 68,
            .code_lines = 136,
            .code_start = 192,
            .bytes_size = 16,
            .bytes_data = 32,
            .text_length = 16,
            .text_state = 32,
            .text_ascii = 40,
            .text_wide = 56,
            .instruction = PYTHON_INSTRUCTION_POINTER,
            .lines = PYTHON_LINES_3_11},
};

/* Where the interpreter's table has them, as numbers of its 64-bit words. The first three are a
 * cookie, the version and whether there is no GIL. 3.13 from its headers' offsetof(); 3.14 counted
 * in the declaration, and read right with Debian's 3.14.10 (docs/testing.md). */
static const struct layouts_words {
    uint8_t thread_frame, frame_previous, frame_code, frame_instruction, frame_owner;
    uint8_t code_file, code_function, code_lines, code_first_line, code_start;
    uint8_t bytes_size, bytes_data, text_state, text_length, text_ascii;
} layouts_words[] = {
    [13] = {23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 65, 66, 68, 69, 70},
    [14] = {26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 75, 76, 78, 79, 80},
};

enum { LAYOUT_TABLE_VERSION = 1, LAYOUT_TABLE_NO_GIL = 2, LAYOUT_UTF8_BYTES = 16 };

/* A table that is none, or another version's, would have words that are no such offsets. */
static bool layouts_is_offset(uint64_t word)
{
    return word < LAYOUT_OFFSET_MAX;
}

static bool layouts_read(const uint64_t *table, unsigned minor, struct python_layout *layout)
{
    if (memcmp(table, "xdebugpy", sizeof(uint64_t)) != 0 ||
        table[LAYOUT_TABLE_VERSION] >> 16 != (3u << 8 | minor) || table[LAYOUT_TABLE_NO_GIL])
        return false;
    const struct layouts_words *at = &layouts_words[minor];
    const uint8_t *words = (const uint8_t *)at;
    for (size_t i = 0; i < sizeof(*at); i++) {
        if (!layouts_is_offset(table[words[i]]))
            return false;
    }
    *layout = (struct python_layout){
        .thread_frame = (uint16_t)table[at->thread_frame],
        .thread_cframe = PYTHON_NO_CFRAME,
        .frame_code = (uint16_t)table[at->frame_code],
        .frame_previous = (uint16_t)table[at->frame_previous],
        .frame_instruction = (uint16_t)table[at->frame_instruction],
        .frame_owner = (uint16_t)table[at->frame_owner],
        .code_file = (uint16_t)table[at->code_file],
        .code_function = (uint16_t)table[at->code_function],
        .code_first_line = (uint16_t)table[at->code_first_line],
        .code_lines = (uint16_t)table[at->code_lines],
        .code_start = (uint16_t)table[at->code_start],
        .bytes_size = (uint16_t)table[at->bytes_size],
        .bytes_data = (uint16_t)table[at->bytes_data],
        .text_length = (uint16_t)table[at->text_length],
        .text_state = (uint16_t)table[at->text_state],
        .text_ascii = (uint16_t)table[at->text_ascii],
        .text_wide = (uint16_t)(table[at->text_ascii] + LAYOUT_UTF8_BYTES),
        .instruction = PYTHON_INSTRUCTION_POINTER,
        .lines = PYTHON_LINES_3_11,
        .may_shift_state = minor >= 14,
    };
    return true;
}

bool python_layouts_find(const char *version, const void *runtime, struct python_layout *layout)
{
    if (version[0] != '3' || version[1] != '.')
        return false;
    unsigned minor = 0;
    for (version += 2; *version >= '0' && *version <= '9' && minor < 100; version++)
        minor = minor * 10 + (unsigned)(*version - '0');
    if (minor >= LAYOUT_FIRST_TABLE)
        return minor < sizeof(layouts_words) / sizeof(layouts_words[0]) &&
               ((uintptr_t)runtime & 7) == 0 && layouts_read(runtime, minor, layout);
    if (minor >= sizeof(layouts_own) / sizeof(layouts_own[0]) || !layouts_own[minor].bytes_data)
        return false;
    *layout = layouts_own[minor];
    return true;
}
