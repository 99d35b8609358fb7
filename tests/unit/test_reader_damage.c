/* SPDX-License-Identifier: MIT
 *
 * Each check of the reader refuses its damage, with a reason, and so do files that are no ledgers
 * at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpulimit/reader.h"
#include "ledger_fixture.h"

static char test_folder[] = "/tmp/test_reader_damage.XXXXXX";
static char test_path[64];

static enum gpulimit_reader_status test_open(const char *path, char *reason)
{
    struct gpulimit_ledger *untouched = (void *)test_folder;
    struct gpulimit_ledger *ledger = untouched;
    enum gpulimit_reader_status status;

    strcpy(reason, "");
    status = gpulimit_reader_open(path, GPULIMIT_READER_ENTRIES, reason, &ledger);
    if (status == GPULIMIT_READER_OK) {
        gpulimit_reader_close(ledger);
    } else {
        assert_ptr_equal(ledger, untouched);
        assert_string_not_equal(reason, "");
    }
    return status;
}

/* Entry 0 is in use; extents: 0 APIs, 1 and 2 entries, 3 modules, 4 texts, 5 sites. */
static struct gpulimit_entry *test_make(struct fixture *fixture)
{
    struct gpulimit_entry *entries;

    fixture_open(fixture, 60);
    fixture_add_device(fixture, 0);
    entries = fixture_add_entries(fixture, 16);
    fixture_add_entries(fixture, 32);
    fixture_add_sites(fixture);
    fixture_fill_entry(fixture, entries, GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0), 2, 1);
    return entries;
}

struct damage {
    const char *name;
    size_t offset; /* of a 32-bit word of the file */
    uint32_t value;
    const char *reason; /* a part of it */
};

#define IN_HEADER(_member) offsetof(struct gpulimit_header, _member)
#define IN_EXTENT(_number, _member)                                                                \
    (offsetof(struct gpulimit_header, extents) + (_number) * sizeof(struct gpulimit_extent) +      \
     offsetof(struct gpulimit_extent, _member))

static const struct damage damages[] = {
    {"magic", IN_HEADER(magic), 0x21212121, "not a ledger"},
    {"header size 0", IN_HEADER(header_bytes), 0, "header of 0 bytes"},
    {"header without its extents", IN_HEADER(header_bytes), 2983, "header of 2983"},
    {"header over the devices", IN_HEADER(header_bytes), 4097, "header of 4097"},
    {"device size", IN_HEADER(device_bytes), 256, "device records of 256"},
    {"device offset", IN_HEADER(devices_offset), 0xffffff00, "device records"},
    {"entry size", IN_HEADER(entry_bytes), 0, "entries of 0 bytes"},
    {"no kinds", IN_HEADER(kinds), 0, "0 kinds"},
    {"more kinds than room", IN_HEADER(kinds), 17, "17 kinds"},
    {"command size", IN_HEADER(command_bytes), 1025, "command of 1025"},
    {"count mode", IN_HEADER(count_mode), 2, "count mode 2"},
    {"pid", IN_HEADER(pid), 0, "pid 0"},
    {"number of extents", IN_HEADER(extents_used), 65, "65 extents"},
    {"extent in the header", IN_EXTENT(1, offset), 64, "extent 1"},
    {"extent misplaced", IN_EXTENT(1, offset), GPULIMIT_EXTENTS_OFFSET + 129, "extent 1"},
    {"extent beyond the end", IN_EXTENT(1, offset), 0x7fffff00, "extent 1"},
    {"extent far beyond the end", IN_EXTENT(1, offset) + 4, 0xffffffff, "extent 1"},
    {"extent longer than the file", IN_EXTENT(5, count), FIXTURE_SITES + 1, "extent 5"},
    {"extent of sites on texts", IN_EXTENT(4, count), FIXTURE_TEXTS + 1, "on top of another"},
    {"modules on texts", IN_EXTENT(3, count), FIXTURE_MODULES + 1, "on top of another"},
    {"extent of 4 thousand million", IN_EXTENT(1, count), 0xffffffff, "extent 1"},
    {"extent on top of another", IN_EXTENT(1, count), 17, "on top of another"},
};

static void test_each_wrong_figure_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        char reason[GPULIMIT_READER_REASON_BYTES];
        enum gpulimit_reader_status status;
        struct fixture fixture;

        test_make(&fixture);
        memcpy(fixture.image + damages[i].offset, &damages[i].value, sizeof(damages[i].value));
        fixture_write(&fixture, test_path);
        fixture_close(&fixture);
        status = test_open(test_path, reason);
        if (status != GPULIMIT_READER_DAMAGED || !strstr(reason, damages[i].reason)) {
            fail_msg("%s: status %d, %s", damages[i].name, status, reason);
        }
    }
}

static void test_entry_of_nothing_known_is_refused(void **state)
{
    static const uint32_t places[] = {
        GPULIMIT_PLACE(GPULIMIT_KINDS, 0, 0),
        GPULIMIT_PLACE(255, 0, 0),
        GPULIMIT_PLACE(1, 1, 0),
        GPULIMIT_PLACE(1, 16, 0),
        GPULIMIT_PLACE(1, 255, 0),
        GPULIMIT_PLACE(1, 0, 2),
        GPULIMIT_PLACE(1, 0, 65535),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char reason[GPULIMIT_READER_REASON_BYTES];
        struct fixture fixture;

        test_make(&fixture)->place = places[i];
        fixture_write(&fixture, test_path);
        fixture_close(&fixture);
        assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_DAMAGED);
        assert_non_null(strstr(reason, "has an entry"));
    }
}

static void test_other_version_is_told_from_damage(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct fixture fixture;

    (void)state;
    test_make(&fixture);
    fixture.header->version = 2;
    fixture_write(&fixture, test_path);
    fixture_close(&fixture);
    assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_VERSION);
    assert_string_equal(reason, "has format version 2; this program reads version 1");
}

static void test_file_cut_short_anywhere_is_refused(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct fixture fixture;

    (void)state;
    test_make(&fixture);
    fixture_write(&fixture, test_path);
    assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_OK);
    for (size_t size = fixture.size - 1; size > 0; size -= size < 37 ? size : 37) {
        assert_int_equal(truncate(test_path, (off_t)size), 0);
        assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_DAMAGED);
    }
    fixture_close(&fixture);
}

/* Holes: a large file costs its owner nothing, and must cost us nothing either. */
static void test_absurd_number_of_entries_is_refused_at_once(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct fixture fixture;

    (void)state;
    test_make(&fixture);
    fixture.header->extents_used = 3; /* no other in its way */
    fixture.header->extents[2].count = 1u << 25;
    fixture_write(&fixture, test_path);
    fixture_close(&fixture);
    assert_int_equal(truncate(test_path, 1ll << 32), 0);
    assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_DAMAGED);
    assert_non_null(strstr(reason, "claims 33554448 entries"));
}

static void test_ledger_being_created_is_no_damage_until_it_is_old(void **state)
{
    struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 0);
    memset(fixture.header->magic, 0, sizeof(fixture.header->magic));
    for (int is_empty = 0; is_empty < 2; is_empty++) {
        fixture_write(&fixture, test_path);
        assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_UNFINISHED);
        assert_int_equal(utimensat(AT_FDCWD, test_path, long_ago, 0), 0);
        assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_DAMAGED);
        assert_non_null(strstr(reason, "died while creating"));
        fixture.size = 0;
    }
    fixture_close(&fixture);
}

static void test_only_regular_files_are_opened(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct fixture fixture;
    char other[80];

    (void)state;
    test_make(&fixture);
    fixture_write(&fixture, test_path);
    fixture_close(&fixture);
    snprintf(other, sizeof(other), "%s/other", test_folder);

    assert_int_equal(test_open(other, reason), GPULIMIT_READER_GONE);
    assert_int_equal(test_open(test_folder, reason), GPULIMIT_READER_DAMAGED);
    assert_string_equal(reason, "is not a regular file");
    assert_int_equal(symlink(test_path, other), 0);
    assert_int_equal(test_open(other, reason), GPULIMIT_READER_DAMAGED);
    assert_string_equal(reason, "is a symbolic link");
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_int_equal(test_open(other, reason), GPULIMIT_READER_DAMAGED);
    assert_int_equal(unlink(other), 0);
}

static void test_forbidden_file_is_told_from_damage(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct fixture fixture;

    (void)state;
    test_make(&fixture);
    fixture_write(&fixture, test_path);
    fixture_close(&fixture);
    assert_int_equal(chmod(test_path, 0), 0);
    if (geteuid() == 0) {
        assert_int_equal(seteuid(65534), 0); /* root reads everything */
    }
    assert_int_equal(test_open(test_path, reason), GPULIMIT_READER_FORBIDDEN);
    assert_int_equal(seteuid(getuid()), 0);
}

static int test_set_up(void **state)
{
    (void)state;
    if (!mkdtemp(test_folder)) {
        return -1;
    }
    snprintf(test_path, sizeof(test_path), "%s/gpulimit.1", test_folder);
    return 0;
}

static int test_tear_down(void **state)
{
    (void)state;
    unlink(test_path);
    return rmdir(test_folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_wrong_figure_is_refused),
        cmocka_unit_test(test_entry_of_nothing_known_is_refused),
        cmocka_unit_test(test_other_version_is_told_from_damage),
        cmocka_unit_test(test_file_cut_short_anywhere_is_refused),
        cmocka_unit_test(test_absurd_number_of_entries_is_refused_at_once),
        cmocka_unit_test(test_ledger_being_created_is_no_damage_until_it_is_old),
        cmocka_unit_test(test_only_regular_files_are_opened),
        cmocka_unit_test(test_forbidden_file_is_told_from_damage),
    };

    return cmocka_run_group_tests(tests, test_set_up, test_tear_down);
}
