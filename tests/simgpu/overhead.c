// SPDX-License-Identifier: MIT
//
// What contexts take; see overhead.h. The figures are an H200's.

#include "overhead.h"

#include "backing.h"
#include "driver.h"
#include "process.h"

#define OVERHEAD_GREEN       (6 * DRIVER_MIB)
#define OVERHEAD_HEAP_CODE   (138 * DRIVER_MIB) /* with the first code that calls malloc */
#define OVERHEAD_PRINTF_CODE (62 * DRIVER_MIB)  /* with the first code that calls printf */
#define OVERHEAD_HEAP_EXTRA  DRIVER_BLOCK       /* beside the heap itself */

static bool overhead_take(struct overhead *overhead, uint64_t bytes)
{
    if (!backing_take(overhead->gpu, bytes))
        return false;
    overhead->bytes += bytes;
    return true;
}

bool overhead_start(struct overhead *overhead, unsigned gpu)
{
    const struct config *config = &process.config;

    *overhead = (struct overhead){.gpu = gpu, .thread_bytes = OVERHEAD_STACK};
    if (!overhead_take(overhead, config->context_bytes + config->context_hidden_bytes))
        return false;
    overhead->hidden_bytes = config->context_hidden_bytes;
    backing_hide(gpu, (int64_t)overhead->hidden_bytes);
    return true;
}

void overhead_end(struct overhead *overhead)
{
    backing_hide(overhead->gpu, -(int64_t)overhead->hidden_bytes);
    backing_give(overhead->gpu, overhead->bytes);
    *overhead = (struct overhead){.gpu = overhead->gpu};
}

/* A context that takes nothing is one without overhead of any kind, for tests that reckon with the
 * program's own memory alone. */
static bool overhead_is_free(void)
{
    return !process.config.context_bytes;
}

/* ---- streams and green contexts: as many as ever lived at once ---- */

/* 8 streams take 4 MiB, 32 take 16, 64 take 34, 128 take 70. */
static uint64_t overhead_stream_bytes(uint64_t streams)
{
    if (overhead_is_free() || !streams)
        return 0;
    return (9 * streams - 8) / 32 * DRIVER_BLOCK;
}

bool overhead_add_stream(struct overhead *overhead)
{
    unsigned most = overhead->streams_most;

    if (overhead->streams == most) {
        if (!overhead_take(overhead, overhead_stream_bytes(most + 1) - overhead_stream_bytes(most)))
            return false;
        overhead->streams_most++;
    }
    overhead->streams++;
    return true;
}

void overhead_drop_stream(struct overhead *overhead)
{
    overhead->streams--;
}

bool overhead_add_green(struct overhead *overhead)
{
    if (overhead->greens == overhead->greens_most) {
        if (!overhead_take(overhead, overhead_is_free() ? 0 : OVERHEAD_GREEN))
            return false;
        overhead->greens_most++;
    }
    overhead->greens++;
    return true;
}

void overhead_drop_green(struct overhead *overhead)
{
    /* A reset of the primary context forgets those that live on. */
    overhead->greens -= overhead->greens != 0;
}

/* ---- stacks: so many bytes for each thread that the device can hold ---- */

/* Beyond the default's, whose memory a context comes with. */
static int64_t overhead_stack_bytes(uint64_t thread_bytes)
{
    uint64_t threads = (uint64_t)DRIVER_MULTIPROCESSORS * DRIVER_THREADS;
    int64_t by_default = (int64_t)driver_round(threads * OVERHEAD_STACK, DRIVER_BLOCK);
    int64_t beyond = (int64_t)driver_round(threads * thread_bytes, DRIVER_BLOCK) - by_default;
    int64_t least = -(int64_t)process.config.context_bytes;

    /* A context smaller than the real ones has not as much to give back. */
    return beyond > least ? beyond : least;
}

static bool overhead_resize(struct overhead *overhead, uint64_t thread_bytes)
{
    int64_t change =
        overhead_stack_bytes(thread_bytes) - overhead_stack_bytes(overhead->thread_bytes);

    if (change > 0 && !overhead_take(overhead, (uint64_t)change))
        return false;
    if (change < 0) {
        backing_give(overhead->gpu, (uint64_t)-change);
        overhead->bytes -= (uint64_t)-change;
    }
    overhead->thread_bytes = thread_bytes;
    return true;
}

bool overhead_set_stack(struct overhead *overhead, uint64_t thread_bytes)
{
    uint64_t least = overhead->kernel_bytes;

    return overhead_resize(overhead, thread_bytes > least ? thread_bytes : least);
}

/* ---- code and kernels ---- */

bool overhead_load(struct overhead *overhead, const struct overhead_needs *needs)
{
    uint64_t bytes = 0;

    if (needs->heap && !overhead->has_heap_code)
        bytes += OVERHEAD_HEAP_CODE;
    if (needs->printf && !overhead->has_printf_code)
        bytes += OVERHEAD_PRINTF_CODE;
    if (!overhead_take(overhead, bytes))
        return false;
    overhead->has_heap_code |= needs->heap;
    overhead->has_printf_code |= needs->printf;
    return true;
}

bool overhead_launch(struct overhead *overhead, const struct overhead_needs *needs,
                     uint64_t heap_bytes, uint64_t printf_bytes)
{
    if (needs->local_bytes > overhead->thread_bytes &&
        !overhead_resize(overhead, needs->local_bytes))
        return false;
    if (needs->local_bytes > overhead->kernel_bytes)
        overhead->kernel_bytes = needs->local_bytes;
    if (needs->heap && !overhead->has_heap) {
        if (!overhead_take(overhead, driver_round(heap_bytes, DRIVER_BLOCK) + OVERHEAD_HEAP_EXTRA))
            return false;
        overhead->has_heap = true;
    }
    if (needs->printf && !overhead->has_printf) {
        /* A buffer of the default's size came with the code. */
        if (printf_bytes > OVERHEAD_PRINTF &&
            !overhead_take(overhead, driver_round(printf_bytes - OVERHEAD_PRINTF, DRIVER_BLOCK)))
            return false;
        overhead->has_printf = true;
    }
    return true;
}
