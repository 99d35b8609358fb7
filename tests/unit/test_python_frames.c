/* SPDX-License-Identifier: MIT
 *
 * shim/python_frames.c with a made-up interpreter, which this program is: one that has a table of
 * its layout, as from 3.13 on, and objects laid out as that says; and then one that is not what it
 * says. Each case is a process of its own, as an interpreter is judged once.
 */
#include "unit.h"

#include "python_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST = 8, WORDS = 96, COMPACT_ASCII = 1 << 2 | 1 << 5 | 1 << 6 };

struct object {
    uint64_t references;
    const void *type;
};

struct text {
    struct object object;
    uint64_t hash;
    int64_t length;
    uint32_t state;
    char data[44];
};

struct bytes {
    struct object object;
    int64_t hash, size;
    uint8_t data[16];
};

struct code {
    struct object object;
    const struct text *file, *function;
    const struct bytes *lines;
    int32_t first_line;
    uint16_t instructions[8];
};

struct frame {
    const struct frame *previous;
    uintptr_t code;
    const void *instruction;
    char owner;
};

struct thread {
    uint64_t others[5];
    const struct frame *frame;
};

EXPORT uint64_t PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8], _PyRuntime[WORDS];
EXPORT const char *Py_GetVersion(void);
EXPORT const void *PyGILState_GetThisThreadState(void);
EXPORT int Py_IsFinalizing(void);

static const char *version;
static int is_finalizing;
static struct text file, function;
static struct bytes lines;
static struct code code;
static struct object none = {.references = 1, .type = &none};
static struct frame inner, entry, outer;
static struct thread thread;
static const struct thread *own_thread;

const char *Py_GetVersion(void)
{
    return version;
}

const void *PyGILState_GetThisThreadState(void)
{
    return own_thread;
}

int Py_IsFinalizing(void)
{
    return is_finalizing;
}

static void make_text(struct text *text, const char *characters)
{
    *text = (struct text){.object = {1, PyUnicode_Type},
                          .length = (int64_t)strlen(characters),
                          .state = COMPACT_ASCII};
    memcpy(text->data, characters, strlen(characters));
}

/* 3.14, with two calls of one function, the interpreter's own frame between them. */
static int make_interpreter(void **state)
{
    (void)state;
    version = "3.14.2 (main, made up)";
    is_finalizing = 0;
    own_thread = &thread;
    for (unsigned i = 0; i < WORDS; i++)
        _PyRuntime[i] = 1000; /* what nobody should look at */
    memcpy(_PyRuntime, "xdebugpy", 8);
    _PyRuntime[1] = 0x030e02f0;
    _PyRuntime[2] = 0;
    _PyRuntime[26] = offsetof(struct thread, frame);
    _PyRuntime[32] = offsetof(struct frame, previous);
    _PyRuntime[33] = offsetof(struct frame, code);
    _PyRuntime[34] = offsetof(struct frame, instruction);
    _PyRuntime[36] = offsetof(struct frame, owner);
    _PyRuntime[40] = offsetof(struct code, file);
    _PyRuntime[42] = offsetof(struct code, function);
    _PyRuntime[43] = offsetof(struct code, lines);
    _PyRuntime[44] = offsetof(struct code, first_line);
    _PyRuntime[48] = offsetof(struct code, instructions);
    _PyRuntime[75] = offsetof(struct bytes, size);
    _PyRuntime[76] = offsetof(struct bytes, data);
    _PyRuntime[78] = offsetof(struct text, state);
    _PyRuntime[79] = offsetof(struct text, length);
    _PyRuntime[80] = offsetof(struct text, data);
    make_text(&file, "train.py");
    make_text(&function, "Net.forward");
    lines = (struct bytes){.object = {1, PyBytes_Type},
                           .size = 6,
                           .data = {0xd9, 0, 0, 0xe1, 0, 0}}; /* two units each: +1, +2 lines */
    code = (struct code){.object = {1, PyCode_Type},
                         .file = &file,
                         .function = &function,
                         .lines = &lines,
                         .first_line = 40};
    outer = (struct frame){.code = (uintptr_t)&code, .instruction = &code.instructions[2]};
    entry = (struct frame){.previous = &outer, .code = (uintptr_t)&none, .owner = 3};
    inner = (struct frame){
        .previous = &entry, .code = (uintptr_t)&code | 1, .instruction = &code.instructions[1]};
    thread = (struct thread){.frame = &inner};
    return 0;
}

/* The frames as text, "FILE:LINE FUNCTION" each. */
static const char *frames_seen(void)
{
    static char seen[1024];
    struct python_frame frames[MOST];
    unsigned count = python_frames(frames, MOST);
    int used = 0;
    seen[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        char name[2][32];
        uint32_t bytes[2] = {python_text_copy(name[0], sizeof(name[0]), &frames[i].file),
                             python_text_copy(name[1], sizeof(name[1]), &frames[i].function)};
        used += snprintf(seen + used, sizeof(seen) - (size_t)used, "%s%.*s:%d %.*s", i ? ", " : "",
                         (int)bytes[0], name[0], (int)frames[i].line, (int)bytes[1], name[1]);
    }
    return seen;
}

#define BOTH "train.py:41 Net.forward, train.py:43 Net.forward"

/* In a process of its own: says what differs, and ends with whether nothing did. */
static void expect(const char *expected)
{
    const char *seen = frames_seen();
    if (strcmp(seen, expected) == 0)
        return;
    print_message("# seen \"%s\" instead of \"%s\"\n", seen, expected);
    _exit(1);
}

/* How a process ends that does nothing but this. */
static int status_of(void (*body)(void))
{
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void expect_none(void)
{
    expect("");
}

#define CASE(_name)                                                                                \
    static void in_##_name(void);                                                                  \
    static void _name(void **state)                                                                \
    {                                                                                              \
        (void)state;                                                                               \
        assert_int_equal(status_of(in_##_name), 0);                                                \
    }                                                                                              \
    static void in_##_name(void)

CASE(a_stack_is_read_by_the_interpreters_own_table)
{
    expect(BOTH);
    expect(BOTH); /* now directly */
}

CASE(the_bits_of_a_string_may_lie_higher_in_3_14)
{
    file.state = COMPACT_ASCII >> 2 << 16 | 1;
    expect(BOTH);
}

CASE(a_thread_without_python_or_in_none_of_its_functions_has_no_frames)
{
    own_thread = NULL;
    expect("");
    own_thread = &thread;
    thread.frame = NULL;
    expect("");
    thread.frame = &inner;
    expect(BOTH);
}

CASE(an_interpreter_that_ends_has_no_frames)
{
    is_finalizing = 1;
    expect("");
    is_finalizing = 0;
    expect(BOTH);
}

CASE(frames_in_a_circle_come_to_an_end)
{
    outer.previous = &outer;
    struct python_frame frames[MOST];
    if (python_frames(frames, MOST) != MOST)
        _exit(1);
    outer.owner = inner.owner = 3;
    expect("");
}

CASE(versions_that_are_not_known_have_no_frames)
{
    static const char *const versions[] = {"2.7.18 (", "3.8.18 (", "3.15.0 (",
                                           "3.13.1 (", "4.0",      ""};
    for (unsigned i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        version = versions[i];
        if (i == 2)
            _PyRuntime[1] = 0x030f00f0;
        if (status_of(expect_none) != 0)
            _exit(1);
    }
}

CASE(a_table_that_is_none_or_says_that_there_is_no_gil_gives_no_frames)
{
    static const struct {
        unsigned word;
        uint64_t value;
    } changes[] = {{0, 0}, {1, 0x030d00f0}, {2, 1}, {26, 1 << 20}, {80, UINT64_MAX}};
    for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        uint64_t before = _PyRuntime[changes[i].word];
        _PyRuntime[changes[i].word] = changes[i].value;
        if (status_of(expect_none) != 0)
            _exit(1);
        _PyRuntime[changes[i].word] = before;
    }
    expect(BOTH);
}

/* What would crash a program that reads it. */
static void expect_wrong(void)
{
    errno = ENOTTY;
    expect("");
    if (errno != ENOTTY)
        _exit(1);
    make_interpreter(NULL);
    expect(""); /* it is not tried again */
}

CASE(an_interpreter_that_is_laid_out_otherwise_does_no_harm_and_is_left_alone)
{
    static char *const wild[] = {NULL,
                                 (char *)8,
                                 (char *)0x10000,
                                 (char *)0x7fffdead0000,
                                 (char *)0xffff800000000000,
                                 (char *)-8,
                                 (char *)&code + 1};
    for (unsigned i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        const void *pointer = wild[i];
        const void **const places[] = {(const void **)&code.file, (const void **)&code.function,
                                       (const void **)&code.lines, (const void **)&outer.previous,
                                       (const void **)&thread.frame};
        for (unsigned j = 0; j < sizeof(places) / sizeof(places[0]); j++) {
            if (!pointer && j >= 3)
                continue; /* a stack ends so */
            make_interpreter(NULL);
            *places[j] = pointer;
            if (status_of(expect_wrong) != 0) {
                print_message("# place %u, pointer %u\n", j, i);
                _exit(1);
            }
        }
    }
}

CASE(lengths_and_strings_that_cannot_be_do_no_harm)
{
    for (unsigned i = 0; i < 7; i++) {
        make_interpreter(NULL);
        if (i == 0)
            file.length = -1;
        else if (i == 1)
            file.length = INT64_MAX;
        else if (i == 2)
            function.state = 0;
        else if (i == 3)
            function.state = 3 << 2 | 1 << 5;
        else if (i == 4)
            lines.size = -1;
        else if (i == 5)
            code.object.type = PyUnicode_Type;
        else
            code.first_line = -1;
        if (status_of(expect_wrong) != 0) {
            print_message("# change %u\n", i);
            _exit(1);
        }
    }
}

CASE(objects_of_derived_classes_are_not_read_and_prove_nothing)
{
    file.object.type = lines.object.type = PyCode_Type;
    expect("?:0 Net.forward, ?:0 Net.forward");
    code.file = (const struct text *)0x10000; /* it is still read with care */
    expect("");
}

CASE(the_first_look_leaves_no_descriptor_behind)
{
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    expect(BOTH);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (after != before)
        _exit(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define MADE(_name) cmocka_unit_test_setup(_name, make_interpreter)
        MADE(a_stack_is_read_by_the_interpreters_own_table),
        MADE(the_bits_of_a_string_may_lie_higher_in_3_14),
        MADE(a_thread_without_python_or_in_none_of_its_functions_has_no_frames),
        MADE(an_interpreter_that_ends_has_no_frames),
        MADE(frames_in_a_circle_come_to_an_end),
        MADE(versions_that_are_not_known_have_no_frames),
        MADE(a_table_that_is_none_or_says_that_there_is_no_gil_gives_no_frames),
        MADE(an_interpreter_that_is_laid_out_otherwise_does_no_harm_and_is_left_alone),
        MADE(lengths_and_strings_that_cannot_be_do_no_harm),
        MADE(objects_of_derived_classes_are_not_read_and_prove_nothing),
        MADE(the_first_look_leaves_no_descriptor_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
