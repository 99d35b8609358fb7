/* SPDX-License-Identifier: MIT
 *
 * What a context takes of its device beside what the program allocates in it: itself, its streams,
 * its threads' stacks, and what its code and kernels need the first time. Most of it is kept until
 * the context ends. Called under the driver's lock.
 */
#ifndef SIMGPU_OVERHEAD_H
#define SIMGPU_OVERHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct overhead {
    unsigned gpu;
    uint64_t bytes;        /* all that is to be given back */
    uint64_t hidden_bytes; /* of those, what NVML's figure for the process leaves out */
    uint64_t thread_bytes; /* the stack that each thread has */
    uint64_t kernel_bytes; /* the most that a launched kernel wanted of it */
    unsigned streams, streams_most;
    unsigned greens, greens_most; /* green contexts */
    bool has_heap_code, has_printf_code;
    bool has_heap, has_printf;
};

/* What device code uses that takes memory. */
struct overhead_needs {
    uint64_t local_bytes; /* of local memory, each thread; 0: no more than any kernel */
    bool heap;            /* malloc */
    bool printf;
};

#define OVERHEAD_STACK  1024u    /* bytes a thread, by default */
#define OVERHEAD_PRINTF 8650752u /* bytes of printf's buffer, by default */

/* Each of these: false: the device is full, and nothing has changed. */
bool overhead_start(struct overhead *overhead, unsigned gpu);
bool overhead_add_stream(struct overhead *overhead);
bool overhead_add_green(struct overhead *overhead);
bool overhead_set_stack(struct overhead *overhead, uint64_t thread_bytes);
bool overhead_load(struct overhead *overhead, const struct overhead_needs *needs);

/* false: the device is full; what was taken is kept all the same, for a launch that needs less. */
bool overhead_launch(struct overhead *overhead, const struct overhead_needs *needs,
                     uint64_t heap_bytes, uint64_t printf_bytes);

/* Gives nothing back: the next ones get what these had. */
void overhead_drop_stream(struct overhead *overhead);
void overhead_drop_green(struct overhead *overhead);

void overhead_end(struct overhead *overhead);

#endif
