/* SPDX-License-Identifier: MIT
 *
 * The roads by what the driver takes outside any allocation: variables of code, stacks, streams,
 * the heap of kernels; and by code that comes with a kernel's launch, which nobody can refuse.
 */
#include "roads.h"

#include <stdio.h>
#include <unistd.h>

/* PTX that every driver since CUDA 11 compiles for whatever GPU there is. */
#define PTX ".version 7.0\n.target sm_70\n.address_size 64\n"

/* What is given back once late code has come, and cannot be had again. */
#define STONE_BYTES (32 * MIB)

/* Variables of code that is loaded, one module after another. */
CUresult roads_module(size_t bytes, uint64_t *got_bytes)
{
    CUmodule module;
    char text[256];
    *got_bytes = bytes;
    snprintf(text, sizeof text,
             PTX ".visible .global .align 4 .b8 big[%zu];\n"
                 ".visible .entry k(.param .u64 p){ ret; }\n",
             bytes);
    return cu.cuModuleLoadData(&module, text);
}

/* Memory for the stack of each thread that the device can run, taken at once. */
void roads_walk_stack(struct hoard *hoard)
{
    size_t bytes = 12 << 10;
    while (bytes > 0 &&
           !roads_note(hoard, cu.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, bytes), 0, "cuCtxSetLimit"))
        bytes -= 512;
    hoard->in_a_row = 0;
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

static void make_streams(struct hoard *hoard)
{
    enum { MANY = 4096 };
    CUstream stream;
    hoard->in_a_row = 0;
    for (unsigned i = 0; i < MANY && roads_wants_more(hoard); i++)
        roads_note(hoard, cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0, "cuStreamCreate");
    hoard->in_a_row = 0;
}

/* With nothing left, and with little. */
void roads_walk_streams(struct hoard *hoard)
{
    CUdeviceptr stone;
    roads_must(cu.cuMemAlloc_v2(&stone, STONE_BYTES), "cuMemAlloc");
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
    make_streams(hoard);
    roads_must(cu.cuMemFree_v2(stone), "cuMemFree");
    make_streams(hoard);
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
}

static CUfunction load_kernel(const void *image, const char *name)
{
    CUmodule module;
    CUfunction kernel;
    roads_must(cu.cuModuleLoadData(&module, image), "cuModuleLoadData");
    roads_must(cu.cuModuleGetFunction(&kernel, module, name), "cuModuleGetFunction");
    return kernel;
}

static void launch(CUfunction kernel)
{
    unsigned number = 0;
    void *parameters[] = {&number};
    roads_must(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, roads_streams[0], parameters, NULL),
               "cuLaunchKernel");
    roads_must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

/* The heap is set before the rest is taken, and comes with the first kernel that uses it. */
void roads_walk_heap(struct hoard *hoard)
{
    enum { HEAP_MIB = 256 };
    static const char code[] =
        PTX ".extern .func (.param .b64 address) malloc (.param .b64 bytes);\n"
            ".visible .entry k(.param .u32 n){\n"
            ".reg .u32 %r<2>; .reg .u64 %a<3>; .reg .pred %p;\n"
            "ld.param.u32 %r0, [n];\n"
            "add.u32 %r1, %r0, 16;\n"
            "cvt.u64.u32 %a0, %r1;\n"
            "{ .param .b64 bytes; .param .b64 address;\n"
            "st.param.b64 [bytes], %a0;\n"
            "call.uni (address), malloc, (bytes);\n"
            "ld.param.b64 %a1, [address]; }\n"
            "setp.ne.u64 %p, %a1, 0;\n"
            "@%p st.u32 [%a1], %r0;\n"
            "ret; }\n";
    roads_note(hoard, cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP_MIB * MIB), HEAP_MIB * MIB,
               "cuCtxSetLimit");
    CUfunction kernel = load_kernel(code, "k");
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
    launch(kernel);
    hoard->in_a_row = 0;
    roads_take_all(hoard, roads_linear, MIB, MIB);
}

/* The limit is full and something has come that nobody could refuse. It is seen at the latest by a
 * synchronisation some time later; then what is given back must not be had again, as it pays for
 * that. */
static void take_after(struct hoard *hoard, CUdeviceptr stone)
{
    enum { LATER_US = 200000 };
    CUdeviceptr address;
    usleep(LATER_US);
    roads_must(cu.cuCtxSynchronize(), "cuCtxSynchronize");
    roads_must(cu.cuMemFree_v2(stone), "cuMemFree");
    hoard->got_after = 0;
    for (size_t bytes = 0; bytes < STONE_BYTES; bytes += 2 * MIB)
        hoard->got_after +=
            roads_note(hoard, cu.cuMemAlloc_v2(&address, 2 * MIB), 2 * MIB, "cuMemAlloc");
}

/* A kernel whose threads have more local memory than the stack's size: the driver takes it for all
 * threads that the device can run, at the launch. */
void roads_walk_late_local(struct hoard *hoard)
{
    static const char code[] = PTX ".visible .global .u32 seen;\n"
                                   ".visible .entry k(.param .u32 n){\n"
                                   ".local .align 4 .b8 room[8000];\n"
                                   ".reg .u32 %r<4>; .reg .u64 %a<6>; .reg .pred %p;\n"
                                   "ld.param.u32 %r0, [n];\n"
                                   "mul.lo.u32 %r1, %r0, %r0;\n"
                                   "mov.u64 %a0, room;\n"
                                   "mul.wide.u32 %a1, %r0, 4;\n"
                                   "mul.wide.u32 %a2, %r1, 4;\n"
                                   "add.u64 %a3, %a0, %a1;\n"
                                   "add.u64 %a4, %a0, %a2;\n"
                                   "st.local.u32 [%a3], %r0;\n"
                                   "ld.local.u32 %r2, [%a4];\n"
                                   "setp.ne.u32 %p, %r0, 0;\n"
                                   "@%p st.global.u32 [seen], %r2;\n"
                                   "ret; }\n";
    CUdeviceptr stone;
    CUfunction kernel = load_kernel(code, "k");
    roads_must(cu.cuMemAlloc_v2(&stone, STONE_BYTES), "cuMemAlloc");
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
    launch(kernel);
    take_after(hoard, stone);
}

/* A library's variable, which comes when it is first asked for. */
static void walk_late_global(struct hoard *hoard, const void *image)
{
    CUlibrary library;
    CUdeviceptr stone, address;
    size_t bytes;
    roads_must(cu.cuMemAlloc_v2(&stone, STONE_BYTES), "cuMemAlloc");
    roads_take_all(hoard, roads_linear, 300 * MIB, MIB);
    hoard->in_a_row = 0;
    CUresult result = cu.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (roads_note(hoard, result, 0, "cuLibraryLoadData")) {
        result = cu.cuLibraryGetGlobal(&address, &bytes, library, "big");
        if (result == CUDA_ERROR_NOT_FOUND)
            roads_skip("the driver reads no code that nvcc builds");
        roads_note(hoard, result, 0, "cuLibraryGetGlobal");
    }
    take_after(hoard, stone);
}

void roads_walk_late_global(struct hoard *hoard)
{
    walk_late_global(hoard, PTX ".visible .global .align 4 .b8 big[67108864];\n"
                                ".visible .entry k(.param .u64 p){ ret; }\n");
}

void roads_walk_late_fatbin(struct hoard *hoard)
{
    walk_late_global(hoard, roads_image("global.fatbin"));
}
