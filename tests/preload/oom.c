/* SPDX-License-Identifier: MIT
 *
 * The reading of oom.h.
 */
#include "oom.h"

#include "schema_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct program oom_program;
char oom_base[64], oom_folder[80], oom_variable[128];
char oom_text[OOM_TEXT_BYTES];
json_t *oom_report;

static int files_open(void)
{
    int count = 0;
    for (int file = 0; file < 1024; file++)
        count += fcntl(file, F_GETFD) >= 0;
    return count;
}

int oom_refused(uint64_t bytes)
{
    CUdeviceptr address;
    int open_before = files_open();
    errno = 0;
    expect(cuMemAlloc_v2(&address, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
    expect(errno == 0);
    expect(files_open() == open_before);
    expect(cuMemAlloc_v2(&address, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
    return 0;
}

int oom_hold(void)
{
    CUdeviceptr address;
    for (volatile unsigned i = 0; i < 3; i++)
        expect(cuMemAlloc_v2(&address, MIB(100)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, MIB(50)) == CUDA_SUCCESS);
    expect(cuMemAlloc_v2(&address, 1000) == CUDA_SUCCESS);
    expect(cuMemAllocAsync(&address, MIB(5), NULL) == CUDA_SUCCESS);
    return 0;
}

int oom_play_refused(void)
{
    expect(role_begin() == 0 && oom_hold() == 0);
    return oom_refused(MIB(700));
}

int oom_set_up(void **state)
{
    (void)state;
    snprintf(oom_base, sizeof oom_base, "/tmp/test_oom_report.XXXXXX");
    if (!mkdtemp(oom_base))
        return 1;
    snprintf(oom_folder, sizeof oom_folder, "%s/reports", oom_base);
    snprintf(oom_variable, sizeof oom_variable, "GPU_LIMIT_REPORT_DIR=%s", oom_folder);
    return 0;
}

int oom_tear_down(void **state)
{
    char command[128];
    (void)state;
    json_decref(oom_report);
    oom_report = NULL;
    snprintf(command, sizeof command, "rm -r %s", oom_base);
    return system(command); /* NOLINT: a folder of our own */
}

unsigned oom_files(const char *path)
{
    unsigned count = 0;
    DIR *list = opendir(path);
    assert_non_null(list);
    for (struct dirent *file; (file = readdir(list)) != NULL;)
        count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
    closedir(list);
    return count;
}

const char *oom_path(unsigned number)
{
    static char path[512];
    char end[16];
    DIR *list = opendir(oom_folder);
    assert_non_null(list);
    snprintf(end, sizeof end, "-%u.json", number);
    path[0] = '\0';
    for (struct dirent *file; (file = readdir(list)) != NULL;) {
        size_t length = strlen(file->d_name);
        if (length > strlen(end) && strcmp(file->d_name + length - strlen(end), end) == 0)
            snprintf(path, sizeof path, "%s/%s", oom_folder, file->d_name);
    }
    closedir(list);
    return path;
}

void oom_read(const char *path)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t got = fread(oom_text, 1, sizeof oom_text - 1, file);
    fclose(file);
    assert_true(got < sizeof oom_text - 1);
    oom_text[got] = '\0';
}

json_int_t oom_number(const char *object, const char *key)
{
    const json_t *value =
        json_object_get(object ? json_object_get(oom_report, object) : oom_report, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

const char *oom_text_at(const char *object, const char *key)
{
    const json_t *value =
        json_object_get(object ? json_object_get(oom_report, object) : oom_report, key);
    return json_string_value(value);
}

/* All that holds something is what is in use. */
static void assert_sums(void)
{
    json_int_t sum = oom_number("others", "bytes") + oom_number("without_site", "bytes") +
                     oom_number(NULL, "idle_bytes") + oom_number(NULL, "under_way_bytes") +
                     oom_number(NULL, "overhead_bytes");
    json_int_t by_kind = oom_number(NULL, "under_way_bytes") + oom_number(NULL, "overhead_bytes");
    json_int_t count = oom_number("others", "count") + oom_number("without_site", "count");
    json_t *site, *kind;
    const char *name;
    size_t i;
    json_array_foreach(json_object_get(oom_report, "live_top"), i, site)
    {
        sum += json_integer_value(json_object_get(site, "bytes"));
        count += json_integer_value(json_object_get(site, "count"));
    }
    json_object_foreach(json_object_get(json_object_get(oom_report, "usage"), "by_kind"), name,
                        kind)
    {
        by_kind += json_integer_value(json_object_get(kind, "bytes"));
    }
    assert_int_equal(sum, oom_number("usage", "used_bytes"));
    assert_int_equal(by_kind, oom_number("usage", "used_bytes"));
    assert_int_equal(count, oom_number("usage", "live_allocations"));
}

void oom_load(unsigned number)
{
    struct stat status;
    const char *path = oom_path(number);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_true(status.st_size <= 256 << 10);
    oom_read(path);
    schema_check("oom", oom_text);
    json_decref(oom_report);
    oom_report = json_loads(oom_text, 0, NULL);
    assert_non_null(oom_report);
    assert_sums();
}

bool oom_has_hint(const char *code)
{
    json_t *hint;
    size_t i;
    json_array_foreach(json_object_get(oom_report, "hints"), i, hint)
    {
        if (strcmp(json_string_value(json_object_get(hint, "code")), code) == 0)
            return true;
    }
    return false;
}

size_t oom_frames(const json_t *place)
{
    return json_array_size(json_object_get(place, "native_frames"));
}

void oom_play(const char *role, const char *first, const char *second)
{
    assert_int_equal(oom_tear_down(NULL), 0);
    assert_int_equal(oom_set_up(NULL), 0);
    PLAY(role, first, second);
    program_assert_ok(&oom_program);
    oom_load(1);
}
