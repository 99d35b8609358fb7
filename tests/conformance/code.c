// SPDX-License-Identifier: MIT
//
// Modules and libraries: PTX without instructions, for its variables.

#include "conformance.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

static const char nothing[] = HEAD;
static const char large[] = HEAD ".visible .global .align 4 .b8 big[268435456];\n";
static const char medium[] = HEAD ".visible .global .align 4 .b8 big[3145728];\n";
static const char small[] = HEAD ".visible .global .align 4 .b8 big[1048576];\n";

static void check_modules(void)
{
    CUmodule module, other, unmade = (CUmodule)SENTINEL;
    CUdeviceptr at = SENTINEL, linear, base;
    size_t bytes = SENTINEL;

    section("modules");
    QUIET(cuModuleLoadData(&module, nothing)); /* the first one may wake the compiler */
    QUIET(cuModuleUnload(module));
    forget();
    CALL(cuModuleLoadData(&module, nothing));
    CALL(cuModuleUnload(module));
    CALL(cuModuleLoadData(&module, large));
    CALL(cuModuleGetGlobal_v2(&at, &bytes, module, "big"));
    NUMBER(bytes);
    CALL(cuMemGetAddressRange_v2(&base, &bytes, at + 5));
    NUMBER(base == at);
    CALL(cuMemFree_v2(at));
    CALL(cuModuleGetGlobal_v2(&at, &bytes, module, "none"));
    OUTPUT(at);
    OUTPUT(bytes);
    CALL(cuModuleGetGlobal_v2(NULL, NULL, module, "big"));
    CALL(cuModuleUnload(module));
    CALL(cuModuleUnload(module));
    CALL(cuModuleLoadDataEx(&module, medium, 0, NULL, NULL));
    CALL(cuModuleUnload(module));
    CALL(cuMemAlloc_v2(&linear, MIB / 2));
    CALL(cuModuleLoadFatBinary(&module, small));
    CALL(cuModuleLoadData(&other, small));
    CALL(cuModuleUnload(module));
    CALL(cuModuleUnload(other));
    CALL(cuMemFree_v2(linear));
    CALL(cuModuleLoadData(&unmade, "garbage"));
    CALL(cuModuleLoadData(&unmade, NULL));
    CALL(cuModuleLoad(&unmade, "/nonexistent"));
    OUTPUT(unmade);
    CALL(cuModuleUnload(NULL));
}

static void check_libraries(void)
{
    CUlibrary library;
    CUmodule module, again;
    CUdeviceptr at;
    size_t bytes;

    section("libraries");
    CALL(cuLibraryLoadData(&library, large, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetModule(&module, library));
    CALL(cuLibraryGetModule(&again, library));
    NUMBER(module == again);
    CALL(cuLibraryGetGlobal(&at, &bytes, library, "big"));
    NUMBER(bytes);
    at = bytes = SENTINEL;
    CALL(cuLibraryGetGlobal(&at, &bytes, library, "none"));
    OUTPUT(at);
    OUTPUT(bytes);
    CALL(cuModuleUnload(module));
    CALL(cuLibraryUnload(library));
    CALL(cuLibraryLoadData(&library, large, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetGlobal(&at, &bytes, library, "big"));
    CALL(cuLibraryUnload(library));
    CALL(cuLibraryLoadData(&library, "garbage", NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetModule(&module, library));
    CALL(cuLibraryUnload(library));
    CALL(cuLibraryLoadFromFile(&library, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryUnload(NULL));
}

void check_code(void)
{
    check_modules();
    check_libraries();
}
