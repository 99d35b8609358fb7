// SPDX-License-Identifier: MIT
//
// Initialisation, fork, and what every call does first and last; see process.h.

#include "process.h"

#include "backing.h"
#include "capture.h"
#include "device.h"
#include "pool.h"
#include "state.h"

#include <pthread.h>
#include <stdatomic.h>

enum process_status {
    PROCESS_NEW,
    PROCESS_STARTED,
    PROCESS_FORKED, /* child of a process that was initialised: unusable for good, as in the driver
                     */
};

struct process process;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int status = PROCESS_NEW;
static bool watching_forks; /* under the lock */

static void process_forked(void)
{
    /* Another thread of the parent may have held it. */
    pthread_mutex_init(&lock, NULL);
    if (atomic_load(&status) == PROCESS_STARTED)
        atomic_store(&status, PROCESS_FORKED);
}

void process_lock(void)
{
    pthread_mutex_lock(&lock);
    if (!watching_forks)
        watching_forks = pthread_atfork(NULL, NULL, process_forked) == 0;
}

void process_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

CUresult process_enter(enum symbol symbol, enum process_call call)
{
    CUresult result = symbols_count_call(symbol);

    if (result)
        return result;
    /* Pairs with the store in process_start, behind which all of `process` is in place. */
    if (call != PROCESS_ALWAYS &&
        atomic_load_explicit(&status, memory_order_acquire) != PROCESS_STARTED)
        return CUDA_ERROR_NOT_INITIALIZED;
    process_lock();
    if (call == PROCESS_UNSAFE && capture_spoil())
        return process_leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return CUDA_SUCCESS;
}

CUresult process_leave(CUresult result)
{
    process_unlock();
    return result;
}

/* Again by a second cuInit, if the first one found no room: until then, nothing else is held. */
static bool process_pay_start(void)
{
    uint64_t bytes = process.config.start_hidden_bytes;

    for (unsigned i = 0; bytes && i < process.visible; i++) {
        unsigned gpu = process.gpus[i];

        if (state_own_bytes(gpu))
            continue;
        if (!backing_take_once(gpu, bytes))
            return false;
        backing_hide(gpu, (int64_t)bytes);
    }
    return true;
}

CUresult process_start(void)
{
    int now = atomic_load(&status);

    if (now != PROCESS_NEW)
        return now == PROCESS_STARTED ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    process.config = config_read();
    process.visible = device_list_visible(&process.config, process.gpus);
    if (!process.visible)
        return CUDA_ERROR_NO_DEVICE;
    if (!state_open() || !state_claim())
        return CUDA_ERROR_OPERATING_SYSTEM;
    CUresult result = process_pay_start() ? pool_start() : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&status, PROCESS_STARTED, memory_order_release);
    return result;
}

bool process_find_gpu(CUdevice ordinal, unsigned *gpu)
{
    if (ordinal < 0 || (unsigned)ordinal >= process.visible)
        return false;
    *gpu = process.gpus[ordinal];
    return true;
}
