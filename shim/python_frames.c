/* SPDX-License-Identifier: MIT
 *
 * The walk of python_frames.h.
 *
 * What protects the program from a layout that is wrong after all (an interpreter built in a way
 * that we do not know): the first stack is read by way of the kernel, which answers a wild address
 * by an error, and every object has to be of the type that it should be. Only if all of it makes
 * sense the layout is trusted, and later stacks are read directly; else there are no frames, for
 * good. By way of /proc/self/mem, as process_vm_readv is what a filter of system calls may kill
 * for.
 *
 * What remains: a thread that allocates without the GIL in the very moment in which the
 * interpreter ends and frees the states of its threads. The interpreter's end is asked for at each
 * frame, which leaves a fraction of a microsecond.
 */
#include "python_frames.h"

#include "python_interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    FRAMES_LEAST_ADDRESS = 4096,
    FRAMES_TEXT_MAX = 1 << 20,  /* a longer name, */
    FRAMES_LINES_MAX = 1 << 20, /* or table of lines, is not believed */
    FRAMES_OWNER_NO_CODE = 3,   /* this owner and later ones: the interpreter's, without code */
};

struct frames_walk {
    const struct python_interpreter *python;
    int memory;   /* what to read by; -1 directly */
    bool wrong;   /* something cannot be as it is */
    bool unusual; /* something may be so, but proves no layout */
};

/* Copies a few bytes at an offset from an object. */
static bool frames_read(struct frames_walk *walk, void *into, const void *from, size_t offset,
                        size_t bytes)
{
    uintptr_t address = (uintptr_t)from + offset;
    if (address < FRAMES_LEAST_ADDRESS) {
        walk->wrong = true;
    } else if (walk->memory >= 0) {
        if (pread(walk->memory, into, bytes, (off_t)address) != (ssize_t)bytes)
            walk->wrong = true;
    } else {
        memcpy(into, (const void *)address, bytes);
    }
    return !walk->wrong;
}

static const void *frames_pointer(struct frames_walk *walk, const void *from, size_t offset)
{
    const void *pointer = NULL;
    frames_read(walk, &pointer, from, offset, sizeof(pointer));
    if ((uintptr_t)pointer & (sizeof(void *) - 1))
        walk->wrong = true;
    return walk->wrong ? NULL : pointer;
}

/* Of what is always there. */
static const void *frames_member(struct frames_walk *walk, const void *from, size_t offset)
{
    const void *pointer = frames_pointer(walk, from, offset);
    if (!pointer)
        walk->wrong = true;
    return pointer;
}

static bool frames_is(struct frames_walk *walk, const void *object, const void *type)
{
    return frames_pointer(walk, object, PYTHON_OBJECT_TYPE) == type;
}

/* Whether a run of bytes can be read, of an object that is what it should be. */
static bool frames_has(struct frames_walk *walk, const void *object, size_t offset, size_t bytes)
{
    char byte;
    return walk->memory < 0 || bytes == 0 ||
           frames_read(walk, &byte, object, offset + bytes - 1, sizeof(byte));
}

/* The string that an object refers to at an offset. */
static bool frames_text(struct frames_walk *walk, const void *object, size_t offset,
                        struct python_text *text)
{
    const struct python_layout *layout = &walk->python->layout;
    const char *string = frames_member(walk, object, offset);
    int64_t length = 0;
    uint32_t state = 0;
    if (!string)
        return false;
    if (!frames_is(walk, string, walk->python->text_type)) { /* of a class made from str */
        walk->unusual = true;
        *text = (struct python_text){.data = "?", .length = 1, .width = 1};
        return !walk->wrong;
    }
    if (!frames_read(walk, &length, string, layout->text_length, sizeof(length)) ||
        !frames_read(walk, &state, string, layout->text_state, sizeof(state)))
        return false;
    /* two bits; three of the characters' width; whether the characters follow; whether ASCII */
    if (layout->may_shift_state && (state >> 2 & 7) == 0)
        state = state >> 16 << 2;
    unsigned width = state >> 2 & 7;
    bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
    if (length < 0 || length > FRAMES_TEXT_MAX || (width != 1 && width != 2 && width != 4) ||
        !is_compact || (is_ascii && width != 1)) {
        walk->wrong = true;
        return false;
    }
    size_t start = is_ascii ? layout->text_ascii : layout->text_wide;
    *text =
        (struct python_text){.data = string + start, .length = (uint32_t)length, .width = width};
    return frames_has(walk, string, start, (size_t)length * width);
}

/* The byte offset of the instruction that a frame is at; negative before the first one. */
static int64_t frames_instruction(struct frames_walk *walk, const char *frame, const char *code)
{
    const struct python_layout *layout = &walk->python->layout;
    if (layout->instruction == PYTHON_INSTRUCTION_POINTER) {
        const char *at = NULL;
        frames_read(walk, &at, frame, layout->frame_instruction, sizeof(at));
        return (int64_t)((uintptr_t)at - (uintptr_t)code - layout->code_start);
    }
    int32_t at = 0;
    frames_read(walk, &at, frame, layout->frame_instruction, sizeof(at));
    return layout->instruction == PYTHON_INSTRUCTION_UNITS ? (int64_t)at * 2 : at;
}

static bool frames_line(struct frames_walk *walk, const char *frame, const char *code,
                        int32_t *line)
{
    const struct python_layout *layout = &walk->python->layout;
    int64_t offset = frames_instruction(walk, frame, code), bytes = 0;
    const uint8_t *table = frames_member(walk, code, layout->code_lines);
    int32_t first = 0;
    if (!table)
        return false;
    if (!frames_is(walk, table, walk->python->bytes_type)) {
        walk->unusual = true;
        *line = 0;
        return !walk->wrong;
    }
    if (!frames_read(walk, &first, code, layout->code_first_line, sizeof(first)) ||
        !frames_read(walk, &bytes, table, layout->bytes_size, sizeof(bytes)))
        return false;
    if (bytes < 0 || first < 0 || offset > UINT32_MAX) {
        walk->wrong = true;
        return false;
    }
    if (bytes > FRAMES_LINES_MAX)
        bytes = FRAMES_LINES_MAX;
    if (!frames_has(walk, table, layout->bytes_data, (size_t)bytes))
        return false;
    *line = offset < 0 ? first
                       : python_lines_find(layout->lines, table + layout->bytes_data, (size_t)bytes,
                                           first, (uint32_t)offset);
    return true;
}

static bool frames_fill(struct frames_walk *walk, const char *frame, const char *code,
                        struct python_frame *into)
{
    const struct python_layout *layout = &walk->python->layout;
    into->code = code;
    if (!frames_is(walk, code, walk->python->code_type))
        walk->wrong = true;
    return !walk->wrong && frames_text(walk, code, layout->code_file, &into->file) &&
           frames_text(walk, code, layout->code_function, &into->function) &&
           frames_line(walk, frame, code, &into->line);
}

/* The code object of a frame; NULL for a frame without. Where 3.14 marks references in their lowest
 * bits, they are no part of the address. */
static const char *frames_code(struct frames_walk *walk, const char *frame)
{
    const struct python_layout *layout = &walk->python->layout;
    uint8_t owner = 0;
    uintptr_t code = 0;
    if (layout->frame_owner != PYTHON_NO_OWNER &&
        (!frames_read(walk, &owner, frame, layout->frame_owner, sizeof(owner)) ||
         owner >= FRAMES_OWNER_NO_CODE))
        return NULL;
    frames_read(walk, &code, frame, layout->frame_code, sizeof(code));
    return (const char *)(code & ~(uintptr_t)(sizeof(void *) - 1));
}

static unsigned frames_walk(struct frames_walk *walk, const void *thread,
                            struct python_frame *frames, unsigned most)
{
    const struct python_layout *layout = &walk->python->layout;
    unsigned count = 0;
    const char *frame = frames_pointer(walk, thread, layout->thread_frame);
    if (layout->thread_cframe != PYTHON_NO_CFRAME && frame)
        frame = frames_pointer(walk, frame, layout->thread_cframe);
    /* Between two of Python's frames there is at most one of the interpreter's own. */
    for (unsigned steps = 0; frame && count < most && steps < most * 2 + 2; steps++) {
        if (walk->python->is_finalizing())
            return 0;
        const char *code = frames_code(walk, frame);
        if (code && frames_fill(walk, frame, code, &frames[count]))
            count++;
        if (walk->wrong)
            break;
        frame = frames_pointer(walk, frame, layout->frame_previous);
    }
    return count;
}

/* The first stack. */
static unsigned frames_try(struct frames_walk *walk, const void *thread,
                           struct python_frame *frames, unsigned most, _Atomic int *trust)
{
    int before = errno;
    unsigned count = 0;
    walk->memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (walk->memory >= 0) {
        count = frames_walk(walk, thread, frames, most);
        close(walk->memory);
        if (count > 0 && !walk->wrong && !walk->unusual)
            atomic_store_explicit(trust, PYTHON_TRUSTED, memory_order_relaxed);
    }
    errno = before;
    return count;
}

unsigned python_frames(struct python_frame *frames, unsigned most)
{
    _Atomic int *trust = NULL;
    struct frames_walk walk = {.python = python_interpreter_find(&trust), .memory = -1};
    if (!walk.python)
        return 0;
    int trusted = atomic_load_explicit(trust, memory_order_relaxed);
    if (trusted == PYTHON_WRONG || walk.python->is_finalizing())
        return 0;
    const void *thread = walk.python->own_thread();
    if (!thread)
        return 0;
    unsigned count = trusted == PYTHON_TRUSTED ? frames_walk(&walk, thread, frames, most)
                                               : frames_try(&walk, thread, frames, most, trust);
    if (walk.wrong) {
        atomic_store_explicit(trust, PYTHON_WRONG, memory_order_relaxed);
        return 0;
    }
    return count;
}
