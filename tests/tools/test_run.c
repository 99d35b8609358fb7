/* SPDX-License-Identifier: MIT
 *
 * gpulimit-run: the environment it gives, the library it finds, what it refuses, and its statuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool_run.h"

#define RUN "gpulimit-run"

static const char *test_library; /* a harmless one */

static void test_copy(const char *from, const char *to)
{
    static char bytes[16 << 20];
    FILE *file = fopen(from, "re");
    size_t size;

    assert_non_null(file);
    size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    file = fopen(to, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(to, 0755), 0);
}

static void test_options_become_the_environment(void **state)
{
    struct tool_result result;
    char expected[512];

    (void)state;
    TOOL_RUN(
        &result, RUN, "--lib", test_library, "-m", "0=1G,1=50%", "--count=allocations", "--verbose",
        "2", "--log", "/tmp/%p.log", "--ledger-dir", "/tmp", "--", "sh", "-c",
        "echo $GPU_LIMIT_MB $GPU_LIMIT_COUNT $GPU_LIMIT_VERBOSE $GPU_LIMIT_LOG $GPU_LIMIT_DIR; "
        "echo $LD_PRELOAD");
    snprintf(expected, sizeof(expected), "0=1G,1=50%% allocations 2 /tmp/%%p.log /tmp\n%s\n",
             test_library);
    assert_string_equal(result.out, expected);
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_what_is_not_asked_for_is_left_alone(void **state)
{
    struct tool_result result;

    (void)state;
    setenv("GPU_LIMIT_MB", "77", 1);
    TOOL_RUN(&result, RUN, "--lib", test_library, "sh", "-c",
             "echo $GPU_LIMIT_MB ${GPU_LIMIT_COUNT-unset}");
    assert_string_equal(result.out, "77 unset\n");
    tool_forget(&result);
    unsetenv("GPU_LIMIT_MB");
}

static void test_nvtx_tells_the_library_unless_a_profiler_has_it(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, RUN, "--lib", test_library, "printenv", "NVTX_INJECTION64_PATH");
    assert_string_equal(result.out, "libgpulimit.so\n");
    tool_forget(&result);
    setenv("NVTX_INJECTION64_PATH", "/x/libprofiler.so", 1);
    TOOL_RUN(&result, RUN, "--lib", test_library, "printenv", "NVTX_INJECTION64_PATH");
    assert_string_equal(result.out, "/x/libprofiler.so\n");
    tool_forget(&result);
    unsetenv("NVTX_INJECTION64_PATH");
}

static void test_commands_own_options_are_its_own(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, RUN, "--lib", test_library, "sh", "-c", "echo $0 $1", "-m", "--help");
    assert_string_equal(result.out, "-m --help\n");
    tool_forget(&result);
}

static void test_preloads_are_joined_ours_first_and_once(void **state)
{
    static const struct {
        const char *old, *after; /* what stands behind the library */
    } joins[] = {
        {"/x/libother.so", ":/x/libother.so"},
        {"/x/a.so /x/b.so", ":/x/a.so /x/b.so"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++) {
        struct tool_result result;
        char script[256];
        char expected[1024];

        /* A shell sets it for the inner run alone; that these do not exist is said on stderr. */
        snprintf(script, sizeof(script),
                 "LD_PRELOAD='%s' exec \"$TOOLS_FOLDER/" RUN "\" --lib \"$0\" printenv LD_PRELOAD",
                 joins[i].old);
        snprintf(expected, sizeof(expected), "%s%s\n", test_library, joins[i].after);
        TOOL_RUN(&result, RUN, "--lib", test_library, "sh", "-c", script, test_library);
        assert_string_equal(result.out, expected);
        assert_int_equal(result.status, 0);
        tool_forget(&result);
    }
}

static void test_nested_run_does_not_add_it_again(void **state)
{
    const char *options = getenv("ASAN_OPTIONS");
    struct tool_result result;
    char expected[512];

    (void)state;
    /* In such a build the inner run insists on its own runtime as the first library. */
    snprintf(expected, sizeof(expected), "%s:verify_asan_link_order=0", options ? options : "");
    setenv("ASAN_OPTIONS", expected, 1);
    TOOL_RUN(&result, RUN, "--lib", test_library, "-m", "1G", "sh", "-c",
             "exec \"$TOOLS_FOLDER/" RUN
             "\" --lib \"$0\" -m 512M sh -c 'echo $LD_PRELOAD $GPU_LIMIT_MB'",
             test_library);
    snprintf(expected, sizeof(expected), "%s 512M\n", test_library);
    assert_string_equal(result.out, expected);
    tool_forget(&result);
}

static void test_status_is_the_commands_or_as_env_has_it(void **state)
{
    static const struct {
        const char *words[3];
        int status;
    } runs[] = {
        {{"sh", "-c", "exit 42"}, 42},
        {{"sh", "-c", "kill -TERM $$"}, 128 + 15},
        {{"true"}, 0},
        {{"/nonexistent/program"}, 127},
        {{"no-such-program-anywhere"}, 127},
        {{"/tmp"}, 126},
        {{NULL}, 125},
        {{"--frobnicate"}, 125},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        const char *const *words = runs[i].words;
        struct tool_result result;

        tool_run(
            (const char *const[]){RUN, "--lib", test_library, words[0], words[1], words[2], NULL},
            &result);
        assert_int_equal(result.status, runs[i].status);
        assert_int_equal(result.err[0] != '\0', runs[i].status >= 125 && runs[i].status <= 127);
        tool_forget(&result);
    }
}

static void test_nonsense_is_refused_with_an_example(void **state)
{
    static const char *const options[][2] = {
        {"-m", ""},          {"-m", "abc"},        {"-m", "-1"},       {"-m", "1G,"},
        {"-m", "0="},        {"-m", "=1G"},        {"-m", "1 G"},      {"-m", "1e9"},
        {"-m", "lots"},      {"--count", "bytes"}, {"--verbose", "5"}, {"--verbose", ""},
        {"--verbose", "11"},
    };
    static const char *const fine[] = {"1",   "1024",      "512M", "1.5G",
                                       "50%", "0=1G,1=2G", "*=1G", "GPU-5a=1T"};

    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        struct tool_result result;

        TOOL_RUN(&result, RUN, "--lib", test_library, options[i][0], options[i][1], "echo", "ran");
        assert_int_equal(result.status, 125);
        assert_string_equal(result.out, "");
        assert_non_null(strstr(result.err, options[i][0]));
        tool_forget(&result);
    }
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        struct tool_result result;

        TOOL_RUN(&result, RUN, "--lib", test_library, "-m", fine[i], "echo", "ran");
        assert_string_equal(result.out, "ran\n");
        tool_forget(&result);
    }
}

static const char *const test_places[] = {"lib", "lib64", "shim"};

static void test_library_is_found_beside_the_program(void **state)
{
    char *tools = strdup(getenv("TOOLS_FOLDER"));
    struct tool_result result;
    char path[512];

    (void)state;
    assert_int_equal(chdir(folder_get_path()), 0);
    assert_int_equal(mkdir("bin", 0755), 0);
    snprintf(path, sizeof(path), "%s/" RUN, tools);
    test_copy(path, "bin/" RUN);
    snprintf(path, sizeof(path), "%s/bin", folder_get_path());
    setenv("TOOLS_FOLDER", path, 1);
    TOOL_RUN(&result, RUN, "true");
    assert_int_equal(result.status, 125);
    assert_non_null(strstr(result.err, "--lib PATH"));
    tool_forget(&result);
    for (size_t i = 3; i-- > 0;) { /* the last place first: each is found before those behind it */
        if (strcmp(test_places[i], getenv("TOOLS_LIBDIR")) == 0)
            continue; /* the one that the build is configured for comes before all others */
        assert_int_equal(mkdir(test_places[i], 0755), 0);
        snprintf(path, sizeof(path), "%s/libgpulimit.so", test_places[i]);
        test_copy(test_library, path);
        snprintf(path, sizeof(path), "%s/%s/libgpulimit.so\n", folder_get_path(), test_places[i]);
        TOOL_RUN(&result, RUN, "printenv", "LD_PRELOAD");
        assert_string_equal(result.out, path);
        tool_forget(&result);
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/libgpulimit.so", test_places[i]);
        unlink(path);
        rmdir(test_places[i]);
    }
    unlink("bin/" RUN);
    rmdir("bin");
    setenv("TOOLS_FOLDER", tools, 1);
    free(tools);
    assert_int_equal(chdir("/"), 0);
}

static void test_path_that_preload_cannot_hold_is_refused(void **state)
{
    static const char *const names[] = {"a:b.so", "a b.so"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tool_result result;
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder_get_path(), names[i]);
        test_copy(test_library, path);
        TOOL_RUN(&result, RUN, "--lib", path, "echo", "ran");
        assert_int_equal(result.status, 125);
        assert_string_equal(result.out, "");
        assert_non_null(strstr(result.err, "a colon or a blank"));
        tool_forget(&result);
    }
}

static int test_set_up(void **state)
{
    test_library = getenv("HARMLESS_LIBRARY");
    setenv("PATH", "/usr/bin:/bin",
           1); /* a folder there that we may not enter would make "not found" 126 */
    return test_library ? folder_open(state) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_become_the_environment),
        cmocka_unit_test(test_what_is_not_asked_for_is_left_alone),
        cmocka_unit_test(test_nvtx_tells_the_library_unless_a_profiler_has_it),
        cmocka_unit_test(test_commands_own_options_are_its_own),
        cmocka_unit_test(test_preloads_are_joined_ours_first_and_once),
        cmocka_unit_test(test_nested_run_does_not_add_it_again),
        cmocka_unit_test(test_status_is_the_commands_or_as_env_has_it),
        cmocka_unit_test(test_nonsense_is_refused_with_an_example),
        cmocka_unit_test(test_library_is_found_beside_the_program),
        cmocka_unit_test(test_path_that_preload_cannot_hold_is_refused),
    };

    return cmocka_run_group_tests(tests, test_set_up, folder_close);
}
