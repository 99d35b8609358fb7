/* SPDX-License-Identifier: MIT
 *
 * NVML's own figure for a process. Its interface is written down here from the documented layouts:
 * nvml.h comes with CUDA, which a machine that only looks does not have.
 */
#include "nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

#include "memory.h"

enum {
    NVML_SUCCESS = 0,
    NVML_INSUFFICIENT_SIZE = 7, /* the count then says how many records there are */
    NVML_FIRST_RECORDS = 64,
    NVML_SPARE_RECORDS = 16, /* for processes that come while the list grows */
    NVML_TRIES = 4,
};

#define NVML_UNKNOWN_BYTES UINT64_MAX /* what NVML says where the driver does not tell it */

/* The records of the first list are the first members of those of later ones. */
struct nvml_record_v1 {
    unsigned int pid;
    unsigned long long used_bytes;
};

struct nvml_record_v2 {
    struct nvml_record_v1 first;
    unsigned int gpu_instance;
    unsigned int compute_instance;
};

typedef struct nvml_device *nvml_device;
typedef int nvml_init_function(void);
typedef int nvml_find_function(const char *uuid, nvml_device *device);
typedef int nvml_list_function(nvml_device device, unsigned int *count, void *records);

static struct {
    bool is_tried;
    nvml_find_function *find;
    nvml_list_function *list; /* NULL: there is no NVML */
    size_t record_bytes;
} nvml;

/* _v2 first: some drivers of the 535 series have a _v3 with records of their own. */
static const struct {
    const char *symbol;
    size_t record_bytes;
} nvml_lists[] = {
    {"nvmlDeviceGetComputeRunningProcesses_v2", sizeof(struct nvml_record_v2)},
    {"nvmlDeviceGetComputeRunningProcesses_v3", sizeof(struct nvml_record_v2)},
    {"nvmlDeviceGetComputeRunningProcesses", sizeof(struct nvml_record_v1)},
};

static void nvml_open(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    nvml_init_function *init;
    nvml_list_function *list = NULL;

    if (!library) {
        return;
    }
    init = (nvml_init_function *)dlsym(library, "nvmlInit_v2");
    nvml.find = (nvml_find_function *)dlsym(library, "nvmlDeviceGetHandleByUUID");
    for (size_t i = 0; !list && i < sizeof(nvml_lists) / sizeof(nvml_lists[0]); i++) {
        list = (nvml_list_function *)dlsym(library, nvml_lists[i].symbol);
        nvml.record_bytes = nvml_lists[i].record_bytes;
    }
    if (init && nvml.find && list && init() == NVML_SUCCESS) {
        nvml.list = list;
    }
}

/* Returns the number of records, for the caller to free(); 0 if they cannot be had. */
static unsigned int nvml_read_list(nvml_device device, unsigned char **records)
{
    unsigned int room = NVML_FIRST_RECORDS;

    *records = NULL;
    for (int tries = 0; tries < NVML_TRIES; tries++) {
        unsigned int count = room;
        int result;

        *records = memory_check(reallocarray(*records, room, nvml.record_bytes));
        result = nvml.list(device, &count, *records);
        if (result == NVML_SUCCESS && count <= room) {
            return count;
        }
        if (result != NVML_INSUFFICIENT_SIZE || count > UINT16_MAX) {
            return 0;
        }
        room = count + NVML_SPARE_RECORDS;
    }
    return 0;
}

bool nvml_get_process_bytes(const char *gpu_uuid, int32_t pid, uint64_t *bytes)
{
    unsigned char *records;
    unsigned int count;
    nvml_device device;
    bool is_listed = false;

    if (!nvml.is_tried) {
        nvml.is_tried = true;
        nvml_open();
    }
    if (!nvml.list || nvml.find(gpu_uuid, &device) != NVML_SUCCESS) {
        return false;
    }
    count = nvml_read_list(device, &records);
    for (unsigned int i = 0; i < count && !is_listed; i++) {
        const struct nvml_record_v1 *record = (const void *)(records + i * nvml.record_bytes);

        is_listed = record->pid == (unsigned int)pid && record->used_bytes != NVML_UNKNOWN_BYTES;
        if (is_listed) {
            *bytes = record->used_bytes;
        }
    }
    free(records);
    return is_listed;
}
