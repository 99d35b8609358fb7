/* SPDX-License-Identifier: MIT
 *
 * shim/config.c: what is a limit, what is not, and what the error says.
 */
#include "unit.h"

#include "config.h"

#include <string.h>

static struct config config;

static void parse(const char *first, const char *second)
{
    char *environment[] = {(char *)(uintptr_t) "HOME=/", (char *)(uintptr_t)first,
                           (char *)(uintptr_t)second, NULL};
    config_parse(&config, environment);
}

static void assert_limit(const char *variable, uint64_t bytes)
{
    parse(variable, NULL);
    assert_string_equal(text_string(&config.error), "");
    assert_int_equal(config_limit_for(&config, 0, "GPU-aaaa", MIB(8192)), bytes);
}

static void assert_refused(const char *variable, const char *named)
{
    parse(variable, NULL);
    const char *error = text_string(&config.error);
    if (error[0] == '\0')
        fail_msg("%s was accepted", variable);
    if (!strstr(error, named))
        fail_msg("%s: \"%s\" does not name %s", variable, error, named);
    /* One line, and one that says what to write instead. */
    assert_ptr_equal(strchr(error, '\n'), error + strlen(error) - 1);
    assert_non_null(strchr(error, '('));
}

static void test_unset_means_no_limit(void **state)
{
    (void)state;
    parse(NULL, NULL);
    assert_string_equal(text_string(&config.error), "");
    assert_true(config_limit_for(&config, 0, "GPU-aaaa", MIB(8192)) == GPULIMIT_NO_LIMIT);
    assert_int_equal(config.verbose, 1);
    assert_string_equal(config.dir, "/dev/shm");
}

static void test_amounts_are_mebibytes_unless_they_say_otherwise(void **state)
{
    (void)state;
    assert_limit("GPU_LIMIT_MB=1024", MIB(1024));
    assert_limit("GPU_LIMIT_MB=1024M", MIB(1024));
    assert_limit("GPU_LIMIT_MB=1024MB", MIB(1024));
    assert_limit("GPU_LIMIT_MB=1024MiB", MIB(1024));
    assert_limit("GPU_LIMIT_MB=1G", MIB(1024));
    assert_limit("GPU_LIMIT_MB=1.5G", MIB(1536));
    assert_limit("GPU_LIMIT_MB=2T", MIB(2) << 20);
    assert_limit("GPU_LIMIT_MB=512K", 512 * 1024);
    assert_limit("GPU_LIMIT_MB=50%", MIB(4096));
    assert_limit("GPU_LIMIT_MB=12.5%", MIB(1024));
}

static void test_what_is_not_understood_is_an_error_that_names_it(void **state)
{
    static const char *const values[] = {
        "GPU_LIMIT_MB=",
        "GPU_LIMIT_MB=abc",
        "GPU_LIMIT_MB=-1",
        "GPU_LIMIT_MB=0",
        "GPU_LIMIT_MB=1g",
        "GPU_LIMIT_MB=1.G",
        "GPU_LIMIT_MB=.5G",
        "GPU_LIMIT_MB=1 G",
        "GPU_LIMIT_MB=1,5G",
        "GPU_LIMIT_MB=101%",
        "GPU_LIMIT_MB=0%",
        "GPU_LIMIT_MB=1e9",
        "GPU_LIMIT_MB=0x400",
        "GPU_LIMIT_MB=1024 ",
        "GPU_LIMIT_MB=+5",
        "GPU_LIMIT_MB=1G,2G",
        "GPU_LIMIT_MB=0=1G,",
        "GPU_LIMIT_MB=,0=1G",
        "GPU_LIMIT_MB=0=",
        "GPU_LIMIT_MB==1G",
        "GPU_LIMIT_MB=a=1G",
        "GPU_LIMIT_MB=GPU-=1G",
        "GPU_LIMIT_MB=-1=1G",
        "GPU_LIMIT_MB=1G,1=2G",
        "GPU_LIMIT_MB=99999999999999999999999",
    };
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_refused(values[i], "GPU_LIMIT_MB");
    assert_refused("GPU_LIMIT_COUNT=both", "GPU_LIMIT_COUNT");
    assert_refused("GPU_LIMIT_VERBOSE=5", "GPU_LIMIT_VERBOSE");
    assert_refused("GPU_LIMIT_VERBOSE=yes", "GPU_LIMIT_VERBOSE");
    assert_refused("GPU_LIMIT_LOG=stdout", "GPU_LIMIT_LOG");
    assert_refused("GPU_LIMIT_NVML=no", "GPU_LIMIT_NVML");
    assert_refused("GPU_LIMIT_NVML=", "GPU_LIMIT_NVML");
    assert_refused("GPU_LIMIT_STACKS=", "GPU_LIMIT_STACKS");
    assert_refused("GPU_LIMIT_STACKS=some", "GPU_LIMIT_STACKS");
    assert_refused("GPU_LIMIT_STACKS=all,", "GPU_LIMIT_STACKS");
    assert_refused("GPU_LIMIT_STACKS=all,min:", "GPU_LIMIT_STACKS");
    assert_refused("GPU_LIMIT_STACKS=all,min:5%", "GPU_LIMIT_STACKS");
    assert_refused("GPU_LIMIT_STACKS=all,max:1M", "GPU_LIMIT_STACKS");
    assert_string_equal(config.log, "stderr");
    assert_refused("GPU_LIMIT_DIR=shm", "GPU_LIMIT_DIR");
    assert_refused("GPU_LIMIT_REPORT_DIR=reports", "GPU_LIMIT_REPORT_DIR");
    assert_refused("GPU_LIMIT_REPORT_DIR=", "GPU_LIMIT_REPORT_DIR");
    assert_refused("GPU_LIMIT_TERMINATION_LOG=log", "GPU_LIMIT_TERMINATION_LOG");
    assert_refused("GPU_LIMIT_TERMINATION_LOG=", "GPU_LIMIT_TERMINATION_LOG");
    assert_refused("GPU_LIMIT_ON_EXCEED=abort", "GPU_LIMIT_ON_EXCEED");
    assert_refused("GPU_LIMIT_GROUP=team", "GPU_LIMIT_GROUP");
}

static void test_a_misspelt_variable_is_an_error_and_not_no_limit(void **state)
{
    (void)state;
    assert_refused("GPU_LIMIT_MEM=1024", "GPU_LIMIT_MEM");
    assert_refused("GPU_LIMIT_=1", "GPU_LIMIT_");
    parse("GPU_LIMITED=1", NULL);
    assert_string_equal(text_string(&config.error), "");
}

static void test_the_first_error_is_the_one_that_is_told(void **state)
{
    (void)state;
    parse("GPU_LIMIT_MB=abc", "GPU_LIMIT_COUNT=both");
    assert_non_null(strstr(text_string(&config.error), "abc"));
    assert_null(strstr(text_string(&config.error), "both"));
}

static void test_control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    assert_refused("GPU_LIMIT_MB=\x1b[2J\r", "GPU_LIMIT_MB");
    assert_null(strchr(text_string(&config.error), '\x1b'));
}

static void test_nvml_shows_the_limit_unless_told_otherwise(void **state)
{
    (void)state;
    parse(NULL, NULL);
    assert_false(config.nvml_is_real);
    parse("GPU_LIMIT_NVML=limit", NULL);
    assert_false(config.nvml_is_real);
    parse("GPU_LIMIT_NVML=real", NULL);
    assert_true(config.nvml_is_real);
    assert_string_equal(text_string(&config.error), "");
}

static void test_stacks_are_of_large_allocations_unless_told_otherwise(void **state)
{
    (void)state;
    parse(NULL, NULL);
    assert_true(config.has_native_stacks && config.has_python_stacks);
    assert_int_equal(config.stacks_min_bytes, 1 << 20);
    parse("GPU_LIMIT_STACKS=off", NULL);
    assert_false(config.has_native_stacks || config.has_python_stacks);
    parse("GPU_LIMIT_STACKS=native", NULL);
    assert_true(config.has_native_stacks && !config.has_python_stacks);
    parse("GPU_LIMIT_STACKS=python,min:64K", NULL);
    assert_true(!config.has_native_stacks && config.has_python_stacks);
    assert_int_equal(config.stacks_min_bytes, 64 << 10);
    assert_int_equal(config.error.length, 0);
}

static void test_reports_go_where_they_are_sent(void **state)
{
    (void)state;
    parse(NULL, NULL);
    assert_string_equal(config.report_dir, "");
    assert_string_equal(config.runtime_dir, "");
    assert_string_equal(config.termination_log, "");
    parse("GPU_LIMIT_REPORT_DIR=/tmp/reports", "XDG_RUNTIME_DIR=/run/user/1000");
    assert_string_equal(config.report_dir, "/tmp/reports");
    assert_string_equal(config.runtime_dir, "/run/user/1000");
    parse("GPU_LIMIT_REPORT_DIR=none", "GPU_LIMIT_TERMINATION_LOG=/dev/termination-log");
    assert_string_equal(config.report_dir, "none");
    assert_string_equal(config.termination_log, "/dev/termination-log");
    assert_int_equal(config.error.length, 0);
}

/* That is another program's variable: what is no folder there is no error here. */
static void test_a_runtime_folder_that_is_none_is_passed_over(void **state)
{
    static char variable[400] = "XDG_RUNTIME_DIR=/";
    (void)state;
    parse("XDG_RUNTIME_DIR=run", NULL);
    assert_string_equal(config.runtime_dir, "");
    parse("XDG_RUNTIME_DIR=", NULL);
    assert_string_equal(config.runtime_dir, "");
    memset(variable + strlen(variable), 'x', sizeof variable - strlen(variable) - 1);
    parse(variable, NULL);
    assert_string_equal(config.runtime_dir, "");
    assert_int_equal(config.error.length, 0);
}

static void test_devices_have_their_own_limits(void **state)
{
    (void)state;
    parse("GPU_LIMIT_MB=0=1G,GPU-bbbb=512M,MIG-ee=2M,*=25%", NULL);
    assert_string_equal(text_string(&config.error), "");
    assert_int_equal(config_limit_for(&config, 0, "GPU-aaaa", MIB(8192)), MIB(1024));
    assert_int_equal(config_limit_for(&config, 1, "GPU-bbbb-cccc", MIB(8192)), MIB(512));
    assert_int_equal(config_limit_for(&config, 1, "GPU-BBBB-cccc", MIB(8192)), MIB(512));
    /* CUDA calls an instance of a card a card. */
    assert_int_equal(config_limit_for(&config, 1, "GPU-eeee", MIB(8192)), MIB(2));
    assert_int_equal(config_limit_for(&config, 2, "GPU-dddd", MIB(8192)), MIB(2048));
}

static void test_a_device_that_is_not_named_gets_nothing(void **state)
{
    (void)state;
    parse("GPU_LIMIT_MB=0=1G", NULL);
    assert_int_equal(config_limit_for(&config, 1, "GPU-bbbb", MIB(8192)), 0);
}

static void test_the_values_survive_a_change_of_the_environment(void **state)
{
    char variable[] = "GPU_LIMIT_DIR=/tmp/a";
    char *environment[] = {variable, NULL};
    (void)state;
    config_parse(&config, environment);
    memset(variable, 'x', sizeof variable - 1);
    assert_string_equal(config.dir, "/tmp/a");
}

static void test_a_report_goes_to_stderr_or_to_a_json_file(void **state)
{
    (void)state;
    parse(NULL, NULL);
    assert_string_equal(config.report, "");
    parse("GPU_LIMIT_REPORT=stderr", NULL);
    assert_string_equal(text_string(&config.error), "");
    assert_string_equal(config.report, "stderr");
    parse("GPU_LIMIT_REPORT=/tmp/run-%p.json", NULL);
    assert_string_equal(text_string(&config.error), "");
    assert_string_equal(config.report, "/tmp/run-%p.json");
    assert_refused("GPU_LIMIT_REPORT=", "GPU_LIMIT_REPORT");
    assert_refused("GPU_LIMIT_REPORT=yes", "GPU_LIMIT_REPORT");
    assert_refused("GPU_LIMIT_REPORT=.json", "GPU_LIMIT_REPORT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_report_goes_to_stderr_or_to_a_json_file),
        cmocka_unit_test(test_unset_means_no_limit),
        cmocka_unit_test(test_amounts_are_mebibytes_unless_they_say_otherwise),
        cmocka_unit_test(test_what_is_not_understood_is_an_error_that_names_it),
        cmocka_unit_test(test_a_misspelt_variable_is_an_error_and_not_no_limit),
        cmocka_unit_test(test_the_first_error_is_the_one_that_is_told),
        cmocka_unit_test(test_control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(test_nvml_shows_the_limit_unless_told_otherwise),
        cmocka_unit_test(test_stacks_are_of_large_allocations_unless_told_otherwise),
        cmocka_unit_test(test_reports_go_where_they_are_sent),
        cmocka_unit_test(test_a_runtime_folder_that_is_none_is_passed_over),
        cmocka_unit_test(test_devices_have_their_own_limits),
        cmocka_unit_test(test_a_device_that_is_not_named_gets_nothing),
        cmocka_unit_test(test_the_values_survive_a_change_of_the_environment),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
