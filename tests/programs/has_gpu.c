/* SPDX-License-Identifier: MIT
 *
 * Says whether CUDA works here: ends with 0 and prints how many GPUs there are, or ends with 1 and
 * prints why not. For scripts, which so need neither nvidia-smi nor a GPU's name.
 */
#include <dlfcn.h>
#include <stdio.h>

#include <cuda.h>
#include <cudaTypedefs.h>

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        puts("there is no NVIDIA driver (libcuda.so.1)");
        return 1;
    }
    PFN_cuInit_v2000 init;
    PFN_cuDeviceGetCount_v2000 count;
    *(void **)&init = dlsym(driver, "cuInit"); /* through void **, as dlsym's manual page does */
    *(void **)&count = dlsym(driver, "cuDeviceGetCount");
    if (!init || !count) {
        puts("libcuda.so.1 is not NVIDIA's driver");
        return 1;
    }
    CUresult result = init(0);
    int devices = 0;
    if (result == CUDA_SUCCESS)
        result = count(&devices);
    if (result != CUDA_SUCCESS || devices == 0) {
        printf("the NVIDIA driver finds no usable GPU (cuInit answered %d)\n", (int)result);
        return 1;
    }
    printf("%d GPU%s\n", devices, devices == 1 ? "" : "s");
    return 0;
}
