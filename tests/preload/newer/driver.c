/* SPDX-License-Identifier: MIT
 *
 * A driver newer than the library, as far as looking functions up goes: beside some that the tables
 * know it has some that they do not, and a later variant of cuMemAlloc. None of them does anything.
 */
#include <cuda.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* name, what cuGetProcAddress calls it, the version that brought it */
#define NEWER_FUNCTIONS(F)                                                                         \
    F(cuMemAlloc_v2, "cuMemAlloc", 3020)                                                           \
    F(cuMemAlloc_v9, "cuMemAlloc", 99000)                                                          \
    F(cuMemAdvise, "cuMemAdvise", 8000)                                                            \
    F(cuMemHoard, "cuMemHoard", 99000)                                                             \
    F(cuMemHoardAsync, "cuMemHoardAsync", 99000)                                                   \
    F(cuMemcpyOddly, "cuMemcpyOddly", 99000)                                                       \
    F(cuLaunchOddly, "cuLaunchOddly", 99000)                                                       \
    F(cuPoolOne, "cuPoolOne", 99000)                                                               \
    F(cuPoolTwo, "cuPoolTwo", 99000)                                                               \
    F(cuPoolThree, "cuPoolThree", 99000)                                                           \
    F(cuPoolFour, "cuPoolFour", 99000)                                                             \
    F(cuPoolFive, "cuPoolFive", 99000)                                                             \
    F(cuPoolSix, "cuPoolSix", 99000)                                                               \
    F(cuModuleWithANameFarLongerThanAnyPlaceForOneInTheLedger,                                     \
      "cuModuleWithANameFarLongerThanAnyPlaceForOneInTheLedger", 99000)

/* Without the prototypes of cuda.h, which these do not follow. */
#define NEWER_DEFINE(_symbol, _name, _version)                                                     \
    int newer_##_symbol(void) __asm__(#_symbol);                                                   \
    int newer_##_symbol(void)                                                                      \
    {                                                                                              \
        return 0;                                                                                  \
    }
NEWER_FUNCTIONS(NEWER_DEFINE)

CUresult CUDAAPI cuInit(unsigned int Flags)
{
    (void)Flags;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                     cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    static const struct {
        const char *name;
        int version;
        int (*function)(void);
    } rows[] = {
#define NEWER_ROW(_symbol, _name, _version) {_name, _version, newer_##_symbol},
        NEWER_FUNCTIONS(NEWER_ROW)};
    (void)flags;
    *pfn = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, symbol) == 0 && rows[i].version <= cudaVersion)
            *pfn = (void *)rows[i].function;
    }
    if (symbolStatus)
        *symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}
