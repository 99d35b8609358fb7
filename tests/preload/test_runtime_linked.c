/* SPDX-License-Identifier: MIT
 *
 * The runtime's own names in a program that is linked with the runtime, as nvcc -cudart shared
 * makes them, and with another tool's library beside us that has functions of these names.
 */
#include "preload.h"

#include "bare.h"
#include "own_ledger.h"
#include "program.h"
#include "runtime_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned runtime_calls(void);

/* ---- in the started program ---- */

static bool holds(const char *api)
{
    struct gpulimit_ledger *ledger = own_ledger();
    bool is_it = ledger && ledger->entry_count == 1 &&
                 strcmp(gpulimit_reader_api_name(ledger, ledger->entries[0].api), api) == 0;
    if (ledger)
        gpulimit_reader_close(ledger);
    return is_it;
}

static int play_use(void)
{
    void *address = NULL;
    for (unsigned i = 1; i <= 3; i++) {
        expect(cudaMalloc(&address, MIB(2)) == 0 && runtime_calls() == 2 * i - 1);
        expect(holds("cudaMalloc"));
        expect(cudaFree(address) == 0 && runtime_calls() == 2 * i);
    }
    expect(preload_device()->charged_bytes == 0);
    return 0;
}

static int play_look_up(void)
{
    void *address = NULL;
    cudaError_t (*function)(void **, size_t) = NULL;
    expect(bare_find_loader(NULL) == 0);
    void *own = bare_dlsym(dlopen("libcudart.so.12", RTLD_LAZY | RTLD_NOLOAD), "cudaMalloc");
    expect(own && own != (void *)cudaMalloc);
    expect(dlsym(RTLD_DEFAULT, "cudaMalloc") == own && dlsym(RTLD_NEXT, "cudaMalloc") == own);
    expect(dlsym(dlopen(NULL, RTLD_LAZY), "cudaMalloc") == own);
    expect(dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12") == own);
    *(void **)&function = dlsym(RTLD_DEFAULT, "cudaMalloc");
    expect(function(&address, MIB(2)) == 0 && holds("cuMemAlloc_v2"));
    return 0;
}

/* Beside another tool, whose calls are to be seen as without us. */
static int play_beside(void)
{
    unsigned (*calls)(void) = NULL;
    void *address = NULL;
    *(void **)&calls = dlsym(RTLD_DEFAULT, "tool_calls");
    expect(calls && cudaMalloc(&address, MIB(2)) == 0);
    expect(calls() == 1 && runtime_calls() == 1);
    struct gpulimit_ledger *ledger = own_ledger();
    expect(ledger && ledger->entry_count == 1 && ledger->device_count == 1); /* counted once */
    gpulimit_reader_close(ledger);
    /* Only where it comes first, nothing is left for us to name. */
    expect(holds(getenv("TOOL_IS_FIRST") ? "cuMemAlloc_v2" : "cudaMalloc"));
    expect(bare_find_loader(NULL) == 0);
    expect(bare_lies_in(dlsym(RTLD_DEFAULT, "cudaMalloc"), "libtool.so"));
    expect(bare_lies_in(dlsym(RTLD_NEXT, "cudaMalloc"), "libtool.so"));
    return 0;
}

static const struct role roles[] = {
    {"use", play_use}, {"look up", play_look_up}, {"beside", play_beside}, {0}};

/* ---- in the test ---- */

static struct program program;

static void test_plays(void **state)
{
    program_play(&program, *state, PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
}

static void test_another_tool_behind_the_library_is_called_as_ever(void **state)
{
    char variable[4096];
    (void)state;
    snprintf(variable, sizeof variable, "%s:%s", program_under_library(), getenv("RUNTIME_TOOL"));
    program_play(&program, "beside", PROGRAM_LIST(variable));
    program_assert_ok(&program);
}

static void test_and_one_before_it(void **state)
{
    char variable[4096];
    (void)state;
    snprintf(variable, sizeof variable, "%s%s%s", program_without_library(), getenv("RUNTIME_TOOL"),
             strrchr(program_under_library(), ':') ? strrchr(program_under_library(), ':') : "");
    if (!strrchr(program_under_library(), ':'))
        snprintf(variable, sizeof variable, "LD_PRELOAD=%s:%s", getenv("RUNTIME_TOOL"),
                 program_under_library() + strlen("LD_PRELOAD="));
    program_play(&program, "beside", PROGRAM_LIST(variable, "TOOL_IS_FIRST=1"));
    program_assert_ok(&program);
}

#define CASE(_name, _role)                                                                         \
    {                                                                                              \
        _name, test_plays, NULL, NULL, (void *)(uintptr_t)_role                                    \
    }

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        CASE("the program's own runtime is reached and named", "use"),
        CASE("who looks a function up gets the runtime's", "look up"),
        cmocka_unit_test(test_another_tool_behind_the_library_is_called_as_ever),
        cmocka_unit_test(test_and_one_before_it),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests_name("runtime_linked", tests, NULL, NULL);
}
