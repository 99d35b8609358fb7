/* SPDX-License-Identifier: MIT
 *
 * The runtime's own names: what a library calls by cudaMalloc is called so, counted once, and done
 * by that library's own runtime, whichever others there are. This program is linked with none.
 */
#include "preload.h"

#include "bare.h"
#include "own_ledger.h"
#include "program.h"
#include "runtime/plugin.h"
#include "runtime_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- in the started program ---- */

static const char *const names[PLUGIN_CALLS] = {
#define RUNTIME(_symbol, _text) #_symbol,
#include "gpulimit/tbl/runtime.def"
};

static void *open_runtimes(const char *file, int flags)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", getenv("PRELOAD_RUNTIMES"), file);
    return dlopen(path, RTLD_LAZY | flags);
}

static const struct plugin *open_plugin(const char *file, void **handle)
{
    *handle = open_runtimes(file, RTLD_LOCAL);
    return *handle ? dlsym(*handle, "plugin") : NULL;
}

/* Whether the ledger has one live allocation, by this name and of so many bytes. */
static bool holds(const char *api, size_t bytes)
{
    struct gpulimit_ledger *ledger = own_ledger();
    bool is_it = ledger && ledger->entry_count == 1 &&
                 strcmp(gpulimit_reader_api_name(ledger, ledger->entries[0].api), api) == 0 &&
                 ledger->entries[0].requested_bytes == bytes;
    if (ledger)
        gpulimit_reader_close(ledger);
    return is_it && preload_device()->requested_bytes == bytes;
}

static bool holds_nothing(void)
{
    struct gpulimit_ledger *ledger = own_ledger();
    bool is_it = ledger && ledger->entry_count == 0 && preload_device()->charged_bytes == 0;
    if (ledger)
        gpulimit_reader_close(ledger);
    return is_it;
}

/* A plug-in's allocation and free reach its own runtime, and only that. */
static bool works(const struct plugin *plugin)
{
    void *address = NULL;
    unsigned before = plugin->calls();
    bool is_named = plugin->call(PLUGIN_cudaMalloc, &address, MIB(2), NULL) == 0 &&
                    plugin->calls() == before + 1 && holds("cudaMalloc", MIB(2)) &&
                    preload_device()->charged_bytes == MIB(2);
    return is_named && plugin->call(PLUGIN_cudaFree, &address, 0, NULL) == 0 &&
           plugin->calls() == before + 2 && holds_nothing();
}

static int play_each(void)
{
    static const enum plugin_call frees[PLUGIN_CALLS] = {
        [PLUGIN_cudaMalloc] = PLUGIN_cudaFree,
        [PLUGIN_cudaMallocPitch] = PLUGIN_cudaFree,
        [PLUGIN_cudaMalloc3D] = PLUGIN_cudaFree,
        [PLUGIN_cudaMallocArray] = PLUGIN_cudaFreeArray,
        [PLUGIN_cudaMallocManaged] = PLUGIN_cudaFree,
        [PLUGIN_cudaMallocAsync] = PLUGIN_cudaFreeAsync,
        [PLUGIN_cudaMallocAsync_ptsz] = PLUGIN_cudaFreeAsync_ptsz,
        [PLUGIN_cudaMallocFromPoolAsync] = PLUGIN_cudaFreeAsync,
        [PLUGIN_cudaMallocFromPoolAsync_ptsz] = PLUGIN_cudaFreeAsync_ptsz,
    };
    void *handle, *address = NULL;
    CUmemoryPool pool;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin && plugin->call(PLUGIN_cudaFree, &address, 0, NULL) == 0);
    expect(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
    unsigned allocators = 0;
    for (enum plugin_call call = 0; call < PLUGIN_CALLS; call++) {
        if (strncmp(names[call], "cudaMalloc", 10) != 0)
            continue;
        unsigned before = plugin->calls();
        allocators++;
        expect(frees[call] != 0 && plugin->call(call, &address, MIB(2), pool) == 0);
        expect(plugin->calls() == before + 1 && holds(names[call], MIB(2)));
        expect(plugin->call(frees[call], &address, 0, NULL) == 0);
        expect(plugin->calls() == before + 2);
        expect(cuMemPoolTrimTo(pool, 0) == CUDA_SUCCESS && holds_nothing());
    }
    expect(allocators == 9);
    return 0;
}

static int play_two(void)
{
    void *handles[2];
    const struct plugin *one = open_plugin("plugin-12.so", &handles[0]);
    const struct plugin *other = open_plugin("plugin-13.so", &handles[1]);
    expect(one && other && one->calls != other->calls);
    for (unsigned i = 0; i < 3; i++)
        expect(works(one) && works(other));
    return 0;
}

/* One runtime for all, and a plug-in that has brought another; one that names none has the first.
 */
static int play_global(void)
{
    void *handles[2];
    expect(open_runtimes("13/libcudart.so.13", RTLD_GLOBAL));
    const struct plugin *own = open_plugin("plugin-12.so", &handles[0]);
    const struct plugin *any = open_plugin("plugin-any.so", &handles[1]);
    expect(own && any && own->calls && any->calls && own->calls != any->calls);
    for (unsigned i = 0; i < 3; i++)
        expect(works(own) && works(any));
    return 0;
}

/* A runtime that nobody but the program has by its handle. */
static int play_local(void)
{
    void *handle, *address = NULL;
    unsigned (*calls)(void) = NULL;
    void *runtime = open_runtimes("12/libcudart.so.12", RTLD_LOCAL);
    expect(runtime);
    *(void **)&calls = dlsym(runtime, "runtime_calls");
    const struct plugin *plugin = open_plugin("plugin-any.so", &handle);
    expect(plugin && !plugin->calls && calls);
    expect(plugin->call(PLUGIN_cudaMalloc, &address, MIB(2), NULL) == 0 && calls() == 1);
    expect(holds("cudaMalloc", MIB(2)));
    return 0;
}

/* Called by a jump, it is called by this program, which names no runtime: there is but one. */
static int play_jump(void)
{
    void *handle, *address = NULL;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin && plugin->jump(&address, MIB(2)) == 0 && plugin->calls() == 1);
    expect(holds("cudaMalloc", MIB(2)));
    return 0;
}

#pragma weak cudaMalloc

static int play_none(void)
{
    void *handle, *address = NULL;
    const struct plugin *plugin = open_plugin("plugin-any.so", &handle);
    expect(plugin && !plugin->calls);
    for (enum plugin_call call = 0; call < PLUGIN_CALLS; call++) {
        void *const handles[] = {RTLD_DEFAULT, RTLD_NEXT, dlopen(NULL, RTLD_LAZY), handle};
        char expected[128];
        snprintf(expected, sizeof expected, "undefined symbol: %s", names[call]);
        for (unsigned i = 0; i < 4; i++) {
            const char *said;
            expect(!dlsym(handles[i], names[call]));
            expect((said = dlerror()) && strstr(said, expected) && !dlerror());
            expect(!dlvsym(handles[i], names[call], "libcudart.so.12"));
            expect(!plugin->look_up(handles[i], names[call]));
            expect(!plugin->look_up_version(handles[i], names[call], "libcudart.so.12"));
        }
        expect(plugin->call(call, &address, MIB(2), NULL) == 3 && !address);
    }
    /* What a weak reference shows, see entry_runtime.c. */
    expect(cudaMalloc && cudaMalloc(&address, MIB(2)) == cudaErrorInitializationError);
    expect(!preload_ledger());
    return 0;
}

/* Who looks up the runtime's function gets that, and not ours. */
static int play_look_up(void)
{
    void *handles[2];
    void *global = open_runtimes("13/libcudart.so.13", RTLD_GLOBAL);
    const struct plugin *one = open_plugin("plugin-12.so", &handles[0]);
    expect(global && one && bare_find_loader(NULL) == 0);
    void *own = open_runtimes("12/libcudart.so.12", RTLD_LOCAL);
    for (enum plugin_call call = 0; call < PLUGIN_CALLS; call++) {
        const char *name = names[call];
        void *first = bare_dlsym(global, name), *second = bare_dlsym(own, name);
        expect(first && second && first != second);
        expect(dlsym(global, name) == first && dlsym(own, name) == second);
        expect(dlsym(RTLD_DEFAULT, name) == first && dlsym(RTLD_NEXT, name) == first);
        expect(dlsym(dlopen(NULL, RTLD_LAZY), name) == first);
        expect(dlsym(handles[0], name) == second);
        expect(one->look_up(RTLD_DEFAULT, name) == first); /* the global scope comes first */
        expect(one->look_up(RTLD_NEXT, name) == second);
        expect(dlvsym(RTLD_DEFAULT, name, "libcudart.so.13") == first);
        expect(!dlvsym(RTLD_DEFAULT, name, "libcudart.so.12"));
        expect(one->look_up_version(RTLD_DEFAULT, name, "libcudart.so.12") == second);
        expect(!dlsym(handles[0], "cudaNoSuchFunction") && dlerror() && !dlerror());
    }
    return 0;
}

/* Where the plug-in's runtime is nobody else's, it is still what the plug-in finds. */
static int play_look_up_local(void)
{
    void *handle, *address = NULL;
    cudaError_t (*function)(void **, size_t) = NULL;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    void *own = open_runtimes("12/libcudart.so.12", RTLD_LOCAL);
    expect(plugin && own && bare_find_loader(NULL) == 0);
    expect(plugin->look_up(RTLD_DEFAULT, "cudaMalloc") == bare_dlsym(own, "cudaMalloc"));
    expect(!dlerror());
    expect(!dlsym(RTLD_DEFAULT, "cudaMalloc") && dlerror());
    *(void **)&function = dlsym(own, "cudaMalloc");
    expect(function(&address, MIB(2)) == 0 && holds("cuMemAlloc_v2", MIB(2)));
    return 0;
}

/* The plug-ins come to lie in each other's place, with their runtimes. */
static int play_reload(void)
{
    void *before = NULL;
    unsigned again = 0;
    for (unsigned i = 0; i < 24; i++) {
        void *handle;
        bool is_one = i / 2 % 2 == 0;
        const struct plugin *plugin =
            open_plugin(is_one ? "plugin-12.so" : "plugin-13.so", &handle);
        void *runtime =
            open_runtimes(is_one ? "12/libcudart.so.12" : "13/libcudart.so.13", RTLD_NOLOAD);
        expect(plugin && runtime && dlclose(runtime) == 0);
        expect(plugin->calls() == 0 && works(plugin));
        again += before == (void *)(uintptr_t)plugin;
        before = (void *)(uintptr_t)plugin;
        expect(dlclose(handle) == 0);
        expect(!open_runtimes("plugin-12.so", RTLD_NOLOAD));
        expect(!open_runtimes("12/libcudart.so.12", RTLD_NOLOAD));
        expect(!open_runtimes("13/libcudart.so.13", RTLD_NOLOAD));
    }
    expect(again > 0); /* or this has tested nothing */
    return 0;
}

/* The one runtime stays loaded while plug-ins for either come and go in one place. */
static int play_replace(void)
{
    expect(open_runtimes("12/libcudart.so.12", RTLD_LOCAL));
    expect(open_runtimes("13/libcudart.so.13", RTLD_LOCAL));
    for (unsigned i = 0; i < 12; i++) {
        void *handle;
        const struct plugin *plugin =
            open_plugin(i % 2 == 0 ? "plugin-12.so" : "plugin-13.so", &handle);
        expect(plugin && works(plugin) && dlclose(handle) == 0);
    }
    return 0;
}

static int play_refused(void)
{
    void *handle, *address = NULL;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin && plugin->call(PLUGIN_cudaMalloc, &address, MIB(2000), NULL) == 2);
    return 0;
}

/* With a runtime that starts with the first call: by name what the program called. */
static int play_start(void)
{
    void *handle, *address = NULL;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin && plugin->call(PLUGIN_cudaFree, &address, 0, NULL) == 0);
    return 0;
}

/* A small one's site is its caller's: the plug-in, not the runtime; and not what is called next by
 * the program itself. */
static int play_small(void)
{
    void *handle, *address = NULL;
    CUdeviceptr own;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin && plugin->call(PLUGIN_cudaMalloc, &address, 1000, NULL) == 0);
    expect(holds("cudaMalloc", 1000));
    struct gpulimit_ledger *ledger = own_ledger();
    const struct gpulimit_site *site = gpulimit_reader_site(ledger, ledger->entries[0].site);
    expect(site && site->native_count == 1);
    expect(strstr(ledger->modules[site->frames[0].file - 1].path, "/plugin-12.so"));
    gpulimit_reader_close(ledger);
    expect(plugin->call(PLUGIN_cudaFree, &address, 0, NULL) == 0);
    expect(cuMemAlloc_v2(&own, MIB(2)) == CUDA_SUCCESS && holds("cuMemAlloc_v2", MIB(2)));
    return 0;
}

/* A large one's stack has the plug-in and its runtime, and nothing of ours between them. */
static int play_large(void)
{
    void *handle, *address = NULL;
    bool has_plugin = false, has_runtime = false;
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin && plugin->call(PLUGIN_cudaMalloc, &address, MIB(2), NULL) == 0);
    struct gpulimit_ledger *ledger = own_ledger();
    const struct gpulimit_site *site = gpulimit_reader_site(ledger, ledger->entries[0].site);
    expect(site && site->native_count >= 3);
    for (unsigned i = 0; i < site->native_count; i++) {
        const char *path = ledger->modules[site->frames[i].file - 1].path;
        has_plugin |= strstr(path, "/plugin-12.so") != NULL;
        has_runtime |= strstr(path, "/libcudart.so.12") != NULL;
        expect(!strstr(path, "libgpulimit"));
    }
    expect(has_plugin && has_runtime);
    gpulimit_reader_close(ledger);
    return 0;
}

static const struct plugin *shared;

static void *use_it(void *argument)
{
    unsigned *failures = argument;
    for (unsigned i = 0; i < 200; i++) {
        void *address = NULL;
        *failures += shared->call(PLUGIN_cudaMalloc, &address, MIB(2), NULL) != 0;
        *failures += shared->call(PLUGIN_cudaFree, &address, 0, NULL) != 0;
    }
    return NULL;
}

static int play_threads(void)
{
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    unsigned failures[THREADS] = {0};
    void *handle;
    shared = open_plugin("plugin-12.so", &handle);
    expect(shared);
    for (unsigned i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, use_it, &failures[i]) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        expect(pthread_join(threads[i], NULL) == 0 && failures[i] == 0);
    expect(shared->calls() == THREADS * 400 && preload_device()->requested_bytes == 0);
    return 0;
}

/* The child has the runtime too, which nobody in it has used. */
static int play_fork(void)
{
    void *handle, *address = NULL;
    expect(open_runtimes("13/libcudart.so.13", RTLD_GLOBAL));
    const struct plugin *plugin = open_plugin("plugin-12.so", &handle);
    expect(plugin);
    pid_t child = fork();
    if (child == 0)
        exit(works(plugin) ? 0 : 1);
    expect(role_wait(child) == 0 && works(plugin));
    child = fork();
    if (child == 0) /* CUDA does not work here, but the call must come back */
        exit(plugin->call(PLUGIN_cudaFree, &address, 0, NULL) == 0 ? 0 : 1);
    expect(role_wait(child) == 0);
    return 0;
}

static const struct plugin *at_exit;

static void call_at_exit(void)
{
    void *address = NULL;
    if (at_exit->call(PLUGIN_cudaMalloc, &address, MIB(2), NULL) != 0 ||
        at_exit->call(PLUGIN_cudaFree, &address, 0, NULL) != 0)
        _exit(1);
}

static int play_exit(void)
{
    void *handle;
    at_exit = open_plugin("plugin-12.so", &handle);
    expect(at_exit && atexit(call_at_exit) == 0);
    return 0;
}

static const struct role roles[] = {
    {"each", play_each},       {"two", play_two},           {"global", play_global},
    {"local", play_local},     {"jump", play_jump},         {"none", play_none},
    {"look up", play_look_up}, {"own", play_look_up_local}, {"reload", play_reload},
    {"replace", play_replace}, {"refused", play_refused},   {"start", play_start},
    {"small", play_small},     {"large", play_large},       {"threads", play_threads},
    {"fork", play_fork},       {"exit", play_exit},         {0}};

/* ---- in the test ---- */

static struct program program;

#define PLAY(_role, ...)                                                                           \
    program_play(&program, _role, PROGRAM_LIST("GPU_LIMIT_MB=1024", ##__VA_ARGS__))

static void test_plays(void **state)
{
    PLAY(*state);
    program_assert_ok(&program);
}

static void test_refusals_have_the_programs_name_for_it(void **state)
{
    (void)state;
    PLAY("refused", "GPU_LIMIT_VERBOSE=1");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "cudaMalloc"));
    assert_null(strstr(program.err, "cuMemAlloc"));
}

static void test_so_do_messages(void **state)
{
    (void)state;
    PLAY("large", "GPU_LIMIT_VERBOSE=4");
    program_assert_ok(&program);
    assert_non_null(strstr(program.err, "cudaMalloc 2 MiB on GPU 0"));
}

static void test_so_has_what_a_runtime_takes_as_it_starts(void **state)
{
    (void)state;
    PLAY("start", "SIMGPU_CONTEXT_MB=64", "GPU_LIMIT_MB=32", "GPU_LIMIT_VERBOSE=1");
    assert_non_null(strstr(program.err, "cudaFree"));
    assert_null(strstr(program.err, "cuDevicePrimaryCtxRetain"));
}

#define CASE(_name, _role)                                                                         \
    {                                                                                              \
        _name, test_plays, NULL, NULL, (void *)(uintptr_t)_role                                    \
    }

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        CASE("every function is called by its name, and counted once", "each"),
        CASE("two plug-ins reach two runtimes", "two"),
        CASE("a plug-in reaches its own runtime past the program's", "global"),
        CASE("a runtime that is nobody's is the one there is", "local"),
        CASE("a call that is a jump reaches the runtime", "jump"),
        CASE("without a runtime none is found, and a call fails", "none"),
        CASE("who looks a function up gets the runtime's", "look up"),
        CASE("who has a runtime of its own finds that", "own"),
        CASE("libraries that are loaded again are looked at again", "reload"),
        CASE("another library in a library's place is another one", "replace"),
        CASE("a small allocation's site is the caller of the runtime", "small"),
        CASE("a large one's stack has nothing of the library's", "large"),
        CASE("threads at once all reach it", "threads"),
        CASE("a child reaches it", "fork"),
        CASE("the end of a program reaches it", "exit"),
        cmocka_unit_test(test_refusals_have_the_programs_name_for_it),
        cmocka_unit_test(test_so_do_messages),
        cmocka_unit_test(test_so_has_what_a_runtime_takes_as_it_starts),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
