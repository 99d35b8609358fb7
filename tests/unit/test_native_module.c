/* SPDX-License-Identifier: MIT
 *
 * shim/native_module.c, asked about this program, the C library, and native_chain.c, which is
 * opened at run time.
 *
 *   usage: test_native_module CHAIN CHAIN_WITHOUT_BUILD_ID
 */
#include "unit.h"

#include "finder.h"
#include "native_frames.h"

#include "../cannot.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *chain_path, *bare_path;
static void *chain;

static int open_chain(void **state)
{
    (void)state;
    chain = dlopen(chain_path, RTLD_NOW | RTLD_LOCAL);
    return chain ? 0 : -1;
}

static int close_chain(void **state)
{
    (void)state;
    return dlclose(chain);
}

static void *known(const char *name)
{
    return dlsym(chain, name);
}

/* Runs something that changes the process in a child. Returns whether it said true: then the child
 * kills itself, lest a sanitizer miss the threads that a fork does not have. */
static bool says_true_in_a_child(bool (*run)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (run())
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void test_no_module_holds_the_heap_a_stack_or_nothing(void **state)
{
    struct native_module module;
    void *heap = malloc(1);
    (void)state;
    assert_false(native_module_of((uintptr_t)heap, &module));
    assert_false(native_module_of((uintptr_t)&module, &module));
    assert_false(native_module_of(0, &module));
    assert_false(native_module_of(UINT64_MAX, &module));
    free(heap);
}

static struct native_module module_at(const void *address)
{
    struct native_module module;
    memset(&module, 0xff, sizeof module);
    errno = 4321;
    assert_true(native_module_of((uintptr_t)address, &module));
    assert_int_equal(errno, 4321);
    assert_in_range((uintptr_t)address, module.start, module.end - 1);
    return module;
}

/* What binutils reads out of the file. */
static void assert_build_id_is_the_files(const struct native_module *module, const char *path)
{
    char line[512], expected[2 * NATIVE_BUILD_ID_BYTES + 1] = "", found[sizeof expected] = "";
    snprintf(line, sizeof line, "readelf -n -W '%s'", path);
    FILE *said = popen(line, "r");
    assert_non_null(said);
    while (fgets(line, sizeof line, said)) {
        const char *id = strstr(line, "Build ID: ");
        if (id)
            assert_int_equal(sscanf(id, "Build ID: %64s", expected), 1);
    }
    assert_int_equal(pclose(said), 0);
    for (unsigned i = 0; i < module->build_id_bytes; i++)
        snprintf(found + (size_t)2 * i, 3, "%02x", module->build_id[i]);
    assert_string_equal(found, expected);
}

static void test_a_module_is_known_by_code_and_data_by_path_and_build_id(void **state)
{
    char path[PATH_MAX];
    Dl_info info;
    (void)state;
    assert_non_null(realpath(chain_path, path));
    struct native_module module = module_at(known("chain_outer"));
    struct native_module data = module_at(known("chain_data"));
    assert_memory_equal(&module, &data, sizeof module);
    assert_true(dladdr(known("chain_outer"), &info) != 0);
    assert_int_equal(module.start, (uintptr_t)info.dli_fbase);
    assert_int_equal(module.bias, (uintptr_t)info.dli_fbase);
    assert_string_equal(module.path, path);
    assert_int_equal(module.build_id_bytes, 20);
    assert_build_id_is_the_files(&module, path);
}

static void test_a_module_ends_where_the_next_mapping_begins(void **state)
{
    struct native_module module = module_at(known("chain_outer")), other;
    (void)state;
    bool is_next = native_module_of(module.end, &other);
    assert_true(!is_next || other.start == module.end);
    is_next = native_module_of(module.start - 1, &other);
    assert_true(!is_next || other.end == module.start);
}

static void test_the_main_program_has_a_path_a_bias_and_a_build_id(void **state)
{
    char path[PATH_MAX] = "";
    (void)state;
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    struct native_module module = module_at((void *)native_frames);
    const ElfW(Ehdr) *header = (const void *)(uintptr_t)module.start;
    assert_string_equal(module.path, path);
    assert_int_equal(module.bias, header->e_type == ET_DYN ? module.start : 0);
    assert_build_id_is_the_files(&module, path);
}

static void test_the_c_library_is_a_module(void **state)
{
    (void)state;
    struct native_module module = module_at(dlsym(RTLD_DEFAULT, "backtrace"));
    assert_int_equal(module.path[0], '/');
    assert_build_id_is_the_files(&module, module.path);
}

static void test_a_module_without_a_build_id_has_none(void **state)
{
    (void)state;
    void *handle = dlopen(bare_path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    struct native_module module = module_at(dlsym(handle, "chain_data"));
    assert_int_equal(module.build_id_bytes, 0);
    assert_int_equal(module.build_id[0], 0);
    dlclose(handle);
}

static bool relative_name_gives_a_whole_path(void)
{
    char folder[PATH_MAX], *name;
    struct native_module module;
    dlclose(chain); /* the loader would know it again, by the other name */
    if (!realpath(chain_path, folder))
        return false;
    name = strrchr(folder, '/');
    *name++ = '\0';
    char relative[NAME_MAX + 3];
    snprintf(relative, sizeof relative, "./%s", name);
    void *handle = chdir(folder) == 0 ? dlopen(relative, RTLD_NOW) : NULL;
    name[-1] = '/';
    return handle && chdir("/") == 0 &&
           native_module_of((uintptr_t)dlsym(handle, "chain_data"), &module) &&
           strcmp(module.path, folder) == 0;
}

static void test_a_module_opened_by_a_relative_name_has_its_whole_path(void **state)
{
    (void)state;
    assert_true(says_true_in_a_child(relative_name_gives_a_whole_path));
}

/* Opens a copy of the object that lies so deep that its path is too long. */
static bool long_path_keeps_its_end(const char *folder)
{
    static char path[PATH_MAX], command[4 * PATH_MAX];
    struct native_module module;
    int length = snprintf(path, sizeof path, "%s/%0200d/%0200d/%0200d", folder, 1, 2, 3);
    snprintf(command, sizeof command, "mkdir -p '%s' && cp '%s' '%s/chain.so'", path, chain_path,
             path);
    if (system(command) != 0)
        return false;
    snprintf(path + length, sizeof path - (size_t)length, "/chain.so");
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    bool is_kept = handle && native_module_of((uintptr_t)dlsym(handle, "chain_data"), &module) &&
                   strlen(module.path) == NATIVE_PATH_BYTES - 1 &&
                   strcmp(module.path, path + strlen(path) - (NATIVE_PATH_BYTES - 1)) == 0;
    return handle && dlclose(handle) == 0 && is_kept;
}

static void test_of_a_path_that_is_too_long_the_end_is_kept(void **state)
{
    char folder[] = "/tmp/gpulimit-test-frames-XXXXXX", command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    bool is_kept = long_path_keeps_its_end(folder);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    assert_true(is_kept);
}

static bool finds_the_chain(void)
{
    struct native_module module;
    alarm(20); /* for it would hang */
    bool is_found = native_module_of((uintptr_t)known("chain_outer"), &module);
    void *again = dlopen(bare_path, RTLD_NOW | RTLD_LOCAL);
    return is_found && again && dlclose(again) == 0;
}

static bool is_over;

static void *find_until_it_is_over(void *argument)
{
    struct native_module module;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        native_module_of((uintptr_t)argument, &module);
    return NULL;
}

static void test_a_child_that_was_forked_amid_this_finds_and_opens_objects(void **state)
{
    pthread_t thread;
    (void)state;
    if (!finder_is_there()) {
        CANNOT_BE_SEEN("the C library cannot find an object without a lock");
        return;
    }
    __atomic_store_n(&is_over, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&thread, NULL, find_until_it_is_over, known("chain_outer")), 0);
    bool is_right = true;
    for (int i = 0; i < 100 && is_right; i++)
        is_right = says_true_in_a_child(finds_the_chain);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_right);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_module_holds_the_heap_a_stack_or_nothing),
        cmocka_unit_test(test_a_module_is_known_by_code_and_data_by_path_and_build_id),
        cmocka_unit_test(test_a_module_ends_where_the_next_mapping_begins),
        cmocka_unit_test(test_the_main_program_has_a_path_a_bias_and_a_build_id),
        cmocka_unit_test(test_the_c_library_is_a_module),
        cmocka_unit_test(test_a_module_without_a_build_id_has_none),
        cmocka_unit_test(test_a_module_opened_by_a_relative_name_has_its_whole_path),
        cmocka_unit_test(test_a_child_that_was_forked_amid_this_finds_and_opens_objects),
        cmocka_unit_test(test_of_a_path_that_is_too_long_the_end_is_kept),
    };
    if (argc < 3) {
        fprintf(stderr, "usage: test_native_module CHAIN CHAIN_WITHOUT_BUILD_ID\n");
        return 2;
    }
    chain_path = argv[1];
    bare_path = argv[2];
    return cmocka_run_group_tests_name("native_module", tests, open_chain, close_chain);
}
