/* SPDX-License-Identifier: MIT
 *
 * entry_setting.c: what a context takes by a setting is refused beforehand if it cannot fit, and
 * counts as overhead. The simulated device has 132 x 2048 threads.
 */
#include "preload.h"

enum { THREADS = 132 * 2048 };

static size_t stack_at_first;

static int set_up(void **state)
{
    return preload_set_up(state) || cuCtxGetLimit(&stack_at_first, CU_LIMIT_STACK_SIZE);
}

static uint64_t overhead(void)
{
    return atomic_load(&preload_device()->overhead_bytes);
}

static int assert_clean(void **state)
{
    return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_at_first) || preload_assert_clean(state);
}

static void test_a_larger_stack_counts_until_it_is_smaller(void **state)
{
    (void)state;
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_at_first + 2048));
    assert_int_equal(overhead(), preload_device_bytes());
    assert_int_equal(preload_free(), MIB(1024) - overhead());
    assert_true(overhead() >= (uint64_t)2048 * THREADS);
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_at_first));
    assert_int_equal(overhead(), 0);
}

static void test_a_stack_that_cannot_fit_never_reaches_the_driver(void **state)
{
    size_t stack;
    (void)state;
    uint64_t calls = simgpu_calls("cuCtxSetLimit");
    uint64_t denials = atomic_load(&preload_device()->denials);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 65536), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(simgpu_calls("cuCtxSetLimit"), calls);
    assert_int_equal(atomic_load(&preload_device()->denials), denials + 1);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 20), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(atomic_load(&preload_device()->denials), denials + 1);
    assert_ok(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
    assert_int_equal(stack, stack_at_first);
}

static void test_a_smaller_stack_and_back_costs_nothing(void **state)
{
    (void)state;
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 512));
    assert_int_equal(overhead(), 0);
    assert_int_equal(preload_free(), MIB(1024));
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_at_first));
    assert_int_equal(overhead(), 0);
}

/* It comes with the first kernel that uses it, when nobody can refuse it any more. */
static void test_a_heap_is_charged_when_it_is_set(void **state)
{
    size_t heap;
    (void)state;
    assert_ok(cuCtxGetLimit(&heap, CU_LIMIT_MALLOC_HEAP_SIZE));
    assert_ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap + MIB(100)));
    assert_int_equal(overhead(), MIB(100));
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap + MIB(1025)),
                     CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap));
}

static void test_what_the_driver_refuses_costs_nothing(void **state)
{
    (void)state;
    simgpu_fail_next("cuCtxSetLimit", CUDA_ERROR_UNKNOWN);
    assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_at_first + 1024), CUDA_ERROR_UNKNOWN);
    assert_int_equal(overhead(), 0);
    assert_int_not_equal(cuCtxSetLimit((CUlimit)99, 1), CUDA_SUCCESS);
}

static void test_settings_of_a_context_go_with_it(void **state)
{
    CUcontext own, before;
    (void)state;
    assert_ok(cuCtxGetCurrent(&before));
    assert_ok(cuCtxCreate_v2(&own, 0, 0));
    assert_ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_at_first + 1024));
    assert_true(overhead() > 0);
    assert_ok(cuCtxDestroy_v2(own));
    assert_ok(cuCtxSetCurrent(before));
    assert_int_equal(overhead(), 0);
}

#define CLEAN(_test) cmocka_unit_test_teardown(_test, assert_clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEAN(test_a_larger_stack_counts_until_it_is_smaller),
        CLEAN(test_a_stack_that_cannot_fit_never_reaches_the_driver),
        CLEAN(test_a_smaller_stack_and_back_costs_nothing),
        CLEAN(test_a_heap_is_charged_when_it_is_set),
        CLEAN(test_what_the_driver_refuses_costs_nothing),
        CLEAN(test_settings_of_a_context_go_with_it),
    };
    return cmocka_run_group_tests_name("settings", tests, set_up, NULL);
}
