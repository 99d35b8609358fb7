/* SPDX-License-Identifier: MIT
 *
 * The questions of figure.h.
 */
#include "figure.h"

#include "nvml_api.h"
#include "preload.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

enum { PROCESSES = 64 };

static struct {
    nvmlReturn_t (*find)(const char *, nvmlDevice_t *);
    nvmlReturn_t (*list)(nvmlDevice_t, unsigned *, nvmlProcessInfo_v2_t *);
} figure_nvml;

static bool figure_open(void)
{
    nvmlReturn_t (*start)(void) = NULL;
    void *nvml = figure_nvml.list ? NULL : dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml)
        return figure_nvml.list != NULL;
    *(void **)&start = dlsym(nvml, "nvmlInit_v2");
    *(void **)&figure_nvml.find = dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
    *(void **)&figure_nvml.list = dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
    return start && start() == NVML_SUCCESS && figure_nvml.find && figure_nvml.list;
}

uint64_t figure_of(int device)
{
    char bus[32];
    nvmlDevice_t handle;
    nvmlProcessInfo_v2_t infos[PROCESSES];
    unsigned count = PROCESSES;
    if (!figure_open() || cuDeviceGetPCIBusId(bus, sizeof bus, device) != CUDA_SUCCESS ||
        figure_nvml.find(bus, &handle) != NVML_SUCCESS ||
        figure_nvml.list(handle, &count, infos) != NVML_SUCCESS) {
        fprintf(stderr, "NVML does not say what device %d holds\n", device);
        return UINT64_MAX;
    }
    for (unsigned i = 0; i < count; i++) {
        if (infos[i].pid == (unsigned)getpid())
            return infos[i].usedGpuMemory;
    }
    return 0;
}

static bool figure_agrees(int device, uint64_t figure, uint64_t bytes)
{
    const struct gpulimit_device *record = preload_device() + device;
    uint64_t charged = record->charged_bytes, hidden = record->hidden_bytes;
    uint64_t parts = record->committed_bytes + record->overhead_bytes;
    if (figure == bytes && charged - hidden == bytes && charged == parts &&
        bytes <= record->limit_bytes)
        return true;
    fprintf(stderr,
            "device %d: expected %lld KiB; it holds %lld; the ledger charges %lld, of these %lld "
            "overhead, %lld hidden, at a limit of %lld\n",
            device, (long long)bytes >> 10, (long long)figure >> 10, (long long)charged >> 10,
            (long long)record->overhead_bytes >> 10, (long long)hidden >> 10,
            (long long)record->limit_bytes >> 10);
    return false;
}

bool figure_is(int device, uint64_t bytes)
{
    return figure_agrees(device, figure_of(device), bytes);
}

bool figure_is_unlisted(int device, uint64_t bytes)
{
    return figure_agrees(device, simgpu_process_used(device), bytes);
}

bool figure_has_nvml(void)
{
    return dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_NOLOAD) != NULL;
}
