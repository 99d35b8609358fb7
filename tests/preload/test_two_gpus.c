/* SPDX-License-Identifier: MIT
 *
 * Two GPUs, and memory taken of the one that is not current: it is charged where it lies, each
 * card's overhead is its own, and each is full by itself. Contexts take 64 MiB here; the limits are
 * 256 and 512 MiB.
 */
#include "preload.h"

#include "figure.h"
#include "program.h"

#include <stdio.h>
#include <unistd.h>

#define CONTEXT       MIB(64)
#define LIMITS        "GPU_LIMIT_MB=0=256M,1=512M"
#define IMAGE         "simgpu-module globals=50331648 code=2097152"
#define IMAGE_BYTES   MIB(50)
#define OUT_OF_MEMORY CUDA_ERROR_OUT_OF_MEMORY

/* ---- in the started program ---- */

static CUcontext contexts[2];

static const struct gpulimit_device *device_record(int device)
{
    return preload_device() + device;
}

static bool use(int device)
{
    return (contexts[device] ||
            cuDevicePrimaryCtxRetain(&contexts[device], device) == CUDA_SUCCESS) &&
           cuCtxSetCurrent(contexts[device]) == CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, int device, uint64_t bytes)
{
    CUmemAllocationProp prop = preload_device_prop();
    prop.location.id = device;
    return cuMemCreate(handle, bytes, &prop, 0);
}

static bool create_pool(CUmemoryPool *pool, int device)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    return cuMemPoolCreate(pool, &props) == CUDA_SUCCESS;
}

static bool is_untouched(int device)
{
    return device_record(device)->charged_bytes == 0 && device_record(device)->denials == 0 &&
           simgpu_process_used(device) == 0;
}

/* Memory of device 1, which has no context: no overhead either, and then a context's. */
static int play_created(void)
{
    CUmemGenericAllocationHandle handle;
    expect(cuInit(0) == CUDA_SUCCESS && use(0));
    expect(create(&handle, 1, MIB(100)) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is_unlisted(1, MIB(100)));
    expect(device_record(1)->overhead_bytes == 0);
    expect(device_record(1)->by_kind[GPULIMIT_KIND_VMM].bytes == MIB(100));
    expect(use(1) && figure_is(1, CONTEXT + MIB(100)) && figure_is(0, CONTEXT));
    expect(preload_free() == MIB(512 - 64 - 100));
    expect(use(0) && cuMemRelease(handle) == CUDA_SUCCESS);
    expect(figure_is(1, CONTEXT) && figure_is(0, CONTEXT));
    return 0;
}

static int play_pool(void)
{
    CUmemoryPool pool, by_default;
    CUdeviceptr one, two;
    expect(cuInit(0) == CUDA_SUCCESS && use(0));
    expect(create_pool(&pool, 1));
    expect(cuMemAllocFromPoolAsync(&one, MIB(40), pool, NULL) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is_unlisted(1, MIB(64)));
    expect(cuDeviceGetDefaultMemPool(&by_default, 1) == CUDA_SUCCESS);
    expect(cuMemAllocFromPoolAsync(&two, MIB(1), by_default, NULL) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is_unlisted(1, MIB(96)));
    expect(cuMemFreeAsync(one, NULL) == CUDA_SUCCESS && cuMemFreeAsync(two, NULL) == CUDA_SUCCESS);
    expect(cuStreamSynchronize(NULL) == CUDA_SUCCESS && cuMemPoolDestroy(pool) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is_unlisted(1, 0));
    return 0;
}

/* A stream is its device's, whatever is current. */
static int play_stream(void)
{
    CUstream stream;
    CUdeviceptr piece;
    expect(cuInit(0) == CUDA_SUCCESS && use(1));
    expect(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    expect(use(0) && cuMemAllocAsync(&piece, MIB(1), stream) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is(1, CONTEXT + MIB(32)));
    expect(cuMemFreeAsync(piece, stream) == CUDA_SUCCESS);
    expect(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is(1, CONTEXT));
    return 0;
}

/* Linear memory is the current device's; it is freed from anywhere. */
static int play_freed(void)
{
    CUdeviceptr linear, managed;
    expect(cuInit(0) == CUDA_SUCCESS && use(0) && use(1));
    expect(cuMemAlloc_v2(&linear, MIB(10)) == CUDA_SUCCESS);
    expect(cuMemAllocManaged(&managed, MIB(20), CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is(1, CONTEXT + MIB(10)));
    expect(device_record(1)->charged_bytes == CONTEXT + MIB(30) && preload_free() == MIB(418));
    expect(use(0) && preload_free() == MIB(192));
    expect(cuMemFree_v2(linear) == CUDA_SUCCESS && cuMemFree_v2(managed) == CUDA_SUCCESS);
    expect(figure_is(1, CONTEXT) && device_record(1)->charged_bytes == CONTEXT);
    return 0;
}

/* All of a device's memory has been taken: nothing of it is to be had, of the other all is. */
static int nothing_but_of_the_other(int full, CUmemoryPool pool, CUmemoryPool other_pool)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr piece;
    int other = !full;
    uint64_t denials = device_record(full)->denials, others = device_record(other)->denials;
    for (int current = 0; current < 2; current++) {
        expect(use(current));
        expect(create(&handle, full, MIB(2)) == OUT_OF_MEMORY);
        expect(cuMemAllocFromPoolAsync(&piece, 1, pool, NULL) == OUT_OF_MEMORY);
        expect(create(&handle, other, MIB(2)) == CUDA_SUCCESS);
        expect(cuMemRelease(handle) == CUDA_SUCCESS);
        expect(cuMemAllocFromPoolAsync(&piece, 1, other_pool, NULL) == CUDA_SUCCESS);
        expect(cuMemFree_v2(piece) == CUDA_SUCCESS && cuMemPoolTrimTo(other_pool, 0) == 0);
    }
    expect(use(full) && preload_free() == 0);
    expect(cuMemAlloc_v2(&piece, 1) == OUT_OF_MEMORY);
    expect(use(other) && cuMemAlloc_v2(&piece, preload_free()) == CUDA_SUCCESS);
    expect(cuMemFree_v2(piece) == CUDA_SUCCESS);
    expect(device_record(full)->denials == denials + 5);
    expect(device_record(other)->denials == others);
    return 0;
}

static int play_full(void)
{
    static const uint64_t limits[2] = {MIB(256), MIB(512)};
    CUmemoryPool pools[2];
    CUdeviceptr rest;
    expect(cuInit(0) == CUDA_SUCCESS && use(1) && use(0));
    expect(create_pool(&pools[0], 0) && create_pool(&pools[1], 1));
    for (int full = 0; full < 2; full++) {
        expect(use(full) && preload_free() == limits[full] - CONTEXT);
        expect(cuMemAlloc_v2(&rest, limits[full] - CONTEXT) == CUDA_SUCCESS);
        expect(figure_is(full, limits[full]) && figure_is(!full, CONTEXT));
        expect(nothing_but_of_the_other(full, pools[full], pools[!full]) == 0);
        expect(cuMemFree_v2(rest) == CUDA_SUCCESS);
        expect(figure_is(full, CONTEXT) && figure_is(!full, CONTEXT));
    }
    return 0;
}

/* A context that does not fit on one device says nothing of the other. Device 0 has 16 MiB left. */
static int play_context(void)
{
    CUmemGenericAllocationHandle handle;
    expect(cuInit(0) == CUDA_SUCCESS && create(&handle, 0, MIB(240)) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&contexts[0], 0) == OUT_OF_MEMORY);
    expect(figure_is_unlisted(0, MIB(240)) && is_untouched(1));
    expect(use(1) && figure_is(1, CONTEXT) && figure_is_unlisted(0, MIB(240)));
    expect(cuDevicePrimaryCtxRetain(&contexts[0], 0) == OUT_OF_MEMORY);
    expect(figure_is_unlisted(0, MIB(240)) && device_record(0)->overhead_bytes == 0);
    expect(cuMemRelease(handle) == CUDA_SUCCESS && use(0) && figure_is(0, CONTEXT));
    return 0;
}

/* What a device's pool keeps idle makes room for what the same device is asked for, and no
 * other's. */
static int play_idle(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pools[2];
    cuuint64_t all = UINT64_MAX;
    CUdeviceptr piece;
    expect(cuInit(0) == CUDA_SUCCESS && use(1) && use(0));
    for (int device = 0; device < 2; device++) {
        expect(create_pool(&pools[device], device));
        expect(cuMemPoolSetAttribute(pools[device], CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) == 0);
        expect(cuMemAllocFromPoolAsync(&piece, MIB(128), pools[device], NULL) == CUDA_SUCCESS);
        expect(cuMemFreeAsync(piece, NULL) == CUDA_SUCCESS && cuStreamSynchronize(NULL) == 0);
    }
    expect(figure_is(0, CONTEXT + MIB(128)) && figure_is(1, CONTEXT + MIB(128)));
    expect(create(&handle, 1, MIB(512 - 64)) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT + MIB(128)) && figure_is(1, MIB(512)));
    return 0;
}

static CUresult launch_of(CUlibrary library)
{
    CUkernel kernel;
    CUresult result = cuLibraryGetKernel(&kernel, library, "kernel");
    return result ? result
                  : cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* A program that goes from device to device in turn, and waits for each. */
static int play_in_turn(void)
{
    enum { TURNS = 50, PAUSE_US = 5000 };
    CUlibrary library;
    expect(cuInit(0) == CUDA_SUCCESS && use(0) && use(1));
    expect(cuLibraryLoadData(&library, IMAGE, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
    expect(launch_of(library) == CUDA_SUCCESS);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (int device = 0; device < 2; device++)
            expect(use(device) && cuCtxSynchronize() == CUDA_SUCCESS);
        usleep(PAUSE_US);
    }
    expect(figure_is(0, CONTEXT) && figure_is(1, CONTEXT + IMAGE_BYTES));
    return 0;
}

/* A library is unloaded from all contexts, whatever is current. */
static int play_unloaded(void)
{
    CUlibrary library;
    CUfunction function;
    CUkernel kernel;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuLibraryLoadData(&library, IMAGE, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
    expect(cuLibraryGetKernel(&kernel, library, "kernel") == CUDA_SUCCESS);
    for (int device = 0; device < 2; device++) {
        expect(use(device) && cuKernelGetFunction(&function, kernel) == CUDA_SUCCESS);
        usleep(110000); /* a look is due, if that was not it */
        expect(cuCtxSynchronize() == CUDA_SUCCESS && figure_is(device, CONTEXT + IMAGE_BYTES));
    }
    expect(cuLibraryUnload(library) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT) && figure_is(1, CONTEXT));
    return 0;
}

/* CUDA_MODULE_LOADING=EAGER: it is loaded into all contexts at once. Device 0 has no room. */
static int play_eager(void)
{
    CUlibrary library;
    CUdeviceptr most;
    expect(cuInit(0) == CUDA_SUCCESS && use(0));
    expect(cuMemAlloc_v2(&most, MIB(160)) == CUDA_SUCCESS && use(1));
    expect(cuLibraryLoadData(&library, IMAGE, NULL, NULL, 0, NULL, NULL, 0) == OUT_OF_MEMORY);
    expect(figure_is(0, CONTEXT + MIB(160)) && figure_is(1, CONTEXT));
    expect(device_record(0)->denials == 1 && device_record(1)->denials == 0);
    expect(use(0) && cuMemFree_v2(most) == CUDA_SUCCESS && use(1));
    expect(cuLibraryLoadData(&library, IMAGE, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
    expect(figure_is(0, CONTEXT + IMAGE_BYTES) && figure_is(1, CONTEXT + IMAGE_BYTES));
    return 0;
}

static const struct role roles[] = {{"created", play_created},
                                    {"pool", play_pool},
                                    {"stream", play_stream},
                                    {"freed", play_freed},
                                    {"full", play_full},
                                    {"context", play_context},
                                    {"idle", play_idle},
                                    {"in turn", play_in_turn},
                                    {"unloaded", play_unloaded},
                                    {"eager", play_eager},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

static void play(const char *role)
{
    program_play(&program, role, PROGRAM_LIST(LIMITS));
    program_assert_ok(&program);
}

static void test_memory_created_on_the_other_device_is_that_ones(void **state)
{
    (void)state;
    play("created");
}

static void test_pools_of_the_other_device_are_charged_there(void **state)
{
    (void)state;
    play("pool");
}

static void test_a_stream_takes_of_its_own_devices_pool(void **state)
{
    (void)state;
    play("stream");
}

static void test_memory_is_given_back_to_the_device_that_gave_it(void **state)
{
    (void)state;
    play("freed");
}

static void test_each_device_is_full_by_itself(void **state)
{
    (void)state;
    play("full");
}

static void test_a_context_is_refused_where_it_does_not_fit_and_not_elsewhere(void **state)
{
    (void)state;
    play("context");
}

static void test_what_lies_idle_makes_room_on_its_own_device(void **state)
{
    (void)state;
    play("idle");
}

static void test_overhead_is_noticed_on_each_of_two_devices_used_in_turn(void **state)
{
    (void)state;
    play("in turn");
}

static void test_an_unloaded_library_gives_back_on_all_devices(void **state)
{
    (void)state;
    play("unloaded");
}

static void test_an_eager_library_has_to_fit_on_all_devices(void **state)
{
    (void)state;
    program_play(&program, "eager", PROGRAM_LIST(LIMITS, "CUDA_MODULE_LOADING=EAGER"));
    program_assert_ok(&program);
}

int main(int count, char **words)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_created_on_the_other_device_is_that_ones),
        cmocka_unit_test(test_pools_of_the_other_device_are_charged_there),
        cmocka_unit_test(test_a_stream_takes_of_its_own_devices_pool),
        cmocka_unit_test(test_memory_is_given_back_to_the_device_that_gave_it),
        cmocka_unit_test(test_each_device_is_full_by_itself),
        cmocka_unit_test(test_a_context_is_refused_where_it_does_not_fit_and_not_elsewhere),
        cmocka_unit_test(test_what_lies_idle_makes_room_on_its_own_device),
        cmocka_unit_test(test_overhead_is_noticed_on_each_of_two_devices_used_in_turn),
        cmocka_unit_test(test_an_unloaded_library_gives_back_on_all_devices),
        cmocka_unit_test(test_an_eager_library_has_to_fit_on_all_devices),
    };
    return count > 1 ? role_play(roles, words[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
