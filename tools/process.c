/* SPDX-License-Identifier: MIT
 *
 * What /proc tells of one process that matters to a preloaded library.
 */
#include "process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "memory.h"

enum { PROCESS_FILE_MAX = 1 << 20 }; /* an environment may be large */

/* A file of the process's folder in /proc, with a NUL behind it; NULL if it cannot be read. */
static char *process_read(int32_t pid, const char *name, size_t *length)
{
    char path[64];
    char *bytes;
    ssize_t got;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    bytes = memory_check(malloc(PROCESS_FILE_MAX + 1));
    *length = 0;
    while ((got = read(fd, bytes + *length, PROCESS_FILE_MAX - *length)) > 0) {
        *length += (size_t)got;
    }
    close(fd);
    if (got < 0) { /* opened, but it is not ours to read */
        free(bytes);
        return NULL;
    }
    bytes[*length] = '\0';
    return bytes;
}

static void process_read_command(struct process *process)
{
    size_t length;
    char *bytes = process_read(process->pid, "cmdline", &length);

    while (bytes && length > 0 && bytes[length - 1] == '\0') {
        length--;
    }
    for (size_t i = 0; bytes && i < length; i++) {
        bytes[i] = bytes[i] == '\0' ? ' ' : bytes[i];
    }
    process->command = bytes;
}

/* The value of a variable, for the caller to free(); NULL if it is not set. */
static char *process_copy_variable(const char *environment, size_t length, const char *name)
{
    size_t name_length = strlen(name);

    for (size_t at = 0; at < length; at += strlen(environment + at) + 1) {
        if (strncmp(environment + at, name, name_length) == 0 &&
            environment[at + name_length] == '=') {
            return memory_check(strdup(environment + at + name_length + 1));
        }
    }
    return NULL;
}

/* The path of each mapping begins its line's last field: everything from the first slash on. */
static void process_read_line(struct process *process, const char *path)
{
    static const char deleted[] = " (deleted)";
    size_t length = strlen(path);
    bool is_deleted =
        length > strlen(deleted) && strcmp(path + length - strlen(deleted), deleted) == 0;
    char *whole = memory_check(strndup(path, is_deleted ? length - strlen(deleted) : length));
    const char *name = strrchr(whole, '/') + 1;

    process->is_musl |= strncmp(name, "ld-musl", strlen("ld-musl")) == 0;
    if (!process->library && strcmp(name, PROCESS_LIBRARY) == 0) {
        process->library = memory_check(strdup(whole));
        process->is_replaced = is_deleted;
    }
    /* The driver's file is called after its own version: libcuda.so.580.159. */
    if (!process->driver && strncmp(name, "libcuda.so.", strlen("libcuda.so.")) == 0) {
        process->driver = memory_check(strdup(whole));
    }
    free(whole);
}

static void process_read_maps(struct process *process)
{
    char path[64];
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/maps", process->pid);
    file = fopen(path, "re");
    while (file && (length = getline(&line, &size, file)) > 0) {
        const char *slash = strchr(line, '/');

        line[length - 1] = line[length - 1] == '\n' ? '\0' : line[length - 1];
        if (slash) {
            process_read_line(process, slash);
        }
    }
    free(line);
    if (file) {
        fclose(file);
    }
}

/* Whether the program asks for no dynamic linker. One that cannot be read counts as asking. */
static bool process_is_static(int32_t pid)
{
    char path[64];
    ElfW(Ehdr) file = {0};
    bool has_linker = false;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    if (pread(fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file) ||
        memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_phentsize != sizeof(ElfW(Phdr))) {
        has_linker = true; /* of another architecture, or stranger */
    }
    for (unsigned int i = 0; i < file.e_phnum && !has_linker; i++) {
        ElfW(Phdr) header;
        off_t offset = (off_t)(file.e_phoff + i * sizeof(header));

        has_linker = pread(fd, &header, sizeof(header), offset) != (ssize_t)sizeof(header) ||
                     header.p_type == PT_INTERP;
    }
    close(fd);
    return !has_linker;
}

static bool process_is_secure(int32_t pid)
{
    size_t length;
    char *bytes = process_read(pid, "auxv", &length);
    bool is_secure = false;

    for (size_t at = 0; bytes && at + sizeof(ElfW(auxv_t)) <= length; at += sizeof(ElfW(auxv_t))) {
        ElfW(auxv_t) entry;

        memcpy(&entry, bytes + at, sizeof(entry));
        is_secure |= entry.a_type == AT_SECURE && entry.a_un.a_val != 0;
    }
    free(bytes);
    return is_secure;
}

/* Whether the file that LD_PRELOAD names as the library is not there, as the process sees files. */
static bool process_is_missing(int32_t pid, const char *preload)
{
    for (const char *at = preload; *at != '\0';) {
        size_t length = strcspn(at, ": ");
        char *item = memory_check(strndup(at, length));
        const char *name = strrchr(item, '/');
        char *path = memory_print("/proc/%d/root%s", pid, item);
        bool is_missing = name && item[0] == '/' && strcmp(name + 1, PROCESS_LIBRARY) == 0 &&
                          access(path, F_OK) != 0 && errno == ENOENT;

        free(item);
        free(path);
        if (is_missing) {
            return true;
        }
        at += length + (at[length] != '\0');
    }
    return false;
}

void process_look(int32_t pid, struct process *process)
{
    size_t length;
    char *environment;

    *process = (struct process){.pid = pid};
    process->exists = kill(pid, 0) == 0 || errno == EPERM;
    if (!process->exists) {
        return;
    }
    process_read_command(process);
    environment = process_read(pid, "environ", &length);
    if (!environment) {
        return;
    }
    process->is_readable = true;
    process->preload = process_copy_variable(environment, length, "LD_PRELOAD");
    process->folder = process_copy_variable(environment, length, "GPU_LIMIT_DIR");
    process->limit = process_copy_variable(environment, length, "GPU_LIMIT_MB");
    free(environment);
    process_read_maps(process);
    process->is_static = process_is_static(pid);
    process->is_secure = process_is_secure(pid);
    process->is_missing = process->preload && process_is_missing(pid, process->preload);
}

void process_drop(struct process *process)
{
    free(process->command);
    free(process->library);
    free(process->driver);
    free(process->preload);
    free(process->folder);
    free(process->limit);
    *process = (struct process){0};
}
