/* SPDX-License-Identifier: MIT
 *
 * A program of the CUDA runtime's for the scenarios, which names its phases: what it asks for is
 * known by the runtime's own names. It says HOLD and waits for a line where it is to be looked at.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpulimit/gpulimit.h"
#include "runtime_api.h"

#define MIB ((size_t)1 << 20)

/* Places that a stack can name: neither inlined nor left by a jump. */
#define PLACE __attribute__((noinline)) static void

static void must(cudaError_t result, const char *what)
{
    if ((int)result != 0) {
        printf("renderer: %s: error %d\n", what, (int)result);
        exit(1);
    }
}

PLACE load_scene(void)
{
    void *pointer;

    gpulimit_tag_push("scene");
    must(cudaMalloc(&pointer, 80 * MIB), "cudaMalloc");
    must(cudaMallocManaged(&pointer, 20 * MIB, 1), "cudaMallocManaged");
    gpulimit_tag_pop();
}

PLACE begin_frame(void)
{
    void *pointer;
    size_t pitch;

    gpulimit_tag_push("frame 1");
    must(cudaMallocPitch(&pointer, &pitch, 4096, 1024), "cudaMallocPitch");
    must(cudaMallocAsync(&pointer, 32 * MIB, NULL), "cudaMallocAsync");
}

PLACE trace_rays(void)
{
    void *pointer;

    printf("renderer: error %d\n", (int)cudaMalloc(&pointer, 200 * MIB));
}

int main(void)
{
    load_scene();
    begin_frame();
    trace_rays();
    puts("HOLD");
    fflush(stdout);
    (void)!getchar(); /* NOLINT: at the end of input it goes on, too */
    return 0;
}
