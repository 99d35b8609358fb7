// SPDX-License-Identifier: MIT
//
// Runs the sections in their order, and prints; see conformance.h.

#include "conformance.h"

#include <stdio.h>

CUstream stream;

static int64_t free_before;

/* false: there is no context to ask. */
static bool measure(int64_t *moved)
{
    size_t free_now = 0, total = 0;

    *moved = 0;
    if (cuMemGetInfo_v2(&free_now, &total) != CUDA_SUCCESS)
        return false;
    *moved = free_before - (int64_t)free_now;
    free_before = (int64_t)free_now;
    return true;
}

void forget(void)
{
    int64_t moved;

    measure(&moved);
}

void section(const char *title)
{
    printf("\n%s\n", title);
    forget();
}

static CUresult report_figure(char mark, CUresult result, const char *call, int64_t unit)
{
    int64_t moved;
    char figure[32] = "-";

    if (measure(&moved))
        snprintf(figure, sizeof figure, "%+.8g",
                 (double)((moved + (moved < 0 ? -unit : unit) / 2) / unit * unit) / (double)MIB);
    printf("%c %4d %9s  %s\n", mark, (int)result, figure, call);
    fflush(stdout);
    return result;
}

CUresult report(char mark, CUresult result, const char *call)
{
    return report_figure(mark, result, call, 1);
}

CUresult report_about(CUresult result, const char *call)
{
    return report_figure('~', result, call, 100 * (int64_t)MIB);
}

void report_output(const char *name, uint64_t value)
{
    const char *what = value == SENTINEL ? "untouched" : value ? "set" : "0";

    printf("                  %s: %s\n", name, what);
}

void report_number(char mark, const char *name, uint64_t value)
{
    printf("%c                 %s: %llu\n", mark, name, (unsigned long long)value);
}

int main(void)
{
    CUcontext context;

    check_before_start();
    NUMBER(cuInit(0));
    NUMBER(cuDevicePrimaryCtxRetain(&context, 0));
    NUMBER(cuCtxSetCurrent(context));
    QUIET(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    check_linear();
    check_pitch();
    check_managed();
    check_queries();
    check_async();
    check_pools();
    check_vmm();
    check_arrays();
    check_capture();
    check_graphs();
    check_limits();
    check_code();
    check_shares();
    check_contexts();
    check_reset();
    return 0;
}
