/* SPDX-License-Identifier: MIT
 *
 * gpulimit-stat doctor: what it finds wrong with a machine and with processes, and that it finds
 * nothing wrong where nothing is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cannot.h"
#include "patient.h"
#include "schema_check.h"

#define STAT "gpulimit-stat"

/* ---- a machine ---- */

static void test_empty_machine_is_well(void **state)
{
    struct tool_result result;
    char wanted[256];

    (void)state;
    TOOL_RUN(&result, STAT, "doctor");
    snprintf(wanted, sizeof(wanted), "ok   folder: %s can be written, ", folder_get_path());
    assert_int_equal(strncmp(result.out, wanted, strlen(wanted)), 0);
    assert_non_null(strstr(result.out,
                           "\nok   ledgers: 0 of running processes, 0 of ended ones, "
                           "0 left by killed ones\n"
                           "     Nothing has used CUDA under the library here. To start "
                           "something: gpulimit-run -m 1G -- COMMAND\n"
                           "All is well, but nothing runs under the library now.\n"));
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_missing_folder_is_wrong(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "doctor", "--ledger-dir", "/nonexistent", "--ledger-dir", "/dev/null");
    assert_non_null(strstr(result.out, "FAIL folder: /nonexistent cannot be opened: No such file"));
    assert_non_null(strstr(result.out, "FAIL folder: /dev/null is no folder\n"));
    assert_non_null(strstr(result.out, "\n2 things are wrong.\n"));
    assert_null(strstr(result.out, "ledgers:")); /* nobody has looked for any */
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 1);
    tool_forget(&result);
}

static void test_a_folder_that_anybody_may_empty_is_worth_knowing(void **state)
{
    struct tool_result result;

    (void)state;
    assert_int_equal(chmod(folder_get_path(), 0777), 0);
    TOOL_RUN(&result, STAT, "doctor");
    assert_non_null(strstr(result.out, "\nwarn folder: in /"));
    assert_non_null(strstr(result.out, " every user can remove everybody's ledgers\n"
                                       "     Keep that to their owners: chmod +t /"));
    assert_non_null(strstr(result.out, "\nNothing is wrong; 1 thing is worth knowing.\n"));
    assert_int_equal(result.status, 0);
    tool_forget(&result);
    assert_int_equal(chmod(folder_get_path(), 01777), 0);
    TOOL_RUN(&result, STAT, "doctor");
    assert_null(strstr(result.out, "warn"));
    tool_forget(&result);
    assert_int_equal(chmod(folder_get_path(), 0700), 0);
}

/* Root may look in spite of the mode, unless what it starts cannot have that right. For all that
 * this test starts from here on. */
static bool test_may_lose_roots_rights(void)
{
    return geteuid() != 0 || (prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0 &&
                              prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0) == 0);
}

static void test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(void **state)
{
    struct tool_result result;

    (void)state;
    if (!test_may_lose_roots_rights()) {
        CANNOT_BE_SEEN("root's rights cannot be given up here");
        return;
    }
    assert_int_equal(chmod(folder_get_path(), 0300), 0);
    TOOL_RUN(&result, STAT, "doctor");
    assert_int_equal(chmod(folder_get_path(), 0700), 0);
    assert_non_null(strstr(result.out, " can be written, "));
    assert_non_null(strstr(result.out, " cannot be listed by this user: Permission denied\n"));
    assert_null(strstr(result.out, "ledgers:"));
    assert_non_null(strstr(result.out, "\n1 thing is wrong.\n"));
    assert_int_equal(result.status, 1);
    tool_forget(&result);
}

static void test_ledgers_of_the_dead_are_explained(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    folder_add(&fixture, "1", false);
    TOOL_RUN(&result, STAT, "doctor");
    assert_non_null(strstr(result.out, "1 left by killed ones\n     New processes remove those "));
    assert_non_null(strstr(result.out, "Their last figures: gpulimit-stat -a\nAll is well, but "));
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_running_processes_are_told_in_short(void **state)
{
    static const struct patient_looks looks = {
        .has_library = true, .has_driver = true, .has_ledger = true};
    struct tool_result result;
    char wanted[128];

    (void)state;
    patient_start(&looks, NULL, NULL);
    TOOL_RUN(&result, STAT, "doctor");
    snprintf(wanted, sizeof(wanted), "\nok   %s process: runs under its limit\nAll is well.\n",
             patient_pid);
    assert_non_null(strstr(result.out, wanted));
    assert_non_null(strstr(result.out, "ledgers: 1 of running processes"));
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

static void test_a_damaged_ledger_is_told(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->version = 99;
    folder_add(&fixture, "1", false);
    TOOL_RUN(&result, STAT, "doctor");
    assert_non_null(strstr(result.out, "/gpulimit.1 has format version 99"));
    assert_non_null(strstr(result.out, "\nNothing is wrong; 1 thing is worth knowing.\n"));
    assert_int_equal(result.status, 0);
    tool_forget(&result);
}

/* ---- processes that are well ---- */

static void test_process_under_its_limit_is_well(void **state)
{
    static const struct patient_looks looks = {
        .has_library = true, .has_driver = true, .has_ledger = true};
    char library[128];
    char ledger[128];

    (void)state;
    patient_start(&looks, NULL, NULL);
    snprintf(library, sizeof(library), "ok   @ library: %s/libgpulimit.so is loaded\n",
             patient_folder);
    snprintf(ledger, sizeof(ledger), "ok   @ ledger: %s/gpulimit.@\n", folder_get_path());
    PATIENT_EXPECT(
        0, "ok   @ process: runs: ", library, ledger,
        "ok   @ version: library and gpulimit-stat are both " GPULIMIT_VERSION "\n",
        "ok   @ limit: 1024M on GPU 0 (GPU_LIMIT_MB=0=1G; counted is what the driver holds "
        "for the process)\n",
        "ok   @ overhead: 16M on GPU 0, by NVML's figure for the process\n",
        "ok   @ hooks: allocations pass through the library: 3 so far, and 4 refused\n",
        "All is well.\n");
}

static void test_change_much(struct fixture *fixture)
{
    strcpy(fixture->header->library_version, "0.0.9");
    fixture->header->limit_text[0] = '\0';
    fixture->header->entries_unlisted = 12;
    strcpy(fixture->header->unknown_names[0], "cuMemHoard");
    strcpy(fixture->header->unknown_names[1], "cuMemAlloc@14000");
    fixture->devices[0].allocations_total = 0;
    fixture->devices[0].denials = 0;
}

static void test_things_worth_knowing_are_no_failure(void **state)
{
    static const struct patient_looks looks = {
        .has_library = true, .has_driver = true, .has_ledger = true, .change = test_change_much};

    (void)state;
    patient_start(&looks, NULL, NULL);
    PATIENT_EXPECT(0,
                   "warn @ version: the library is 0.0.9, gpulimit-stat is " GPULIMIT_VERSION "\n",
                   "warn @ limit: none: GPU_LIMIT_MB was not set, so nothing is refused\n",
                   "warn @ hooks: no allocation has passed through the library yet\n",
                   "warn @ functions: the driver is newer than the library, which does not know: "
                   "cuMemHoard, cuMemAlloc",
                   "warn @ entries: 12 live allocations are counted, but not listed",
                   "Nothing is wrong; 5 things are worth knowing.\n");
}

static void test_process_before_its_first_cuda_call(void **state)
{
    static const struct patient_looks looks = {.has_library = true};

    (void)state;
    patient_start(&looks, NULL, NULL);
    PATIENT_EXPECT(0, "warn @ ledger: none yet: the process has not loaded the CUDA driver\n",
                   "Nothing is wrong; 1 thing is worth knowing.\n");
}

/* ---- processes that are not ---- */

/* This test's own environment, and so the children's, names no folder: theirs is /dev/shm. */
static void test_ledger_in_another_folder(void **state)
{
    static const struct patient_looks looks = {.has_library = true, .has_driver = true};

    (void)state;
    patient_start(&looks, NULL, NULL);
    PATIENT_EXPECT(0, "warn @ ledger: none here: the process keeps its own in /dev/shm\n",
                   "     Look there: gpulimit-stat doctor -p @ --ledger-dir /dev/shm\n",
                   "Nothing is wrong; 1 thing is worth knowing.\n");
}

static void test_driver_but_no_ledger_where_it_should_be(void **state)
{
    static const struct patient_looks looks = {.has_library = true, .has_driver = true};
    struct tool_result result;

    (void)state;
    patient_start(&looks, NULL, NULL);
    TOOL_RUN(&result, STAT, "doctor", "-p", patient_pid, "--ledger-dir", "/dev/shm");
    assert_non_null(
        strstr(result.out, " ledger: none, although the process has loaded the CUDA driver\n"));
    assert_int_equal(result.status, 1);
    tool_forget(&result);
}

static void test_process_without_the_library_is_told_how_to_start(void **state)
{
    (void)state;
    patient_start(NULL, NULL, (const char *const[]){"sleep", "100", NULL});
    PATIENT_EXPECT(
        1,
        "FAIL @ library: not loaded: LD_PRELOAD was not set when the process was started\n"
        "     Start it with: gpulimit-run -m 1G -- sleep 100\n",
        "1 thing is wrong.\n");
}

static void test_another_librarys_preload_is_named(void **state)
{
    (void)state;
    patient_start(NULL, "LD_PRELOAD=libm.so.6", (const char *const[]){"sleep", "100", NULL});
    PATIENT_EXPECT(1, "FAIL @ library: not loaded: LD_PRELOAD was 'libm.so.6' when", "1 thing is ");
}

static void test_preload_of_a_file_that_is_not_there(void **state)
{
    (void)state;
    patient_start(NULL, "LD_PRELOAD=/nonexistent/libgpulimit.so",
                  (const char *const[]){"sh", "-c", "exec 2>&-; exec sleep 100", NULL});
    PATIENT_EXPECT(
        1,
        "FAIL @ library: not loaded: LD_PRELOAD is '/nonexistent/libgpulimit.so', but the "
        "process sees no such file\n",
        "1 thing is wrong.\n");
}

static void test_static_program_is_recognised(void **state)
{
    const char *program = getenv("STATIC_SLEEPER");

    (void)state;
    if (!program) {
        CANNOT_BE_SEEN("libc's archive for static programs is not installed");
        return;
    }
    patient_start(NULL, NULL, (const char *const[]){program, NULL});
    PATIENT_EXPECT(1, "FAIL @ library: not loaded: the program is linked statically with libc",
                   "1 thing is wrong.\n");
}

/* A program that runs with another group than its caller's. Only root can arrange and see that. */
static void test_set_gid_program_is_recognised(void **state)
{
    char path[64];
    char command[128];

    (void)state;
    if (geteuid() != 0) {
        CANNOT_BE_SEEN("only root can make a set-gid program of another group");
        return;
    }
    snprintf(path, sizeof(path), "%s/sleep", patient_folder);
    snprintf(command, sizeof(command), "cp \"$(command -v sleep)\" %s", path);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a fixed command */
    assert_int_equal(chown(path, 0, 1), 0);
    assert_int_equal(chmod(path, 02755), 0);
    patient_start(NULL, NULL, (const char *const[]){path, "100", NULL});
    if (system("findmnt -n -o OPTIONS -T /tmp | grep -q nosuid") == 0) { /* NOLINT(cert-env33-c) */
        patient_stop();
        CANNOT_BE_SEEN("/tmp is mounted nosuid");
        return;
    }
    PATIENT_EXPECT(1, "FAIL @ library: not loaded: the program runs set-uid, set-gid",
                   "1 thing is wrong.\n");
}

static void test_processes_that_are_gone(void **state)
{
    struct tool_result result;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture.header->pid = 999999991;
    folder_add(&fixture, "1", false);
    TOOL_RUN(&result, STAT, "doctor", "-p", "999999991,999999992");
    assert_non_null(strstr(result.out, "FAIL 999999991 process: is gone without a word"));
    assert_non_null(strstr(result.out, "FAIL 999999992 process: there is no such process\n"));
    assert_int_equal(result.status, 1);
    tool_forget(&result);
}

/* ---- forms ---- */

static void test_json_has_every_finding(void **state)
{
    struct tool_result result;
    json_t *object;
    const json_t *finding;

    (void)state;
    patient_start(NULL, NULL, (const char *const[]){"sleep", "100", NULL});
    TOOL_RUN(&result, STAT, "doctor", "--json", "-p", patient_pid);
    schema_check("doctor", result.out);
    object = json_loads(result.out, 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "schema")), "gpulimit.doctor/1");
    assert_true(json_is_false(json_object_get(object, "is_well")));
    assert_int_equal(json_array_size(json_object_get(object, "findings")), 4);
    finding = json_array_get(json_object_get(object, "findings"), 0);
    assert_true(json_is_null(json_object_get(finding, "pid")));
    assert_true(json_is_null(json_object_get(finding, "advice")));
    finding = json_array_get(json_object_get(object, "findings"), 3);
    assert_string_equal(json_string_value(json_object_get(finding, "level")), "fail");
    assert_string_equal(json_string_value(json_object_get(finding, "check")), "library");
    assert_int_equal(json_integer_value(json_object_get(finding, "pid")), patient_process);
    assert_true(json_is_string(json_object_get(finding, "text")));
    assert_true(json_is_string(json_object_get(finding, "advice")));
    json_decref(object);
    assert_int_equal(result.status, 1);
    tool_forget(&result);
}

static void test_further_words_are_refused(void **state)
{
    struct tool_result result;

    (void)state;
    TOOL_RUN(&result, STAT, "doctor", "5");
    assert_int_equal(result.status, 2);
    assert_non_null(strstr(result.err, "doctor takes no further words, '5'"));
    tool_forget(&result);
}

#define TEST_CASE(_case) cmocka_unit_test_setup_teardown(_case, patient_set_up, patient_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_CASE(test_empty_machine_is_well),
        TEST_CASE(test_missing_folder_is_wrong),
        TEST_CASE(test_a_folder_that_anybody_may_empty_is_worth_knowing),
        TEST_CASE(test_ledgers_of_the_dead_are_explained),
        TEST_CASE(test_running_processes_are_told_in_short),
        TEST_CASE(test_a_damaged_ledger_is_told),
        TEST_CASE(test_process_under_its_limit_is_well),
        TEST_CASE(test_things_worth_knowing_are_no_failure),
        TEST_CASE(test_process_before_its_first_cuda_call),
        TEST_CASE(test_ledger_in_another_folder),
        TEST_CASE(test_driver_but_no_ledger_where_it_should_be),
        TEST_CASE(test_process_without_the_library_is_told_how_to_start),
        TEST_CASE(test_another_librarys_preload_is_named),
        TEST_CASE(test_preload_of_a_file_that_is_not_there),
        TEST_CASE(test_static_program_is_recognised),
        TEST_CASE(test_set_gid_program_is_recognised),
        TEST_CASE(test_processes_that_are_gone),
        TEST_CASE(test_json_has_every_finding),
        TEST_CASE(test_further_words_are_refused),
        TEST_CASE(test_a_folder_that_cannot_be_listed_is_not_taken_for_empty), /* the last */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
