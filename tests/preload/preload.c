/* SPDX-License-Identifier: MIT
 *
 * The fixtures of preload.h.
 */
#include "preload.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t preload_peak_bytes = MIB(1024);
static uint64_t context_bytes;

int preload_set_up(void **state)
{
    CUdevice device;
    CUcontext context;
    (void)state;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return -1;
    context_bytes = simgpu_process_used(0);
    return preload_ledger() ? 0 : -1;
}

uint64_t preload_free(void)
{
    size_t free, total;
    assert_ok(cuMemGetInfo_v2(&free, &total));
    return free;
}

uint64_t preload_device_bytes(void)
{
    return simgpu_process_used(0) - context_bytes;
}

int preload_assert_clean(void **state)
{
    (void)state;
    assert_int_equal(preload_device_bytes(), 0);
    assert_int_equal(preload_free(), MIB(1024));
    assert_int_equal(atomic_load(&preload_device()->charged_bytes), 0);
    assert_int_equal(atomic_load(&preload_device()->requested_bytes), 0);
    assert_int_equal(atomic_load(&preload_device()->live_allocations), 0);
    assert_true(atomic_load(&preload_device()->peak_bytes) <= preload_peak_bytes);
    return 0;
}

static const struct gpulimit_header *map_ledger(const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0)
        return NULL;
    const void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    /* The descriptor stays: closing it would drop the library's lock on the file, which is this
     * process's. */
    return memory == MAP_FAILED ? NULL : memory;
}

bool preload_find_ledger(char path[PRELOAD_PATH_BYTES])
{
    char prefix[64], newest[256] = "";
    const char *folder = getenv("GPU_LIMIT_DIR");
    DIR *files = opendir(folder);
    snprintf(prefix, sizeof prefix, GPULIMIT_REGION_PREFIX "%d.", (int)getpid());
    for (struct dirent *file = files ? readdir(files) : NULL; file; file = readdir(files)) {
        /* Of an earlier process of this number there may be one, too: its time is less. */
        if (strncmp(file->d_name, prefix, strlen(prefix)) == 0 && strcmp(file->d_name, newest) > 0)
            snprintf(newest, sizeof newest, "%s", file->d_name);
    }
    if (files)
        closedir(files);
    snprintf(path, PRELOAD_PATH_BYTES, "%s/%s", folder, newest);
    return newest[0] != '\0';
}

const struct gpulimit_header *preload_ledger(void)
{
    static const struct gpulimit_header *ledger;
    static pid_t pid;
    char path[PRELOAD_PATH_BYTES];
    if (ledger && pid == getpid())
        return ledger;
    ledger = preload_find_ledger(path) ? map_ledger(path) : NULL;
    pid = getpid();
    return ledger;
}

const struct gpulimit_device *preload_device(void)
{
    const struct gpulimit_header *ledger = preload_ledger();
    return ledger ? (const void *)((const char *)ledger + ledger->devices_offset) : NULL;
}

CUmemAllocationProp preload_device_prop(void)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                 .location.id = 0};
}
