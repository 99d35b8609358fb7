// SPDX-License-Identifier: MIT
//
// Shared by the tests of the simulated GPU; see fixture.h.

#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t last;

static char state_path[4096];
static pid_t owner;

static void fixture_remove_state(void)
{
    if (getpid() == owner)
        unlink(state_path);
}

/* The tests reckon with the defaults, and with a device that nobody else uses. Before main, as
 * cases that fork at once need it too. */
__attribute__((constructor)) static void fixture_prepare(void)
{
    const char *path = getenv("SIMGPU_STATE");

    unsetenv("SIMGPU_DEVICES");
    unsetenv("SIMGPU_MEMORY_MB");
    unsetenv("SIMGPU_CONTEXT_MB");
    unsetenv("SIMGPU_PROFILE");
    unsetenv("SIMGPU_MIG");
    unsetenv("SIMGPU_HIDE_PROCESSES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_MODULE_LOADING");
    owner = getpid();
    snprintf(state_path, sizeof state_path, "%s-%d", path ? path : "/tmp/simgpu-test", (int)owner);
    setenv("SIMGPU_STATE", state_path, 1);
    atexit(fixture_remove_state);
}

int fixture_set_up(void **state)
{
    CUcontext context;

    (void)state;
    assert_ok(cuInit(0));
    assert_ok(cuDevicePrimaryCtxRetain(&context, 0));
    assert_ok(cuCtxSetCurrent(context));
    fixture_took();
    return 0;
}

int64_t fixture_took(void)
{
    int64_t before = last;

    last = (int64_t)simgpu_process_used(0);
    return (last - before) / (int64_t)MIB;
}

int fixture_fork(void)
{
    pid_t parent = getpid(), child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return child;
}

int fixture_run_child(int (*function)(void))
{
    int status, ends[2], line = -1;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fixture_fork();
    if (child == 0) {
        line = function();
        if (write(ends[1], &line, sizeof line) != (ssize_t)sizeof line)
            _exit(1);
        _exit(0);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &line, sizeof line);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return -WTERMSIG(status);
    assert_int_equal(got, sizeof line);
    if (line)
        fprintf(stderr, "# the child's line %d\n", line);
    return line;
}

int fixture_start_child(int (*function)(void))
{
    int ends[2], line = -1;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fixture_fork();
    if (child == 0) {
        line = function();
        if (write(ends[1], &line, sizeof line) != (ssize_t)sizeof line)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &line, sizeof line);
    close(ends[0]);
    if (got == (ssize_t)sizeof line && line == 0)
        return child;
    fprintf(stderr, "# the child's line %d\n", line);
    fixture_kill_child(child);
    return -1;
}

void fixture_kill_child(int pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

CUmemAllocationProp fixture_device_prop(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
}

CUmemoryPool fixture_create_pool(uint64_t max_bytes, uint64_t threshold_bytes)
{
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
        .maxSize = max_bytes,
    };
    CUmemoryPool pool = NULL;
    cuuint64_t threshold = threshold_bytes;

    assert_ok(cuMemPoolCreate(&pool, &props));
    assert_ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    return pool;
}

uint64_t fixture_reserved(CUmemoryPool pool)
{
    cuuint64_t value = 0;

    assert_ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    return value / MIB;
}
