/* SPDX-License-Identifier: MIT
 *
 * The starting and judging of program.h.
 */
#include "program.h"

#include "preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *program_preload(const char *name)
{
    static char variables[2][4096];
    char *variable = variables[strcmp(name, "PRELOAD_BARE") == 0];
    const char *value = getenv(name);
    assert_non_null(value);
    snprintf(variable, sizeof variables[0], "LD_PRELOAD=%s", value);
    return variable;
}

const char *program_under_library(void)
{
    return program_preload("PRELOAD_LIBRARY");
}

const char *program_without_library(void)
{
    return program_preload("PRELOAD_BARE");
}

/* In the child: never returns. */
static void program_become(const char *const variables[], const char *const words[])
{
    for (unsigned i = 0; variables[i]; i++) {
        if (strchr(variables[i], '='))
            putenv((char *)(uintptr_t)variables[i]);
        else
            unsetenv(variables[i]);
    }
    execvp(words[0], (char *const *)(uintptr_t)words);
    perror(words[0]);
    _exit(127);
}

static void program_read(int file, char text[PROGRAM_TEXT_BYTES])
{
    ssize_t got = pread(file, text, PROGRAM_TEXT_BYTES - 1, 0);
    close(file);
    assert_in_range(got, 0, PROGRAM_TEXT_BYTES - 2);
    text[got] = '\0';
}

void program_run(struct program *program, const char *const variables[], const char *const words[])
{
    int out = memfd_create("stdout", MFD_CLOEXEC), err = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(out >= 0 && err >= 0);
    fflush(NULL); /* or the child would print it again */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        program_become(variables, words);
    }
    program->status = role_wait(child);
    program_read(out, program->out);
    program_read(err, program->err);
}

void program_play(struct program *program, const char *role, const char *const variables[])
{
    const char *all[32] = {program_under_library()};
    for (unsigned i = 0; variables[i]; i++) {
        assert_in_range(i, 0, 29);
        all[i + 1] = variables[i];
    }
    program_run(program, all, PROGRAM_LIST(PROGRAM_ITSELF, role));
}

void program_assert_ok(const struct program *program)
{
    if (program->status != 0)
        fail_msg("ended with %d; stderr:\n%s", program->status, program->err);
}

unsigned program_lines(const char *text)
{
    unsigned lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

int role_play(const struct role roles[], const char *name)
{
    for (unsigned i = 0; roles[i].name; i++) {
        if (strcmp(roles[i].name, name) == 0)
            return roles[i].play();
    }
    fprintf(stderr, "there is no role called %s\n", name);
    return 127;
}

int role_wait(int child)
{
    int status;
    if (child <= 0 || waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int role_begin(void)
{
    CUdevice device;
    CUcontext context;
    expect(cuInit(0) == CUDA_SUCCESS);
    expect(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
    expect(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    expect(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    return 0;
}
