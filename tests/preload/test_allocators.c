/* SPDX-License-Identifier: MIT
 *
 * What every hook that ALLOCATES gets, however it is called: over the limit it is refused and the
 * driver not asked; a failure of the driver's own comes through and costs nothing; what the limit
 * leaves is given, and a free gives it back; calls that mean nothing go to the driver as they are.
 * The cases come from allocators.def. What is special about one family is in that family's test.
 */
#include "preload.h"

#include "bare.h"
#include "hook.h"

#include <string.h>

enum { ROW_BYTES = 1 << 20, HELD_MIB = 512, OUTPUTS = 0x5a };

struct outputs {
    CUdeviceptr address;
    size_t pitch;
    CUdeviceptr_v1 address32;
    unsigned pitch32;
    CUmemGenericAllocationHandle handle;
    CUarray array;
    CUmipmappedArray mipmapped;
};

struct allocator {
    const char *symbol;
    unsigned twins;
    hook_function hook;
    /* Calls a function of the hook's type; without outputs if out is NULL. */
    CUresult (*allocate)(hook_function function, struct outputs *out, size_t bytes);
    CUresult (*free)(const struct outputs *out);
};

static CUmemoryPool pool;
static CUmemAllocationProp prop;

/* Arrays that require just so much: rows of 32 KiB, 64 of which make a block, as long as 64
 * divides them. */
enum { ARRAY_WIDTH = 2048, ARRAY_ROW_BYTES = 32768 };

static const CUDA_ARRAY3D_DESCRIPTOR *array_3d(size_t bytes)
{
    static CUDA_ARRAY3D_DESCRIPTOR descriptor;
    descriptor = (CUDA_ARRAY3D_DESCRIPTOR){.Width = bytes ? ARRAY_WIDTH : 0,
                                           .Height = bytes / ARRAY_ROW_BYTES,
                                           .Format = CU_AD_FORMAT_FLOAT,
                                           .NumChannels = 4};
    return &descriptor;
}

static const CUDA_ARRAY3D_DESCRIPTOR_v1 *array_3d_v1(size_t bytes)
{
    static CUDA_ARRAY3D_DESCRIPTOR_v1 descriptor;
    descriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){.Width = bytes ? ARRAY_WIDTH : 0,
                                              .Height = (unsigned)(bytes / ARRAY_ROW_BYTES),
                                              .Format = CU_AD_FORMAT_FLOAT,
                                              .NumChannels = 4};
    return &descriptor;
}

static const CUDA_ARRAY_DESCRIPTOR *array_2d(size_t bytes)
{
    static CUDA_ARRAY_DESCRIPTOR descriptor;
    descriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = bytes ? ARRAY_WIDTH : 0,
                                         .Height = bytes / ARRAY_ROW_BYTES,
                                         .Format = CU_AD_FORMAT_FLOAT,
                                         .NumChannels = 4};
    return &descriptor;
}

static const CUDA_ARRAY_DESCRIPTOR_v1 *array_2d_v1(size_t bytes)
{
    static CUDA_ARRAY_DESCRIPTOR_v1 descriptor;
    descriptor = (CUDA_ARRAY_DESCRIPTOR_v1){.Width = bytes ? ARRAY_WIDTH : 0,
                                            .Height = (unsigned)(bytes / ARRAY_ROW_BYTES),
                                            .Format = CU_AD_FORMAT_FLOAT,
                                            .NumChannels = 4};
    return &descriptor;
}

#define OUT(_member) (out ? &out->_member : NULL)
#define ALLOCATOR(_symbol, _twins, _arguments, _free)                                              \
    static CUresult allocate_##_symbol(hook_function function, struct outputs *out, size_t bytes)  \
    {                                                                                              \
        return ((__typeof__(&_symbol))function)_arguments;                                         \
    }                                                                                              \
    static CUresult free_##_symbol(const struct outputs *out)                                      \
    {                                                                                              \
        return _free;                                                                              \
    }
#include "allocators.def"

static struct allocator allocators[] = {
#define ALLOCATOR(_symbol, _twins, _arguments, _free)                                              \
    {#_symbol, _twins, (hook_function)_symbol, allocate_##_symbol, free_##_symbol},
#include "allocators.def"
};

enum {
#define ALLOCATOR(_symbol, _twins, _arguments, _free) ALLOCATOR_##_symbol,
#include "allocators.def"
    ALLOCATORS
};

static CUresult ask(const struct allocator *allocator, struct outputs *out, size_t bytes)
{
    memset(out, OUTPUTS, sizeof *out);
    return allocator->allocate(allocator->hook, out, bytes);
}

/* The same, past the library. */
static CUresult ask_driver(const struct allocator *allocator, struct outputs *out, size_t bytes)
{
    hook_function function;
    *(void **)&function = bare_dlsym(bare_driver(), allocator->symbol);
    if (out)
        memset(out, OUTPUTS, sizeof *out);
    return allocator->allocate(function, out, bytes);
}

/* What the driver leaves in the outputs when it has no memory: the card is filled past the library.
 * Managed memory can be had even so, and fails by order. */
static struct outputs drivers_failure(const struct allocator *allocator)
{
    struct outputs rest, out;
    const struct allocator *linear = &allocators[ALLOCATOR_cuMemAlloc_v2];
    assert_ok(ask_driver(linear, &rest, MIB(7500)));
    if (ask_driver(allocator, &out, MIB(1026)) == CUDA_SUCCESS) {
        assert_ok(allocator->free(&out));
        simgpu_fail_next(allocator->symbol, CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(ask_driver(allocator, &out, MIB(1026)), CUDA_ERROR_OUT_OF_MEMORY);
    }
    assert_ok(linear->free(&rest));
    return out;
}

/* Pools keep what was freed: it is theirs to give back. */
static void empty_pools(void)
{
    CUmemoryPool default_pool;
    assert_ok(cuDeviceGetDefaultMemPool(&default_pool, 0));
    assert_ok(cuMemPoolTrimTo(default_pool, 0));
    assert_ok(cuMemPoolTrimTo(pool, 0));
}

static CUdeviceptr hold(void)
{
    CUdeviceptr held;
    assert_ok(cuMemAlloc_v2(&held, MIB(HELD_MIB)));
    return held;
}

static void test_over_limit(void **state)
{
    const struct allocator *allocator = *state;
    struct outputs out;
    CUdeviceptr held = hold();
    uint64_t calls = simgpu_calls(allocator->symbol), bytes = preload_device_bytes();
    uint64_t denials = preload_device()->denials;
    assert_int_equal(ask(allocator, &out, MIB(HELD_MIB + 2)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(simgpu_calls(allocator->symbol), calls + allocator->twins);
    assert_int_equal(preload_device_bytes(), bytes);
    assert_int_equal(preload_free(), MIB(1024 - HELD_MIB));
    assert_int_equal(preload_device()->denials, denials + 1);
    assert_ok(cuMemFree_v2(held));
}

static void test_refusals_outputs(void **state)
{
    const struct allocator *allocator = *state;
    struct outputs refused, failed = drivers_failure(allocator);
    assert_int_equal(ask(allocator, &refused, MIB(1026)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_memory_equal(&refused, &failed, sizeof refused);
}

/* result: what the driver is made to answer. */
static void drivers_answer_comes_through(const struct allocator *allocator, CUresult result)
{
    struct outputs ours, drivers;
    uint64_t calls = simgpu_calls(allocator->symbol), denials = preload_device()->denials;
    simgpu_fail_after(allocator->symbol, allocator->twins, (int)result);
    assert_int_equal(ask(allocator, &ours, MIB(100)), result);
    assert_int_equal(simgpu_calls(allocator->symbol), calls + allocator->twins + 1);
    simgpu_fail_next(allocator->symbol, (int)result);
    assert_int_equal(ask_driver(allocator, &drivers, MIB(100)), result);
    assert_memory_equal(&ours, &drivers, sizeof ours);
    assert_int_equal(preload_free(), MIB(1024));
    assert_int_equal(preload_device_bytes(), 0);
    assert_int_equal(preload_device()->denials, denials); /* not our doing */
}

static void test_drivers_out_of_memory(void **state)
{
    drivers_answer_comes_through(*state, CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_drivers_other_error(void **state)
{
    drivers_answer_comes_through(*state, CUDA_ERROR_UNKNOWN);
}

static void test_within_limit(void **state)
{
    const struct allocator *allocator = *state;
    struct outputs out;
    CUdeviceptr held = hold();
    uint64_t calls = simgpu_calls(allocator->symbol);
    assert_ok(ask(allocator, &out, MIB(1024 - HELD_MIB))); /* all that is left */
    assert_int_equal(simgpu_calls(allocator->symbol), calls + allocator->twins + 1);
    assert_int_equal(preload_free(), 0);
    assert_int_equal(preload_device()->live_allocations, 2);
    assert_ok(allocator->free(&out));
    empty_pools();
    assert_int_equal(preload_free(), MIB(1024 - HELD_MIB));
    assert_int_equal(preload_device()->live_allocations, 1);
    assert_ok(cuMemFree_v2(held));
}

static void test_again_after_refusal(void **state)
{
    const struct allocator *allocator = *state;
    struct outputs out;
    CUdeviceptr held = hold();
    uint64_t recovered = preload_device()->denials_recovered;
    assert_int_equal(ask(allocator, &out, MIB(600)), CUDA_ERROR_OUT_OF_MEMORY);
    assert_ok(cuMemFree_v2(held));
    assert_ok(ask(allocator, &out, MIB(600)));
    assert_int_equal(preload_device()->denials_recovered, recovered + 1);
    assert_ok(allocator->free(&out));
}

/* Also with nothing left: it costs nothing, so no limit stands against it. */
static void test_nothing(void **state)
{
    const struct allocator *allocator = *state;
    struct outputs ours, drivers, all;
    const struct allocator *linear = &allocators[ALLOCATOR_cuMemAlloc_v2];
    assert_ok(ask(linear, &all, MIB(1024)));
    uint64_t calls = simgpu_calls(allocator->symbol);
    CUresult result = ask(allocator, &ours, 0);
    assert_int_equal(simgpu_calls(allocator->symbol), calls + 1);
    assert_int_equal(result, ask_driver(allocator, &drivers, 0));
    assert_memory_equal(&ours, &drivers, sizeof ours);
    assert_int_equal(preload_device()->live_allocations, 1);
    assert_ok(linear->free(&all));
}

static void test_nowhere(void **state)
{
    const struct allocator *allocator = *state;
    uint64_t calls = simgpu_calls(allocator->symbol);
    CUresult result = allocator->allocate(allocator->hook, NULL, MIB(2048));
    assert_int_equal(simgpu_calls(allocator->symbol), calls + 1);
    assert_int_equal(result, CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(result, ask_driver(allocator, NULL, MIB(2048)));
}

static void test_every_allocating_hook_has_a_row(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOOKS; i++) {
        unsigned row = 0;
        while (row < ALLOCATORS && strcmp(allocators[row].symbol, hooks[i].symbol) != 0)
            row++;
        if ((row < ALLOCATORS) != (hooks[i].role == ALLOCATES))
            fail_msg("%s: hooks.def and allocators.def differ", hooks[i].symbol);
    }
}

static int set_up(void **state)
{
    const CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
    prop = preload_device_prop();
    if (bare_find_loader(state) != 0 || preload_set_up(state) != 0)
        return -1;
    return cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS ? 0 : -1;
}

static int assert_clean(void **state)
{
    empty_pools();
    return preload_assert_clean(state);
}

#define CASE(_name, _test, _symbol)                                                                \
    {                                                                                              \
        _name, _test, NULL, assert_clean, &allocators[ALLOCATOR_##_symbol]                         \
    }

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_allocating_hook_has_a_row),
#define ALLOCATOR(_symbol, _twins, _arguments, _free)                                              \
    CASE(#_symbol " over the limit is refused without the driver", test_over_limit, _symbol),      \
        CASE(#_symbol " refused leaves its outputs as the driver would", test_refusals_outputs,    \
             _symbol),                                                                             \
        CASE(#_symbol " hands on the driver's out of memory", test_drivers_out_of_memory,          \
             _symbol),                                                                             \
        CASE(#_symbol " hands on any other error", test_drivers_other_error, _symbol),             \
        CASE(#_symbol " gives what is left, and takes it back", test_within_limit, _symbol),       \
        CASE(#_symbol " succeeds after a refusal once there is room", test_again_after_refusal,    \
             _symbol),                                                                             \
        CASE(#_symbol " of nothing goes to the driver as it is", test_nothing, _symbol),           \
        CASE(#_symbol " to nowhere goes to the driver as it is", test_nowhere, _symbol),
#include "allocators.def"
};

int main(void)
{
    return cmocka_run_group_tests(tests, set_up, NULL);
}
