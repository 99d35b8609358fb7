/* SPDX-License-Identifier: MIT
 *
 * Which names are known, which look like memory, and which of the driver's are therefore new. That
 * new ones are told is in tests/preload/.
 */
#include "unknown.h"

#include "unit.h"

static void test_every_row_of_the_tables_is_known_and_none_is_new(void **state)
{
    static const char *const rows[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) #_symbol,
#include "gpulimit/tbl/hooks.def"
#define PASS(_symbol, _reason, _text) #_symbol,
#include "gpulimit/tbl/passthrough.def"
    };
    (void)state;
    assert_true(sizeof rows / sizeof rows[0] > 680);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!unknown_is_known(rows[i]) || unknown_is_new(rows[i]))
            fail_msg("%s is said to be unknown", rows[i]);
    }
    assert_false(unknown_is_known("cuMemAlloc_v3"));
    assert_false(unknown_is_known("cuMemAllo"));
    assert_false(unknown_is_known(""));
}

static void test_names_look_like_memory_by_the_first_row_that_fits(void **state)
{
    static const char *const memory[] = {
        "cuMemAlloc_v3",      "cuMemcpyAllocAsync", "cuArrayGrow",
        "cuGraphAddMemNode",  "cuDeviceGetPool",    "cuCtxSetHeap",
        "cuStreamAttachMemX", "cuGraphLaunch_v2",   "cuGreenCtxGrow"};
    static const char *const others[] = {"cuMemcpyBatchAsync_v3",
                                         "cuMemsetD64",
                                         "cuLaunchKernel_v2",
                                         "cuGraphAddMemcpyNode_v2",
                                         "cuEventCreate_v2",
                                         "cu",
                                         ""};
    (void)state;
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        if (!unknown_is_memory_looking(memory[i]) || !unknown_is_new(memory[i]))
            fail_msg("%s looks like memory", memory[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (unknown_is_memory_looking(others[i]) || unknown_is_new(others[i]))
            fail_msg("%s does not look like memory", others[i]);
    }
}

static void test_only_the_drivers_kind_of_name_is_new(void **state)
{
    static const char *const names[] = {"cudaMallocAsync_v2", "cublasAllocPool", "custom_MemPool",
                                        "CuMemHoard",         "xcuMemHoard",     "c"};
    (void)state;
    assert_true(unknown_is_new("cuMemHoard"));
    assert_false(unknown_is_new(NULL));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_false(unknown_is_new(names[i]));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_of_the_tables_is_known_and_none_is_new),
        cmocka_unit_test(test_names_look_like_memory_by_the_first_row_that_fits),
        cmocka_unit_test(test_only_the_drivers_kind_of_name_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
