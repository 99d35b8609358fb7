// SPDX-License-Identifier: MIT
//
// Several processes on one simulated GPU: they see one another, cannot take more than there is
// together, and what a killed one held comes back. The program itself only watches, through NVML;
// its children allocate.

#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvml_api.h"

#define KILLS 60

static nvmlDevice_t device;

static int watch(void **state)
{
    (void)state;
    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    return (int)nvmlDeviceGetHandleByIndex_v2(0, &device);
}

static uint64_t used_by_all(void)
{
    nvmlMemory_t memory;

    assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
    return memory.used / MIB;
}

static int open_context(void)
{
    CUcontext context;

    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    expect(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    return 0;
}

static int hold_5_gib(void)
{
    CUdeviceptr at;

    expect(open_context() == 0);
    expect(cuMemAlloc_v2(&at, 5120 * MIB) == CUDA_SUCCESS);
    return 0;
}

static int find_the_device_full(void)
{
    CUdeviceptr at;
    size_t left;

    expect(open_context() == 0);
    expect(cuMemGetInfo_v2(&left, NULL) == CUDA_SUCCESS);
    expect(left == (8192 - 5120 - 2 * 64) * MIB);
    expect(cuMemAlloc_v2(&at, left + 1) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(cuMemAlloc_v2(&at, left) == CUDA_SUCCESS);
    return 0;
}

static void test_processes_share_the_device_and_nvml_lists_them(void **state)
{
    nvmlProcessInfo_v2_t infos[4];
    unsigned count = 4;

    (void)state;
    int holder = fixture_start_child(hold_5_gib);
    assert_true(holder > 0);
    assert_int_equal(fixture_run_child(find_the_device_full), 0);
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(infos[0].pid, holder);
    assert_int_equal(infos[0].usedGpuMemory, (5120 + 64) * MIB);
    fixture_kill_child(holder);
}

static void test_a_killed_processes_memory_comes_back(void **state)
{
    unsigned count = 0;

    (void)state;
    for (int i = 0; i < 3; i++) { /* the next would not fit beside it */
        int holder = fixture_start_child(hold_5_gib);

        assert_true(holder > 0);
        assert_int_equal(used_by_all(), 5184);
        fixture_kill_child(holder);
        assert_int_equal(used_by_all(), 0);
        assert_int_equal(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL),
                         NVML_SUCCESS);
    }
}

static int *grandchild; /* shared with the child */

static int hold_and_fork(void)
{
    expect(hold_5_gib() == 0);
    pid_t pid = fork(); /* this one outlives its parent: that is the point */
    if (pid == 0)
        alarm(60);
    while (pid == 0)
        pause();
    expect(pid > 0);
    *grandchild = pid;
    return 0;
}

static void test_a_forked_child_does_not_keep_a_killed_parents_memory(void **state)
{
    (void)state;
    grandchild = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(grandchild != MAP_FAILED);
    int holder = fixture_start_child(hold_and_fork);
    assert_true(holder > 0 && *grandchild > 0);
    assert_int_equal(used_by_all(), 5184);
    fixture_kill_child(holder);
    /* The grandchild may not have got as far as letting go. */
    for (int i = 0; used_by_all() && i < 1000; i++)
        usleep(1000);
    assert_int_equal(used_by_all(), 0);
    kill(*grandchild, SIGKILL);
    munmap(grandchild, 4096);
}

/* Allocates and frees for ever, in each way that changes what the process holds. */
static int churn(void)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at, async;
    CUcontext context;

    expect(cuInit(0) == CUDA_SUCCESS);
    for (;;) {
        expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
        for (unsigned i = 0; i < 50; i++) {
            expect(cuMemAlloc_v2(&at, 100 * MIB) == CUDA_SUCCESS);
            expect(cuMemAllocAsync(&async, 100, NULL) == CUDA_SUCCESS);
            expect(cuMemCreate(&handle, 32 * MIB, &prop, 0) == CUDA_SUCCESS);
            expect(cuMemFree_v2(at) == CUDA_SUCCESS);
            expect(cuMemFreeAsync(async, NULL) == CUDA_SUCCESS);
            expect(cuStreamSynchronize(NULL) == CUDA_SUCCESS);
            expect(cuMemRelease(handle) == CUDA_SUCCESS);
        }
        expect(cuCtxDestroy_v2(context) == CUDA_SUCCESS);
    }
}

static void test_no_kill_leaves_the_state_stuck(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < KILLS; i++) {
        pid_t children[2];

        for (int n = 0; n < 2; n++) {
            children[n] = fixture_fork();
            if (children[n] == 0)
                _exit(churn() != 0);
        }
        usleep((useconds_t)(rand() % 20000));
        for (int n = 0; n < 2; n++)
            kill(children[n], SIGKILL);
        for (int n = 0; n < 2; n++) {
            int status;

            assert_int_equal(waitpid(children[n], &status, 0), children[n]);
            assert_true(
                WIFSIGNALED(status)); /* it had not ended by itself, so nothing had failed */
        }
        assert_int_equal(used_by_all(), 0);
    }
    int holder = fixture_start_child(hold_5_gib); /* and whoever comes next finds it in order */
    assert_true(holder > 0);
    fixture_kill_child(holder);
}

enum { GRABBERS = 4 };

static struct {
    uint64_t bytes;
    unsigned ready; /* contexts open: they are not to compete with allocations */
} * granted;        /* shared */

static int grab_all_there_is(void)
{
    CUdeviceptr at;
    uint64_t mine = 0;

    expect(cuInit(0) == CUDA_SUCCESS);
    CUcontext context;
    expect(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    __atomic_add_fetch(&granted->ready, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&granted->ready, __ATOMIC_SEQ_CST) < GRABBERS)
        usleep(100);
    while (cuMemAlloc_v2(&at, 6 * MIB) == CUDA_SUCCESS)
        mine += 6 * MIB;
    __atomic_add_fetch(&granted->bytes, mine, __ATOMIC_SEQ_CST);
    return 0;
}

static void test_together_they_get_all_of_the_device_and_not_a_block_more(void **state)
{
    pid_t children[GRABBERS];

    (void)state;
    granted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(granted != MAP_FAILED);
    for (int n = 0; n < GRABBERS; n++) {
        children[n] = fixture_fork();
        if (children[n] == 0) {
            if (grab_all_there_is())
                _exit(1);
            for (;;)
                pause();
        }
    }
    uint64_t most = (8192 - GRABBERS * 64) / 6 * 6;
    for (int i = 0; __atomic_load_n(&granted->bytes, __ATOMIC_SEQ_CST) < most * MIB && i < 20000;
         i++)
        usleep(1000);
    assert_int_equal(granted->bytes, most * MIB);
    assert_int_equal(used_by_all(), most + GRABBERS * 64);
    for (int n = 0; n < GRABBERS; n++)
        fixture_kill_child(children[n]);
    assert_int_equal(used_by_all(), 0);
    munmap(granted, 4096);
}

static void *churn_thread(void *context)
{
    CUdeviceptr at, async;
    CUstream stream;
    CUresult result = cuCtxSetCurrent(context);

    result = result ? result : cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; !result && i < 500; i++) {
        result = cuMemAlloc_v2(&at, 1 + i * 9999);
        result = result ? result : cuMemAllocAsync(&async, 1 + i * 999, stream);
        result = result ? result : cuMemFree_v2(at);
        result = result ? result : cuMemFreeAsync(async, stream);
        result = result ? result : cuStreamSynchronize(stream);
    }
    return (void *)(uintptr_t)result;
}

static int churn_in_threads(void)
{
    pthread_t threads[8];
    CUcontext context;
    void *result;

    expect(open_context() == 0);
    expect(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    for (int i = 0; i < 8; i++)
        expect(pthread_create(&threads[i], NULL, churn_thread, context) == 0);
    for (int i = 0; i < 8; i++)
        expect(pthread_join(threads[i], &result) == 0 && result == NULL);
    expect(simgpu_process_used(0) == (64 + 4) * MIB); /* the context's, and its 8 streams' */
    return 0;
}

static void test_threads_may_call_at_once_and_all_comes_back(void **state)
{
    (void)state;
    assert_int_equal(fixture_run_child(churn_in_threads), 0);
}

static int channel[2]; /* a descriptor travels from child to child */

static int send_descriptor(int descriptor)
{
    char control[CMSG_SPACE(sizeof descriptor)] = {0}, byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof descriptor)};
    *(int *)(void *)CMSG_DATA(header) = descriptor;
    return sendmsg(channel[0], &message, 0) == 1 ? 0 : -1;
}

static int receive_descriptor(void)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};

    if (recvmsg(channel[1], &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    return header ? *(const int *)(const void *)CMSG_DATA(header) : -1;
}

static int export_memory(void)
{
    CUmemAllocationProp prop = fixture_device_prop();
    CUmemGenericAllocationHandle handle;
    int descriptor;

    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuMemCreate(&handle, 32 * MIB, &prop, 0) == CUDA_SUCCESS);
    expect(cuMemExportToShareableHandle(&descriptor, handle,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == 0);
    expect(send_descriptor(descriptor) == 0);
    close(descriptor);
    return 0;
}

static int import_memory(void)
{
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    int descriptor = receive_descriptor();

    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0);
    close(descriptor);
    expect(cuMemGetAllocationPropertiesFromHandle(&prop, handle) == CUDA_SUCCESS);
    expect(prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    expect(cuMemAddressReserve(&at, 32 * MIB, 0, 0, 0) == CUDA_SUCCESS);
    expect(cuMemMap(at, 32 * MIB, 0, handle, 0) == CUDA_SUCCESS);
    expect(simgpu_process_used(0) == 0); /* its owner pays */
    expect(simgpu_device_used(0) == 32 * MIB);
    return 0;
}

static void test_imported_memory_is_its_owners(void **state)
{
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel), 0);
    int owner = fixture_start_child(export_memory);
    assert_true(owner > 0);
    assert_int_equal(fixture_run_child(import_memory), 0);
    fixture_kill_child(owner);
    close(channel[0]);
    close(channel[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_share_the_device_and_nvml_lists_them),
        cmocka_unit_test(test_a_killed_processes_memory_comes_back),
        cmocka_unit_test(test_a_forked_child_does_not_keep_a_killed_parents_memory),
        cmocka_unit_test(test_no_kill_leaves_the_state_stuck),
        cmocka_unit_test(test_together_they_get_all_of_the_device_and_not_a_block_more),
        cmocka_unit_test(test_threads_may_call_at_once_and_all_comes_back),
        cmocka_unit_test(test_imported_memory_is_its_owners),
    };

    return cmocka_run_group_tests(tests, watch, NULL);
}
