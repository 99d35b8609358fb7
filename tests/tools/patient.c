/* SPDX-License-Identifier: MIT
 *
 * A process for gpulimit-stat doctor to look at, and what the doctor has to say of it.
 */
#include "patient.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t patient_process;
char patient_pid[16];
char patient_folder[32];

static void patient_map(const char *name)
{
    char path[128];
    int fd;

    snprintf(path, sizeof(path), "%s/%s", patient_folder, name);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0 ||
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) {
        _exit(1);
    }
}

static void patient_live(const struct patient_looks *looks)
{
    if (looks->has_library) {
        patient_map("libgpulimit.so");
    }
    if (looks->has_driver) {
        patient_map("libcuda.so.580.159");
    }
    if (looks->has_ledger) {
        struct fixture fixture;
        char name[16];

        fixture_open(&fixture, 60);
        fixture_set_identity(&fixture);
        strcpy(fixture.header->library_version, GPULIMIT_VERSION);
        strcpy(fixture.header->limit_text, "0=1G");
        fixture_add_device(&fixture, 0)->denials = 4;
        fixture.devices[0].overhead_bytes = 16 * FIXTURE_MIB;
        fixture.devices[0].truth_source = GPULIMIT_TRUTH_NVML;
        if (looks->change) {
            looks->change(&fixture);
        }
        snprintf(name, sizeof(name), "%d", getpid());
        folder_add(&fixture, name, true);
    }
}

/* A process that has just begun a program has no arguments yet, and no environment. */
static void patient_wait_until_asleep(void)
{
    char path[64];
    char state = '?';

    snprintf(path, sizeof(path), "/proc/%d/stat", patient_process);
    for (int tries = 0; tries < 1000 && state != 'S'; tries++) {
        FILE *file = fopen(path, "re");

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
        fclose(file);
        usleep(state != 'S' ? 5000 : 0);
    }
    assert_int_equal(state, 'S');
}

void patient_start(const struct patient_looks *looks, const char *variable,
                   const char *const words[])
{
    int ready[2];
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    patient_process = fork();
    if (patient_process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        unsetenv("LD_PRELOAD");
        if (variable) {
            putenv((char *)(uintptr_t)variable);
        }
        if (words) {
            execvp(words[0], (char *const *)(uintptr_t)words);
            _exit(1);
        }
        patient_live(looks);
        close(ready[1]);
        for (;;) {
            pause();
        }
    }
    assert_true(patient_process > 0);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 0);
    close(ready[0]);
    patient_wait_until_asleep();
    snprintf(patient_pid, sizeof(patient_pid), "%d", patient_process);
}

void patient_stop(void)
{
    if (patient_process > 0) {
        kill(patient_process, SIGKILL);
        assert_int_equal(waitpid(patient_process, NULL, 0), patient_process);
        patient_process = 0;
    }
}

void patient_expect(int status, const char *const lines[])
{
    struct tool_result result;
    const char *last = NULL;

    TOOL_RUN(&result, "gpulimit-stat", "doctor", "-p", patient_pid);
    for (size_t i = 0; lines[i]; i++) {
        char wanted[512];
        char *end = wanted;

        for (const char *at = lines[i]; *at != '\0'; at++) {
            end += *at == '@' ? sprintf(end, "%s", patient_pid) : sprintf(end, "%c", *at);
        }
        last = strstr(result.out, wanted);
        if (!last) {
            fail_msg("it does not say '%s', but:\n%s", wanted, result.out);
        }
    }
    assert_non_null(last);
    assert_string_equal(strchr(last, '\n'), "\n");
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, status);
    tool_forget(&result);
}

int patient_set_up(void **state)
{
    strcpy(patient_folder, "/tmp/test_doctor.XXXXXX");
    return mkdtemp(patient_folder) ? folder_open(state) : -1;
}

int patient_tear_down(void **state)
{
    static const char *const names[] = {"libgpulimit.so", "libcuda.so.580.159", "sleep"};

    patient_stop();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", patient_folder, names[i]);
        unlink(path);
    }
    return rmdir(patient_folder) == 0 ? folder_close(state) : -1;
}
