/* SPDX-License-Identifier: MIT
 *
 * A library that looks driver functions up in its constructor, as cuBLASLt does. Preloaded behind
 * libgpulimit.so, it is initialised before that.
 */
#include <dlfcn.h>
#include <stddef.h>

void *early_address(unsigned number);

static void *addresses[3];

__attribute__((constructor)) static void early_look_up(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return;
    addresses[0] = dlsym(driver, "cuGetProcAddress_v2");
    addresses[1] = dlsym(driver, "cuMemAlloc_v2");
    addresses[2] = dlsym(driver, "cuMemcpyHtoD_v2");
}

void *early_address(unsigned number)
{
    return addresses[number];
}
