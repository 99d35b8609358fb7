/* SPDX-License-Identifier: MIT
 *
 * The library of plugin.h.
 */
#include "plugin.h"

#include <dlfcn.h>

/* As programs see the functions, if that is to be had: the wheel of NVIDIA's headers lacks some. */
#if __has_include(<cuda_runtime_api.h>) && __has_include(<crt/host_defines.h>)
#include <cuda_runtime_api.h>
#else
#include "runtime_api.h"
#endif

/* Where no runtime is named, it may be found nowhere. */
#pragma weak runtime_calls
unsigned runtime_calls(void);

static int plugin_allocate_array(void **address, size_t bytes)
{
    enum { ROW_BYTES = 4096 };
    int result = (int)cudaMallocArray((cudaArray_t *)address, NULL, ROW_BYTES / sizeof(float),
                                      bytes / ROW_BYTES, 0);
    __asm__ volatile("" : "+r"(result));
    return result;
}

static int plugin_allocate_volume(void **address, size_t bytes)
{
    struct cudaPitchedPtr pitched = {0};
    int result = (int)cudaMalloc3D(&pitched, (struct cudaExtent){4096, 2, bytes / 4096 / 2});
    *address = pitched.ptr;
    return result;
}

static int plugin_call(enum plugin_call call, void **address, size_t bytes, void *pool)
{
    size_t pitch;
    int result = -1;
    switch (call) {
    case PLUGIN_cudaMalloc:
        result = (int)cudaMalloc(address, bytes);
        break;
    case PLUGIN_cudaMallocPitch:
        result = (int)cudaMallocPitch(address, &pitch, 4096, bytes / 4096);
        break;
    case PLUGIN_cudaMalloc3D:
        result = plugin_allocate_volume(address, bytes);
        break;
    case PLUGIN_cudaMallocArray:
        result = plugin_allocate_array(address, bytes);
        break;
    case PLUGIN_cudaMallocManaged:
        result = (int)cudaMallocManaged(address, bytes, 1);
        break;
    case PLUGIN_cudaMallocAsync:
        result = (int)cudaMallocAsync(address, bytes, NULL);
        break;
    case PLUGIN_cudaMallocAsync_ptsz:
        result = (int)cudaMallocAsync_ptsz(address, bytes, NULL);
        break;
    case PLUGIN_cudaMallocFromPoolAsync:
        result = (int)cudaMallocFromPoolAsync(address, bytes, pool, NULL);
        break;
    case PLUGIN_cudaMallocFromPoolAsync_ptsz:
        result = (int)cudaMallocFromPoolAsync_ptsz(address, bytes, pool, NULL);
        break;
    case PLUGIN_cudaFree:
        result = (int)cudaFree(*address);
        break;
    case PLUGIN_cudaFreeAsync:
        result = (int)cudaFreeAsync(*address, NULL);
        break;
    case PLUGIN_cudaFreeAsync_ptsz:
        result = (int)cudaFreeAsync_ptsz(*address, NULL);
        break;
    case PLUGIN_cudaFreeArray:
        result = (int)cudaFreeArray(*address);
        break;
    case PLUGIN_CALLS:
        break;
    }
    __asm__ volatile("" : "+r"(result)); /* none of these calls is a jump */
    return result;
}

static int plugin_jump(void **address, size_t bytes)
{
    return (int)cudaMalloc(address, bytes);
}

static void *plugin_look_up(void *handle, const char *name)
{
    void *address = dlsym(handle, name);
    __asm__ volatile("" : "+r"(address)); /* no jump: it is to be this library that asks */
    return address;
}

static void *plugin_look_up_version(void *handle, const char *name, const char *version)
{
    void *address = dlvsym(handle, name, version);
    __asm__ volatile("" : "+r"(address));
    return address;
}

__attribute__((visibility("default"))) extern const struct plugin plugin;
const struct plugin plugin = {plugin_call, plugin_jump, runtime_calls, plugin_look_up,
                              plugin_look_up_version};
