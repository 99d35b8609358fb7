/* SPDX-License-Identifier: MIT
 *
 * The questions of driver.h.
 */
#include "driver.h"

#include "budget.h"
#include "limit_exports.h"
#include "limit_graphs.h"
#include "limit_later.h"
#include "limit_pools.h"
#include "real.h"
#include "start.h"
#include "truth_card.h"

#include <string.h>

CUstreamCaptureMode driver_relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    real.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void driver_unrelax(CUstreamCaptureMode mode)
{
    real.cuThreadExchangeStreamCaptureMode(&mode);
}

bool driver_read_pool(CUmemoryPool pool, struct pool_reading *reading)
{
    cuuint64_t reserved = 0;
    CUstreamCaptureMode mode = driver_relax();
    reading->number = limit_pool_number();
    CUresult result =
        real.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    driver_unrelax(mode);
    reading->reserved_bytes = reserved;
    if (result != CUDA_SUCCESS)
        reading->number = 0; /* older than any: it changes nothing */
    return result == CUDA_SUCCESS;
}

static void driver_ask_pools(unsigned device, bool trim)
{
    unsigned cursor = 0;
    uint64_t handle;
    while ((handle = limit_pool_pin_next(device, &cursor)) != 0) {
        CUmemoryPool pool = (CUmemoryPool)handle;
        struct pool_reading reading;
        if (trim) {
            CUstreamCaptureMode mode = driver_relax();
            real.cuMemPoolTrimTo(pool, 0);
            driver_unrelax(mode);
        }
        bool is_told = driver_read_pool(pool, &reading);
        limit_pool_answer(handle, is_told ? &reading : NULL);
    }
}

/* Looks which of the addresses freed in stream order the driver does not know any more. */
static void driver_ask_later(void)
{
    uint32_t cursor = UINT32_MAX;
    uint64_t address;
    while ((address = limit_later_next(&cursor)) != 0) {
        CUdeviceptr base;
        size_t bytes;
        CUstreamCaptureMode mode = driver_relax();
        CUresult result = real.cuMemGetAddressRange_v2(&base, &bytes, address);
        driver_unrelax(mode);
        /* Other errors say nothing of the address: this thread may have no context, for one. */
        if (result == CUDA_ERROR_NOT_FOUND || result == CUDA_ERROR_INVALID_VALUE)
            limit_later_is_back(address);
    }
}

static void driver_ask_graphs(unsigned device, bool trim)
{
    struct pool_reading reading;
    if (!limit_graph_holds(device))
        return;
    if (trim)
        real.cuDeviceGraphMemTrim((CUdevice)device);
    if (driver_read_graph_memory(device, &reading))
        limit_graph_update(device, &reading, trim);
}

void driver_look(unsigned device)
{
    limit_look_at_exports();
    driver_ask_later();
    driver_ask_pools(device, false);
    driver_ask_graphs(device, false);
}

void driver_look_everywhere(void)
{
    limit_begin_look();
    driver_ask_later();
    for (unsigned device = 0; device < BUDGET_DEVICES; device++) {
        if (start_knows_device(device))
            driver_ask_pools(device, false);
    }
}

static void driver_reclaim(unsigned device)
{
    limit_look_at_exports();
    driver_ask_later();
    driver_ask_pools(device, true);
    driver_ask_graphs(device, true);
    truth_look(device);
}

void driver_return_to_pool(CUdeviceptr address, CUmemoryPool pool)
{
    struct pool_reading reading;
    CUstreamCaptureMode mode = driver_relax();
    /* Not cuMemFreeAsync: that frees when the stream gets there. This does not wait, and nobody has
     * used it. */
    real.cuMemFree_v2(address);
    real.cuMemPoolTrimTo(pool, 0);
    driver_unrelax(mode);
    if (driver_read_pool(pool, &reading))
        limit_pool_update((uint64_t)pool, &reading);
}

static bool driver_card_free(unsigned device, uint64_t *free_bytes)
{
    CUdevice current;
    size_t free = 0, total;
    /* The driver's figure is of the current context's device. */
    if (real.cuCtxGetDevice(&current) != CUDA_SUCCESS || current != (CUdevice)device)
        return truth_card_free(device, free_bytes);
    CUstreamCaptureMode mode = driver_relax();
    bool is_told = real.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS;
    driver_unrelax(mode);
    *free_bytes = free;
    return is_told;
}

bool driver_start(void)
{
    static const struct start_driver driver = {.reclaim = driver_reclaim,
                                               .look = truth_look,
                                               .card_free = driver_card_free,
                                               .forget = truth_forget};
    return start_process(&driver);
}

/* "GPU-" and the UUID as nvidia-smi writes it. With MIG, cuDeviceGetUuid_v2 names the instance. */
static void driver_uuid(CUdevice device, char text[48])
{
    CUuuid uuid = {{0}};
    if (real.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS)
        real.cuDeviceGetUuid(&uuid, device);
    const unsigned char *byte = (const unsigned char *)uuid.bytes;
    static const char digits[] = "0123456789abcdef";
    char *at = text;
    for (const char *prefix = "GPU-"; *prefix; prefix++)
        *at++ = *prefix;
    for (unsigned i = 0; i < sizeof uuid.bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[byte[i] >> 4];
        *at++ = digits[byte[i] & 15];
    }
    *at = '\0';
}

bool driver_knows(int device)
{
    size_t total = 0;
    char uuid[48];
    if (device < 0)
        return false;
    if (device < BUDGET_DEVICES && start_knows_device((unsigned)device))
        return true;
    driver_start();
    CUstreamCaptureMode mode = driver_relax();
    bool exists = real.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS;
    if (exists)
        driver_uuid(device, uuid);
    driver_unrelax(mode);
    if (exists && device < BUDGET_DEVICES)
        start_add_device((unsigned)device, uuid, total);
    return exists;
}

bool driver_find_uuid(const char *uuid, int *device)
{
    int count;
    CUstreamCaptureMode mode = driver_relax();
    bool can_tell = real.cuDeviceGetCount(&count) == CUDA_SUCCESS;
    for (*device = can_tell ? count - 1 : -1; *device >= 0; --*device) {
        char found[48];
        driver_uuid(*device, found);
        if (strcmp(found, uuid) == 0)
            break;
    }
    driver_unrelax(mode);
    return can_tell;
}

uint64_t driver_resident_threads(unsigned device)
{
    int processors = 0, threads = 0;
    real.cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                              (CUdevice)device);
    real.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                              (CUdevice)device);
    return (uint64_t)processors * (uint64_t)threads;
}

/* What a context takes at least, as far as that is known before there is one. Where something of
 * the limit is taken already, by memory that needs no context, what one takes elsewhere or a guess
 * has to do, so that the device is not over it while its first context is measured; else that one
 * is simply tried. */
static uint64_t driver_least_of_context(unsigned device, uint64_t guess_bytes)
{
    uint64_t bytes = limit_context_bytes(device);
    if (bytes > 0 || budget_used(device) == 0)
        return bytes;
    for (unsigned other = 0; bytes == 0 && other < BUDGET_DEVICES; other++)
        bytes = limit_context_bytes(other);
    return bytes > 0 ? bytes : guess_bytes;
}

bool driver_begin_context(struct truth_call *call, CUdevice dev, enum api api)
{
    if (!driver_knows(dev) || dev >= BUDGET_DEVICES) /* the driver has its own answer */
        return truth_begin(call, LIMIT_CONTEXT, BUDGET_DEVICES, api, 0);
    unsigned device = (unsigned)dev;
    /* On an H200 one takes 518 MiB, of which 264 are the stacks of 1 KiB that all threads have. */
    uint64_t guess_bytes = 2 * driver_resident_threads(device) * 1024;
    if (!truth_begin(call, LIMIT_CONTEXT, device, api,
                     driver_least_of_context(device, guess_bytes)))
        return false;
    call->guess_bytes = guess_bytes; /* for where nothing can be asked */
    return true;
}

bool driver_here(struct driver_place *place)
{
    CUdevice device;
    if (real.cuCtxGetCurrent(&place->context) != CUDA_SUCCESS || !place->context ||
        real.cuCtxGetDevice(&device) != CUDA_SUCCESS || !driver_knows(device))
        return false;
    place->device = (unsigned)device;
    truth_meet(place->device); /* a context that came by no call of ours */
    return true;
}

static bool driver_is_capturing(CUstream stream, bool per_thread)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = per_thread ? real.cuStreamIsCapturing_ptsz(stream, &status)
                                 : real.cuStreamIsCapturing(stream, &status);
    return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The device of a stream that is no default one. cuStreamGetDevice ends a capture, cuStreamGetCtx
 * does not. */
static bool driver_stream_device(CUstream stream, CUdevice *device)
{
    CUcontext context;
    if (real_has(cuStreamGetDevice)) {
        CUstreamCaptureMode mode = driver_relax();
        CUresult result = real.cuStreamGetDevice(stream, device);
        driver_unrelax(mode);
        return result == CUDA_SUCCESS;
    }
    if (real.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
        real.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
        return false;
    CUresult result = real.cuCtxGetDevice(device);
    real.cuCtxPopCurrent_v2(&context);
    return result == CUDA_SUCCESS;
}

struct queue driver_queue(CUstream stream, bool per_thread)
{
    CUcontext context = NULL;
    uint64_t number = driver_stream(stream, per_thread);
    if (number == QUEUE_LEGACY_STREAM || number == QUEUE_THREAD_STREAM)
        real.cuCtxGetCurrent(&context);
    else
        real.cuStreamGetCtx(stream, &context);
    return (struct queue){(uint64_t)context, number};
}

bool driver_stream_pool(CUstream stream, bool per_thread, CUmemoryPool *pool, unsigned *device)
{
    CUdevice found;
    bool is_default = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    if (driver_is_capturing(stream, per_thread))
        return false;
    if (is_default ? real.cuCtxGetDevice(&found) != CUDA_SUCCESS
                   : !driver_stream_device(stream, &found))
        return false;
    if (!driver_knows(found) || real.cuDeviceGetMemPool(pool, found) != CUDA_SUCCESS)
        return false;
    *device = (unsigned)found; /* only a pool of the device itself can be its current one */
    return true;
}

/* A pool that nobody created is some device's default one, or imported, and then its owner pays. */
static int driver_default_pool_device(CUmemoryPool pool)
{
    int count = 0;
    real.cuDeviceGetCount(&count);
    for (int device = 0; device < count; device++) {
        CUmemoryPool candidate;
        if (real.cuDeviceGetDefaultMemPool(&candidate, device) == CUDA_SUCCESS && candidate == pool)
            return device;
    }
    return POOLS_HOST;
}

bool driver_pool_place(CUmemoryPool pool, CUstream stream, bool per_thread, unsigned *device)
{
    int found;
    if (driver_is_capturing(stream, per_thread))
        return false;
    if (!limit_pool_device((uint64_t)pool, &found))
        found = driver_default_pool_device(pool);
    if (found == POOLS_HOST || !driver_knows(found))
        return false;
    *device = (unsigned)found;
    return true;
}
