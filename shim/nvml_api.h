/* SPDX-License-Identifier: MIT
 *
 * The part of NVML's binary interface that this library meets: what hooks.def and calls.def name of
 * libnvidia-ml.so.1. Written from the documented layouts, as NVML's own header comes with few
 * toolkits and never with a driver. Included by entry_*, hooks, real and truth alone.
 */
#ifndef SHIM_NVML_API_H
#define SHIM_NVML_API_H

#include <stdint.h>

/* The answers that something is made of here; NVML has more. */
typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
} nvmlReturn_t;

typedef struct nvmlDevice_st *nvmlDevice_t;

enum {
    NVML_UUID_BYTES = 96, /* NVML never writes a longer one */
    NVML_MEMORY_V2_VERSION = 0x2000028,
};

typedef struct {
    uint64_t total, free, used; /* total == free + used */
} nvmlMemory_t;

typedef struct {
    uint32_t version; /* the caller's: NVML_MEMORY_V2_VERSION, or an error is the answer */
    uint64_t total, reserved, free, used; /* total == reserved + free + used */
} nvmlMemory_v2_t;

typedef struct {
    uint32_t multiprocessorCount;
    uint32_t sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    uint32_t sharedJpegCount, sharedOfaCount;
    uint32_t gpuInstanceSliceCount, computeInstanceSliceCount;
    uint64_t memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
    uint32_t pid;
    uint64_t usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    uint32_t pid;
    uint64_t usedGpuMemory; /* all ones where the driver does not tell */
    uint32_t gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

_Static_assert(sizeof(nvmlMemory_t) == 24, "NVML's layout");
_Static_assert(sizeof(nvmlMemory_v2_t) == (NVML_MEMORY_V2_VERSION & 0xffffff), "NVML's layout");
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "NVML's layout");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "NVML's layout");
_Static_assert(sizeof(nvmlProcessInfo_v2_t) == 24, "NVML's layout");

typedef nvmlReturn_t (*PFN_nvmlInit_v2)(void);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetCount_v2)(unsigned *count);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetHandleByIndex_v2)(unsigned index, nvmlDevice_t *device);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetHandleByUUID)(const char *uuid, nvmlDevice_t *device);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetUUID)(nvmlDevice_t device, char *uuid, unsigned length);
typedef nvmlReturn_t (*PFN_nvmlDeviceIsMigDeviceHandle)(nvmlDevice_t device, unsigned *is_mig);
/* Processes: *count comes in as the room in infos and goes out as how many there are. */
typedef nvmlReturn_t (*PFN_nvmlDeviceGetComputeRunningProcesses)(nvmlDevice_t device,
                                                                 unsigned *count,
                                                                 nvmlProcessInfo_v1_t *infos);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetComputeRunningProcesses_v2)(nvmlDevice_t device,
                                                                    unsigned *count,
                                                                    nvmlProcessInfo_v2_t *infos);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetComputeRunningProcesses_v3)(nvmlDevice_t device,
                                                                    unsigned *count,
                                                                    nvmlProcessInfo_v2_t *infos);

/* What is intercepted is declared, so that it can be held against its type and is exported. */
#pragma GCC visibility push(default)
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes);
#pragma GCC visibility pop
typedef nvmlReturn_t (*PFN_nvmlDeviceGetMemoryInfo)(nvmlDevice_t device, nvmlMemory_t *memory);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetMemoryInfo_v2)(nvmlDevice_t device,
                                                       nvmlMemory_v2_t *memory);
typedef nvmlReturn_t (*PFN_nvmlDeviceGetAttributes_v2)(nvmlDevice_t device,
                                                       nvmlDeviceAttributes_t *attributes);

#endif
