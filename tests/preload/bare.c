/* SPDX-License-Identifier: MIT
 *
 * bare.h: the loader's functions are looked up in libc itself, by its handle.
 */
#include "bare.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *(*bare_next_dlsym)(void *handle, const char *name);
static void *(*bare_next_dlvsym)(void *handle, const char *name, const char *version);

int bare_find_loader(void **state)
{
    static const char *const homes[] = {"libc.so.6", "libdl.so.2" /* before glibc 2.34 */};
    (void)state;
    for (unsigned i = 0; i < 2 && !bare_next_dlsym; i++) {
        void *home = dlopen(homes[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!home)
            continue;
        *(void **)&bare_next_dlsym = dlsym(home, "dlsym");
        *(void **)&bare_next_dlvsym = dlsym(home, "dlvsym");
    }
    (void)dlerror(); /* of the home that it was not */
    return bare_next_dlsym && bare_next_dlvsym ? 0 : -1;
}

void *bare_dlsym(void *handle, const char *name)
{
    return bare_next_dlsym(handle, name);
}

void *bare_dlvsym(void *handle, const char *name, const char *version)
{
    return bare_next_dlvsym(handle, name, version);
}

void *bare_driver(void)
{
    return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

void *bare_nvml(void)
{
    return dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD);
}

bool bare_lies_in(const void *address, const char *file)
{
    Dl_info info;
    if (!address || dladdr(address, &info) == 0)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    return strcmp(slash ? slash + 1 : info.dli_fname, file) == 0;
}
