/* SPDX-License-Identifier: MIT
 *
 * Runs a tool as a user would, and keeps what it said; and a folder of ledgers for it to look at.
 */
#include "tool_run.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOOL_OUTPUT_MAX = 1 << 20, FOLDER_LOCKS_MAX = 16 };

static char folder_path[64];
static int folder_locks[FOLDER_LOCKS_MAX];
static int folder_lock_count;

static void tool_check(bool is_ok, const char *what)
{
    if (!is_ok) {
        perror(what);
        abort();
    }
}

/* In the child: never returns. */
static void tool_become(const char *const words[])
{
    const char *folder = getenv("TOOLS_FOLDER");
    char path[512];

    snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", words[0]);
    execv(path, (char *const *)(uintptr_t)words);
    perror(path);
    _exit(99);
}

static int tool_wait(pid_t child)
{
    int status;

    tool_check(waitpid(child, &status, 0) == child, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Reads up to two streams until both have ended. */
static void tool_read_all(const int fds[2], char *texts[2])
{
    struct pollfd polls[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    size_t lengths[2] = {0, 0};

    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        tool_check(poll(polls, 2, -1) > 0, "poll");
        for (int i = 0; i < 2; i++) {
            ssize_t got = -1;

            if (polls[i].fd < 0 || polls[i].revents == 0) {
                continue;
            }
            tool_check(lengths[i] < TOOL_OUTPUT_MAX - 1, "too much output");
            got = read(polls[i].fd, texts[i] + lengths[i], TOOL_OUTPUT_MAX - 1 - lengths[i]);
            if (got > 0) {
                lengths[i] += (size_t)got;
                texts[i][lengths[i]] = '\0';
            } else { /* a terminal whose last user left says EIO */
                close(polls[i].fd);
                polls[i].fd = -1;
            }
        }
    }
}

void tool_run(const char *const words[], struct tool_result *result)
{
    int out[2];
    int err[2];
    pid_t child;

    result->out = calloc(1, TOOL_OUTPUT_MAX);
    result->err = calloc(1, TOOL_OUTPUT_MAX);
    tool_check(result->out && result->err && pipe(out) == 0 && pipe(err) == 0, "tool_run");
    child = fork();
    tool_check(child >= 0, "fork");
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        for (int i = 0; i < 2; i++) {
            close(out[i]);
            close(err[i]);
        }
        tool_become(words);
    }
    close(out[1]);
    close(err[1]);
    tool_read_all((const int[]){out[0], err[0]}, (char *[]){result->out, result->err});
    result->status = tool_wait(child);
}

static void tool_leave_out(char *text, char unwanted)
{
    char *end = text;

    for (; *text != '\0'; text++) {
        if (*text != unwanted) {
            *end++ = *text;
        }
    }
    *end = '\0';
}

void tool_run_on_terminal(unsigned short rows, unsigned short columns, const char *const words[],
                          struct tool_result *result)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    int terminal;
    pid_t child;

    result->out = calloc(1, TOOL_OUTPUT_MAX);
    result->err = NULL;
    tool_check(result->out != NULL, "tool_run");
    child = forkpty(&terminal, NULL, NULL, &size);
    tool_check(child >= 0, "forkpty");
    if (child == 0) {
        tool_become(words);
    }
    tool_read_all((const int[]){terminal, -1}, (char *[]){result->out, NULL});
    tool_leave_out(result->out, '\r');
    result->status = tool_wait(child);
}

void tool_forget(struct tool_result *result)
{
    free(result->out);
    free(result->err);
}

int tool_interrupt(const char *const words[], int signal)
{
    char byte;
    int out[2];
    int status;
    pid_t child;

    tool_check(pipe(out) == 0, "pipe");
    child = fork();
    tool_check(child >= 0, "fork");
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        tool_become(words);
    }
    close(out[1]);
    tool_check(read(out[0], &byte, 1) == 1, "tool_interrupt: no output");
    if (signal == SIGPIPE) {
        close(out[0]); /* nobody reads any more: the tool's next write gets the signal */
        return tool_wait(child);
    }
    kill(child, signal);
    status = tool_wait(child);
    close(out[0]);
    return status;
}

int folder_open(void **state)
{
    (void)state;
    strcpy(folder_path, "/tmp/test_tools.XXXXXX");
    tool_check(mkdtemp(folder_path) != NULL, "mkdtemp");
    setenv("GPU_LIMIT_DIR", folder_path, 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    return 0;
}

int folder_close(void **state)
{
    DIR *folder = opendir(folder_path);
    const struct dirent *entry;

    (void)state;
    while (folder_lock_count > 0) {
        close(folder_locks[--folder_lock_count]);
    }
    tool_check(folder != NULL, folder_path);
    while ((entry = readdir(folder))) {
        unlinkat(dirfd(folder), entry->d_name, 0); /* "." and ".." stay */
    }
    closedir(folder);
    return rmdir(folder_path);
}

const char *folder_get_path(void)
{
    return folder_path;
}

void folder_add(struct fixture *fixture, const char *name, bool is_live)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/gpulimit.%s", folder_path, name);
    fixture_write(fixture, path);
    fixture_close(fixture);
    if (is_live) {
        tool_check(folder_lock_count < FOLDER_LOCKS_MAX, "too many live ledgers");
        folder_locks[folder_lock_count++] = fixture_lock(path);
    }
}

void folder_add_nvml(const char *library)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", folder_path);
    unlink(path);
    tool_check(library && symlink(library, path) == 0, path);
    setenv("LD_LIBRARY_PATH", folder_path, 1);
}
