/* SPDX-License-Identifier: MIT
 *
 * Looks up in a driver library what programs look up, by cuGetProcAddress in both its forms and by
 * dlsym, and prints each answer by its name: the same lines with the library as without it, but for
 * " (hook)" behind those that are hooks. That exactly the rows of hooks.def are is judged here.
 *   usage: lookups bare|hooked DRIVER REQUESTS SYMBOLS
 */
#include "bare.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const hooks[] = {
#define HOOK(_symbol, _pfn, _room, _role, _text) #_symbol,
#include "gpulimit/tbl/hooks.def"
};

enum { HOOKS = sizeof hooks / sizeof hooks[0], LOOKUPS_POISON = 0x5a5a };

static void *driver;
static bool wants_hooks;
static unsigned wrong, hooked;

static bool is_to_be_hooked(const void *drivers_address)
{
    for (unsigned i = 0; i < HOOKS; i++) {
        if (bare_dlsym(driver, hooks[i]) == drivers_address)
            return true;
    }
    return false;
}

/* Prints the name of an address: of the driver's function there, or of the one that the hook there
 * stands for. */
static void print_name(void *address)
{
    Dl_info info;
    bool is_hook = bare_lies_in(address, "libgpulimit.so");
    if (!address || address == (void *)LOOKUPS_POISON) {
        printf("%s\n", address ? "untouched" : "none");
        return;
    }
    if (is_hook && dladdr(address, &info) && info.dli_saddr == address)
        address = bare_dlsym(driver, info.dli_sname);
    if (!dladdr(address, &info) || info.dli_saddr != address) {
        printf("an address without a name\n");
        return;
    }
    if (is_hook != (wants_hooks && is_to_be_hooked(address))) {
        fprintf(stderr, "%s: %s\n", info.dli_sname,
                is_hook ? "a hook, which it should not be" : "no hook, which it should be");
        wrong++;
    }
    hooked += is_hook;
    printf("%s%s\n", info.dli_sname, is_hook ? " (hook)" : "");
}

typedef CUresult (*form1)(const char *, void **, int, cuuint64_t);
typedef CUresult (*form2)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static void ask(const char *name, int version, unsigned long long flags)
{
    form1 old = NULL;
    form2 new = NULL;
    *(void **)&old = dlsym(driver, "cuGetProcAddress");
    *(void **)&new = dlsym(driver, "cuGetProcAddress_v2");
    if (old) {
        void *address = (void *)LOOKUPS_POISON;
        CUresult result = old(name, &address, version, flags);
        printf("1 %s %d %llu: %d ", name, version, flags, (int)result);
        print_name(address);
    }
    if (new) {
        void *address = (void *)LOOKUPS_POISON;
        CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
        CUresult result = new (name, &address, version, flags, &status);
        printf("2 %s %d %llu: %d %d ", name, version, flags, (int)result, (int)status);
        print_name(address);
    }
}

/* Calls look for each line of a file that is no comment. */
static bool for_each_line(const char *path, void (*look)(const char *line))
{
    char line[256];
    FILE *file = fopen(path, "re");
    if (!file) {
        perror(path);
        return false;
    }
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#' && line[0] != '\0')
            look(line);
    }
    fclose(file);
    return true;
}

static void look_by_request(const char *line)
{
    char name[128];
    int version;
    unsigned long long flags;
    if (sscanf(line, "%127s %d %llu", name, &version, &flags) != 3) {
        fprintf(stderr, "not understood: %s\n", line);
        wrong++;
        return;
    }
    ask(name, version, flags);
    ask(name, 0, flags); /* and at both ends of the versions */
    ask(name, 99000, flags);
}

static void look_by_symbol(const char *line)
{
    printf("dlsym %s: ", line);
    print_name(dlsym(driver, line));
}

int main(int count, char **words)
{
    if (count != 5) {
        fprintf(stderr, "usage: lookups bare|hooked DRIVER REQUESTS SYMBOLS\n");
        return 2;
    }
    wants_hooks = strcmp(words[1], "hooked") == 0;
    driver = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    if (!driver || bare_find_loader(NULL) != 0) {
        fprintf(stderr, "cannot be loaded: %s\n", dlerror());
        return 1;
    }
    if (!for_each_line(words[3], look_by_request) || !for_each_line(words[4], look_by_symbol))
        return 1;
    ask("", 0, 0); /* the CUDA runtime begins so */
    if (wants_hooks && hooked < HOOKS / 2) {
        fprintf(stderr, "only %u answers were hooks: is the library there at all?\n", hooked);
        return 1;
    }
    return wrong == 0 ? 0 : 1;
}
