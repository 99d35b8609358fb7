/* SPDX-License-Identifier: MIT
 *
 * A library that looks driver functions up in its constructor, as cuBLASLt does, and may free
 * memory in its destructor. Preloaded behind libgpulimit.so, it is initialised before that and ends
 * after it.
 */
#include <dlfcn.h>
#include <stdio.h>

void *early_address(unsigned number);
void early_free_at_end(unsigned long long address);

static void *addresses[4];
static unsigned long long left;

__attribute__((constructor)) static void early_look_up(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return;
    addresses[0] = dlsym(driver, "cuGetProcAddress_v2");
    addresses[1] = dlsym(driver, "cuMemAlloc_v2");
    addresses[2] = dlsym(driver, "cuMemcpyHtoD_v2");
    addresses[3] = dlsym(driver, "cuMemFree_v2");
}

__attribute__((destructor)) static void early_end(void)
{
    int (*free_memory)(unsigned long long) = NULL;
    *(void **)&free_memory = addresses[3];
    if (left && free_memory(left) != 0)
        fputs("early: cuMemFree failed\n", stderr);
}

void early_free_at_end(unsigned long long address)
{
    left = address;
}

void *early_address(unsigned number)
{
    return addresses[number];
}
