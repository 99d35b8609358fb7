/* SPDX-License-Identifier: MIT
 *
 * A program that has nothing to do with CUDA, and prints what a library preloaded into it might
 * have changed. Never instrumented. Ends with the status given as its first argument.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_mapped(const char *name)
{
    char line[1024];
    unsigned lines = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof line, maps))
        lines += strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    printf("mappings of %s: %u\n", name, lines);
}

static void print_threads(void)
{
    unsigned threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks))
        threads += task->d_name[0] != '.';
    closedir(tasks);
    printf("threads: %u\n", threads);
}

static void print_descriptors(void)
{
    for (int number = 0; number < 1024; number++) {
        char link[64], target[512];
        snprintf(link, sizeof link, "/proc/self/fd/%d", number);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = '\0';
        printf("descriptor %d: %s\n", number, target);
    }
}

static void print_signals(void)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0)
            continue;
        if (action.sa_handler != SIG_DFL || sigismember(&blocked, number))
            printf("signal %d is handled, ignored or blocked\n", number);
    }
}

int main(int count, char **words)
{
    mode_t mask = umask(0);
    umask(mask);
    printf("umask: %03o\n", (unsigned)mask);
    print_descriptors();
    print_mapped("libcuda");
    print_mapped("libnvidia");
    print_threads();
    print_signals();
    return count > 1 ? atoi(words[1]) : 0;
}
