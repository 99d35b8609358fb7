/* SPDX-License-Identifier: MIT
 *
 * Which frame of a stack is named as the site: the rule, on stacks as programs have them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sites.h"

#define TORCH   "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"
#define SHIM    "/opt/gpulimit/lib/libgpulimit.so"
#define DRIVER  "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
#define RUNTIME "/opt/venv/lib/libcudart.so.12"
#define LIBC    "/usr/lib/x86_64-linux-gnu/libc.so.6"

/* A ledger of one site. A text that begins with "py:" is a Python frame's file, any other a native
 * frame's module; frame i has function text i + 1 and line i, or address i. */
static struct gpulimit_module test_modules[GPULIMIT_SITE_FRAMES];
static char test_texts[GPULIMIT_SITE_FRAMES][GPULIMIT_TEXT_BYTES + 1];
static struct gpulimit_site test_site;
static const struct gpulimit_ledger test_ledger = {.modules = test_modules,
                                                   .module_count = GPULIMIT_SITE_FRAMES,
                                                   .texts = test_texts,
                                                   .text_count = GPULIMIT_SITE_FRAMES};

static void test_make(const char *const frames[], uint32_t count)
{
    test_site = (struct gpulimit_site){0};
    for (uint32_t i = 0; i < count; i++) {
        if (strncmp(frames[i], "py:", 3) == 0) {
            strcpy(test_texts[i], frames[i] + 3);
            test_site.frames[i] =
                (struct gpulimit_frame){GPULIMIT_FRAME_PYTHON, i + 1, (uint64_t)(i + 1) << 32 | i};
            test_site.python_count++;
        } else {
            strcpy(test_modules[i].path, frames[i]);
            test_site.frames[i] = (struct gpulimit_frame){GPULIMIT_FRAME_NATIVE, i + 1, i};
            test_site.native_count++;
        }
    }
}

struct stack {
    const char *frames[6];
    uint32_t chosen, python;
};

#define NONE SITES_NO_FRAME

static const struct stack stacks[] = {
    /* Python's own line, below what every request passes through and the framework. */
    {{SHIM, RUNTIME, "/x/libc10_cuda.so", "py:" TORCH, "py:/srv/model.py", "py:/srv/train.py"},
     4,
     4},
    {{SHIM, "py:/usr/lib/python3/dist-packages/cupy/_core/core.py", "py:train.py"}, 2, 2},
    {{SHIM, "py:/v/lib/python3.12/site-packages/jax/_src/api.py",
      "py:/v/lib/python3.12/contextlib.py", "py:<stdin>"},
     3,
     3},
    {{SHIM, "py:/v/site-packages/numba/cuda/api.py", "py:/v/site-packages/torchvision/m.py"}, 2, 2},
    {{SHIM, "py:/srv/torch/train.py"}, 1, 1}, /* a folder of that name is not the framework */
    {{SHIM, "py:/tmp/torchinductor_anna/ab/cabc.py", "py:<eval_with_key>.7", "py:/srv/train.py"},
     3,
     3},
    /* Nothing but the framework in Python: native. */
    {{SHIM, DRIVER, RUNTIME, "/x/libtorch_cuda.so", "py:" TORCH, "py:<frozen runpy>"}, 3, 4},
    /* No Python. */
    {{SHIM, DRIVER, RUNTIME, "/x/libcublas.so.12", "/x/solver"}, 3, NONE},
    {{SHIM, "/x/libcudart-0d11f3e2.so.12", "/lib64/ld-linux-x86-64.so.2", LIBC, "/x/solver"},
     4,
     NONE},
    {{SHIM, "/x/libnvidia-ml.so.1", "/lib/libc-2.31.so", "/lib/libpthread.so.0",
      "/x/libcudanoise.so"},
     4,
     NONE},
    {{SHIM, DRIVER, LIBC}, 0, NONE}, /* passages all the way */
    {{SHIM, DRIVER, "py:" TORCH, "py:<frozen runpy>"}, 2, 2},
    {{"/x/solver"}, 0, NONE},
    {{NULL}, NONE, NONE},
};

static void test_the_site_is_the_first_frame_of_the_programs_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        uint32_t count = 0;

        while (count < 6 && stacks[i].frames[count]) {
            count++;
        }
        test_make(stacks[i].frames, count);
        if (sites_choose(&test_ledger, &test_site) != stacks[i].chosen ||
            sites_choose_python(&test_ledger, &test_site) != stacks[i].python) {
            fail_msg("stack %zu: frame %u, of Python %u", i, sites_choose(&test_ledger, &test_site),
                     sites_choose_python(&test_ledger, &test_site));
        }
    }
}

static void test_no_site_has_no_frames(void **state)
{
    (void)state;
    assert_int_equal(sites_get_count(NULL), 0);
    assert_int_equal(sites_choose(&test_ledger, NULL), SITES_NO_FRAME);
    assert_int_equal(sites_choose_python(&test_ledger, NULL), SITES_NO_FRAME);
}

static void test_a_tag_is_the_allocations_own(void **state)
{
    struct gpulimit_ledger_entry entry = {.tag = 2};

    (void)state;
    strcpy(test_texts[1], "epoch 3");
    assert_string_equal(sites_get_tag(&test_ledger, &entry), "epoch 3");
    entry.tag = 0;
    assert_string_equal(sites_get_tag(&test_ledger, &entry), "");
    entry.tag = GPULIMIT_SITE_FRAMES + 1;
    assert_string_equal(sites_get_tag(&test_ledger, &entry), "");
}

static void test_frames_say_where(void **state)
{
    static const char *const frames[] = {"/x/solver", "py:/srv/train.py"};
    struct sites_frame frame;

    (void)state;
    test_make(frames, 2);
    frame = sites_get_frame(&test_ledger, &test_site, 0);
    assert_string_equal(frame.module->path, "/x/solver");
    assert_string_equal(frame.file, "");
    frame = sites_get_frame(&test_ledger, &test_site, 1);
    assert_null(frame.module);
    assert_string_equal(frame.file, "/srv/train.py");
    assert_string_equal(frame.function, "/srv/train.py"); /* the same text, see above */
    assert_int_equal(frame.line, 1);
}

static void test_frames_of_what_is_unknown_are_frames(void **state)
{
    struct sites_frame frame;

    (void)state;
    test_site = (struct gpulimit_site){.native_count = 3};
    test_site.frames[0] = (struct gpulimit_frame){GPULIMIT_FRAME_NATIVE, 0, 5};
    test_site.frames[1] = (struct gpulimit_frame){GPULIMIT_FRAME_PYTHON, 999, UINT64_MAX};
    test_site.frames[2] = (struct gpulimit_frame){77, UINT32_MAX, 0};
    frame = sites_get_frame(&test_ledger, &test_site, 0);
    assert_null(frame.module);
    assert_int_equal(frame.address, 5);
    frame = sites_get_frame(&test_ledger, &test_site, 1);
    assert_string_equal(frame.file, "");
    assert_string_equal(frame.function, "");
    frame = sites_get_frame(&test_ledger, &test_site, 2);
    assert_int_equal(frame.kind, 77);
    assert_null(frame.module);
}

static void test_only_the_same_place_compares_equal(void **state)
{
    const struct gpulimit_module here = {.path = "a"}, twin = {.path = "a"}, there = {.path = "b"};
    const struct sites_frame frames[] = {
        {GPULIMIT_FRAME_NATIVE, &here, 1, "", "", 0},
        {GPULIMIT_FRAME_NATIVE, &here, 2, "", "", 0},
        {GPULIMIT_FRAME_NATIVE, &there, 1, "", "", 0},
        {GPULIMIT_FRAME_NATIVE, NULL, 1, "", "", 0},
        {GPULIMIT_FRAME_PYTHON, NULL, 0, "a", "f", 1},
        {GPULIMIT_FRAME_PYTHON, NULL, 0, "a", "f", 2},
        {GPULIMIT_FRAME_PYTHON, NULL, 0, "a", "g", 1},
        {GPULIMIT_FRAME_PYTHON, NULL, 0, "b", "f", 1},
    };
    const struct sites_frame same = {GPULIMIT_FRAME_NATIVE, &twin, 1, "", "", 0};
    size_t count = sizeof(frames) / sizeof(frames[0]);

    (void)state;
    assert_int_equal(sites_compare_frames(&frames[0], &same), 0);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = sites_compare_frames(&frames[i], &frames[j]);

            assert_true((order == 0) == (i == j));
            assert_true((order < 0) == (sites_compare_frames(&frames[j], &frames[i]) > 0));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_site_is_the_first_frame_of_the_programs_own),
        cmocka_unit_test(test_no_site_has_no_frames),
        cmocka_unit_test(test_a_tag_is_the_allocations_own),
        cmocka_unit_test(test_frames_say_where),
        cmocka_unit_test(test_frames_of_what_is_unknown_are_frames),
        cmocka_unit_test(test_only_the_same_place_compares_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
