/* SPDX-License-Identifier: MIT
 *
 * The folder is opened once, looked at, and from then on known by its descriptor: its name may come
 * to mean another one meanwhile.
 */
#include "report_file.h"

#include "clock.h"
#include "report_sweep.h"

#include <fcntl.h>
#include <stdio.h> /* renameat */
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies a text that must fit, behind which nothing else stands. */
static bool report_file_copy(char *copy, size_t size, struct text *text)
{
    if (text->length >= size)
        return false;
    memcpy(copy, text_string(text), text->length + 1);
    return true;
}

static bool report_file_is_private(int folder)
{
    struct stat status;
    return fstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Opens the folder whose path a text is, and makes it if it is missing. A slash
 * at the end would have a link followed after all. Returns -1 if it will not do. */
static int report_file_open_folder(struct text *path)
{
    while (path->length > 1 && path->bytes[path->length - 1] == '/')
        path->length--;
    (void)mkdir(text_string(path), 0700); /* most often it is there */
    int folder = open(text_string(path), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && !report_file_is_private(folder)) {
        close(folder);
        folder = -1;
    }
    return folder;
}

static int report_file_find_folder(struct text *path, const char *chosen, const char *runtime_dir)
{
    int folder = -1;
    text_init(path);
    if (chosen[0] != '\0') {
        text_add(path, chosen);
        return report_file_open_folder(path);
    }
    if (runtime_dir[0] == '/') {
        text_add(path, runtime_dir);
        text_add(path, "/gpulimit");
        folder = report_file_open_folder(path);
    }
    if (folder < 0) {
        text_init(path);
        text_add(path, "/tmp/gpulimit-");
        text_add_number(path, geteuid());
        folder = report_file_open_folder(path);
    }
    return folder;
}

static void report_file_add_name(struct text *text, unsigned number)
{
    text_add(text, "oom-");
    text_add_number(text, (uint64_t)getpid());
    text_add(text, "-");
    text_add_number(text, number);
    text_add(text, ".json");
}

/* The names of the file, in its folder and as a path. Returns false if that is too long. */
static bool report_file_name(struct report_file *file, struct text *path, unsigned number)
{
    struct text temporary;
    text_add(path, "/");
    size_t name = path->length;
    report_file_add_name(path, number);
    if (!report_file_copy(file->path, sizeof file->path, path))
        return false;
    file->name = file->path + name;
    /* Pids repeat, also at the same time in another namespace. */
    text_init(&temporary);
    text_add(&temporary, ".");
    text_add(&temporary, file->name);
    text_add(&temporary, ".");
    text_add_number(&temporary, clock_ns(CLOCK_REALTIME));
    return report_file_copy(file->temporary, sizeof file->temporary, &temporary);
}

static uint64_t report_file_most(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > REPORT_FILE_MOST)
        return REPORT_FILE_MOST;
    return limit.rlim_cur;
}

bool report_file_begin(struct report_file *file, const char *chosen, const char *runtime_dir,
                       unsigned number)
{
    struct text path;
    file->most_bytes = report_file_most();
    if (file->most_bytes < REPORT_FILE_LEAST || (chosen[0] != '\0' && chosen[0] != '/'))
        return false;
    file->folder = report_file_find_folder(&path, chosen, runtime_dir);
    if (file->folder < 0)
        return false;
    if (chosen[0] == '\0' && number == 1) /* what is in a chosen one is its owner's to keep */
        report_sweep(file->folder);
    file->file = -1;
    if (report_file_name(file, &path, number))
        file->file = openat(file->folder, file->temporary,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->file < 0)
        close(file->folder);
    return file->file >= 0;
}

bool report_file_end(struct report_file *file, bool is_whole)
{
    bool is_kept = close(file->file) == 0 && is_whole &&
                   renameat(file->folder, file->temporary, file->folder, file->name) == 0;
    if (!is_kept)
        (void)unlinkat(file->folder, file->temporary, 0);
    close(file->folder);
    return is_kept;
}

void report_file_remove(const struct report_file *file, unsigned number, uint64_t before_ns)
{
    struct stat status;
    struct text name;
    text_init(&name);
    report_file_add_name(&name, number);
    if (fstatat(file->folder, text_string(&name), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    uint64_t written_ns =
        (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
    if (written_ns < before_ns)
        (void)unlinkat(file->folder, text_string(&name), 0);
}

void report_file_put(const char *path, const struct text *text)
{
    struct stat status;
    if (report_file_most() < text->length)
        return;
    /* Without waiting, and without a write: a pipe would do the one, or kill by the other. */
    int file = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && ftruncate(file, 0) == 0)
        (void)!write(file, text->bytes, text->length);
    close(file);
}
