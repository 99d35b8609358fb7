/* SPDX-License-Identifier: MIT
 *
 * What the reader makes of good ledgers: identity, counters, entries over several extents, and
 * records that are being written or were left half-written. Damage is test_reader_damage.c's, life
 * and death test_reader_liveness.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpulimit/reader.h"
#include "ledger_fixture.h"

static struct gpulimit_ledger *test_read(const struct fixture *fixture)
{
    char reason[GPULIMIT_READER_REASON_BYTES] = "";
    struct gpulimit_ledger *ledger = NULL;

    fixture_write(fixture, fixture_path);
    if (gpulimit_reader_open(fixture_path, GPULIMIT_READER_ENTRIES, reason, &ledger) !=
        GPULIMIT_READER_OK) {
        fail_msg("%s", reason);
    }
    return ledger;
}

static void test_identity_and_counters_are_read(void **state)
{
    struct gpulimit_ledger *ledger;
    struct gpulimit_device *device;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    device = fixture_add_device(&fixture, 3);
    device->denials = 7;
    device->truth_source = GPULIMIT_TRUTH_NVML;
    device->hidden_bytes = FIXTURE_MIB;
    strcpy(fixture.header->notebook, "lab3.ipynb");
    fixture.header->count_mode = GPULIMIT_COUNT_ALLOCATIONS;
    ledger = test_read(&fixture);

    assert_int_equal(ledger->pid, 4121);
    assert_int_equal(ledger->owner_uid, getuid());
    assert_int_equal(ledger->count_mode, GPULIMIT_COUNT_ALLOCATIONS);
    assert_string_equal(ledger->path, fixture_path);
    assert_string_equal(ledger->notebook, "lab3.ipynb");
    assert_string_equal(ledger->library_version, "0.1.0");
    assert_int_equal(ledger->argument_count, 2);
    assert_string_equal(ledger->arguments[0], "python");
    assert_string_equal(ledger->arguments[1], "train.py");
    assert_int_equal(ledger->device_count, 2);
    assert_int_equal(ledger->devices[1].gpu_index, 3);
    assert_int_equal(ledger->devices[1].denials, 7);
    assert_int_equal(ledger->devices[1].limit_bytes, 1024 * FIXTURE_MIB);
    assert_int_equal(ledger->devices[1].by_kind[GPULIMIT_KIND_LINEAR].bytes, 64 * FIXTURE_MIB);
    assert_string_equal(gpulimit_reader_truth_name(ledger->devices[1].truth_source), "nvml");
    assert_int_equal(ledger->devices[1].hidden_bytes, FIXTURE_MIB);
    assert_false(ledger->devices[1].is_torn);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_strings_that_fill_their_field_are_ended(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    memset(fixture_add_device(&fixture, 0)->gpu_uuid, 'u', 48);
    memset(fixture.header->notebook, 'n', sizeof(fixture.header->notebook));
    memset(fixture.header->boot_id, 'b', sizeof(fixture.header->boot_id));
    memset(fixture.header->command, 'c', sizeof(fixture.header->command));
    fixture.header->command_bytes = sizeof(fixture.header->command);
    ledger = test_read(&fixture);

    assert_int_equal(strlen(ledger->devices[0].gpu_uuid), 48);
    assert_int_equal(strlen(ledger->notebook), 256);
    assert_int_equal(strlen(ledger->boot_id), 40);
    assert_int_equal(ledger->argument_count, 1);
    assert_int_equal(strlen(ledger->arguments[0]), 1024);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_empty_arguments_are_arguments(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_set_command(&fixture, "sh\0\0-c\0", 7);
    ledger = test_read(&fixture);

    assert_int_equal(ledger->argument_count, 3);
    assert_string_equal(ledger->arguments[1], "");
    assert_string_equal(ledger->arguments[2], "-c");
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_entries_are_found_in_every_extent(void **state)
{
    static const uint32_t counts[] = {512, 1024, 2048, 4096};
    struct gpulimit_ledger *ledger;
    struct fixture fixture;
    uint32_t filled = 0;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 2);
    for (size_t extent = 0; extent < 4; extent++) {
        struct gpulimit_entry *entries = fixture_add_entries(&fixture, counts[extent]);

        for (uint32_t slot = 0; slot < counts[extent]; slot += 3) {
            uint32_t place = GPULIMIT_PLACE(GPULIMIT_KIND_ASYNC, 2, 1);

            fixture_fill_entry(&fixture, &entries[slot], place, 2, 1);
            entries[slot].address = ++filled;
        }
    }
    ledger = test_read(&fixture);

    assert_int_equal(ledger->entry_count, filled);
    for (uint32_t i = 0; i < filled; i++) {
        assert_int_equal(ledger->entries[i].address, i + 1);
        assert_int_equal(ledger->entries[i].kind, GPULIMIT_KIND_ASYNC);
        assert_int_equal(ledger->devices[ledger->entries[i].device].gpu_index, 2);
        assert_string_equal(gpulimit_reader_api_name(ledger, ledger->entries[i].api),
                            "cuMemAllocAsync");
    }
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_summary_leaves_entries_alone(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *ledger;
    struct gpulimit_entry *entries;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    entries = fixture_add_entries(&fixture, 8);
    fixture_fill_entry(&fixture, entries, GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0), 2, 1);
    fixture_write(&fixture, fixture_path);

    assert_int_equal(gpulimit_reader_open(fixture_path, GPULIMIT_READER_SUMMARY, reason, &ledger),
                     GPULIMIT_READER_OK);
    assert_int_equal(ledger->entry_count, 0);
    assert_int_equal(ledger->device_count, 1);
    assert_string_equal(gpulimit_reader_api_name(ledger, 0), "");
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_later_writers_sections_kinds_and_header_are_accepted(void **state)
{
    struct gpulimit_ledger *ledger;
    struct gpulimit_entry *entries;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    fixture.header->header_bytes += 64;
    fixture.header->kinds = GPULIMIT_KINDS + 2;
    fixture.devices[0].truth_source = GPULIMIT_TRUTHS;
    entries = fixture_add_entries(&fixture, 8);
    fixture_fill_entry(&fixture, entries, GPULIMIT_PLACE(GPULIMIT_KINDS + 1, 0, 0), 2, 1);
    fixture_add_entries(&fixture, 4);
    fixture.header->extents[2].section = 99;
    fixture.header->extents[2].count = 256; /* of one byte, for all we know */
    ledger = test_read(&fixture);

    assert_int_equal(ledger->entry_count, 1);
    assert_string_equal(gpulimit_reader_kind_name(ledger->entries[0].kind), "unknown");
    assert_int_equal(ledger->devices[0].truth_source, GPULIMIT_TRUTH_OFF);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_unknown_functions_are_read_where_the_header_has_them(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    ledger = test_read(&fixture);
    assert_int_equal(ledger->unknown_count, 0);
    gpulimit_reader_close(ledger);

    memset(fixture.header->unknown_names[0], 'x', GPULIMIT_API_BYTES); /* and no NUL */
    strcpy(fixture.header->unknown_names[2], "cuMemHoard");            /* another thread is at 1 */
    ledger = test_read(&fixture);
    assert_int_equal(ledger->unknown_count, 2);
    assert_int_equal(strlen(ledger->unknown_names[0]), GPULIMIT_API_BYTES);
    assert_string_equal(ledger->unknown_names[1], "cuMemHoard");
    gpulimit_reader_close(ledger);

    /* A writer of before they were appended: what lies there is not its. */
    fixture.header->header_bytes = GPULIMIT_HEADER_BYTES_MIN;
    ledger = test_read(&fixture);
    assert_int_equal(ledger->unknown_count, 0);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_half_written_records_of_a_dead_writer_are_counted(void **state)
{
    struct gpulimit_ledger *ledger;
    struct gpulimit_entry *entries;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0)->sequence = 5;
    entries = fixture_add_entries(&fixture, 8);
    for (int slot = 0; slot < 3; slot++) {
        fixture_fill_entry(&fixture, &entries[slot], GPULIMIT_PLACE(1, 0, 0), 2, 1);
    }
    entries[1].sequence = 3;
    ledger = test_read(&fixture);

    assert_true(ledger->devices[0].is_torn);
    assert_int_equal(ledger->devices[0].charged_bytes, 64 * FIXTURE_MIB);
    assert_int_equal(ledger->entry_count, 2);
    assert_int_equal(ledger->entries_torn, 1);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

/* A file of nothing but torn entries, whose writer lives, costs a bounded time. */
static void test_many_torn_records_do_not_hold_up_the_reader(void **state)
{
    struct gpulimit_ledger *ledger;
    struct gpulimit_entry *entries;
    struct timespec before;
    struct timespec after;
    struct fixture fixture;
    void *page;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_set_identity(&fixture);
    fixture_add_device(&fixture, 0)->sequence = 1;
    entries = fixture_add_entries(&fixture, 8192);
    for (int slot = 0; slot < 8192; slot++) {
        entries[slot].sequence = 1;
    }
    fixture_write(&fixture, fixture_path);
    page = fixture_map(fixture_path);
    clock_gettime(CLOCK_MONOTONIC, &before);
    ledger = test_read(&fixture);
    clock_gettime(CLOCK_MONOTONIC, &after);
    munmap(page, FIXTURE_PAGE);

    assert_int_equal(ledger->state, GPULIMIT_STATE_LIVE);
    assert_int_equal(ledger->entries_torn, 8192);
    assert_true(after.tv_sec - before.tv_sec <= 2); /* patience once, not once a record */
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

struct test_writer {
    struct gpulimit_device *device;
    struct gpulimit_entry *entries;
    _Atomic bool is_over;
};

/* Writes as region.h prescribes: all figures of a record are the same number, so a mixed copy
 * shows. */
static void *test_write_all_the_while(void *data)
{
    struct test_writer *writer = data;

    for (uint32_t number = 1; !writer->is_over; number++) {
        struct gpulimit_device *device = writer->device;
        struct gpulimit_entry *entry = &writer->entries[number % 4];

        atomic_store_explicit(&device->sequence, device->sequence + 1, memory_order_relaxed);
        atomic_store_explicit(&device->charged_bytes, number, memory_order_release);
        atomic_store_explicit(&device->requested_bytes, number, memory_order_release);
        atomic_store_explicit(&device->by_kind[15].count, number, memory_order_release);
        atomic_store_explicit(&device->sequence, device->sequence + 1, memory_order_release);

        atomic_store_explicit(&entry->sequence, entry->sequence + 1, memory_order_relaxed);
        atomic_store_explicit(&entry->place, GPULIMIT_PLACE(1, 0, 0), memory_order_release);
        atomic_store_explicit(&entry->address, number, memory_order_release);
        atomic_store_explicit(&entry->owner, number, memory_order_release);
        atomic_store_explicit(&entry->sequence, entry->sequence + 1, memory_order_release);
        if (number % 64 == 0) {
            usleep(1);
        }
    }
    return NULL;
}

static void test_records_being_written_are_read_whole(void **state)
{
    enum { READS = 3000 };
    struct test_writer writer = {0};
    struct fixture fixture;
    unsigned char *bytes;
    pthread_t thread;
    int fd;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_set_identity(&fixture);
    fixture_add_device(&fixture, 0)->requested_bytes = 64 * FIXTURE_MIB;
    fixture.devices[0].by_kind[15].count = 64 * FIXTURE_MIB;
    fixture_add_entries(&fixture, 512);
    fixture_write(&fixture, fixture_path);
    fd = open(fixture_path, O_RDWR | O_CLOEXEC);
    bytes = mmap(NULL, fixture.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(bytes, MAP_FAILED);
    writer.device = (void *)(bytes + GPULIMIT_DEVICES_OFFSET);
    writer.entries = (void *)(bytes + fixture.header->extents[1].offset);
    assert_int_equal(pthread_create(&thread, NULL, test_write_all_the_while, &writer), 0);

    for (int read = 0; read < READS; read++) {
        char reason[GPULIMIT_READER_REASON_BYTES];
        struct gpulimit_ledger *ledger;

        assert_int_equal(
            gpulimit_reader_read(fd, fixture_path, GPULIMIT_READER_ENTRIES, reason, &ledger),
            GPULIMIT_READER_OK);
        assert_false(ledger->devices[0].is_torn);
        assert_int_equal(ledger->devices[0].charged_bytes, ledger->devices[0].requested_bytes);
        assert_int_equal(ledger->devices[0].charged_bytes, ledger->devices[0].by_kind[15].count);
        assert_int_equal(ledger->entries_torn, 0);
        for (uint32_t i = 0; i < ledger->entry_count; i++) {
            assert_int_equal(ledger->entries[i].address, ledger->entries[i].owner);
        }
        gpulimit_reader_close(ledger);
    }
    writer.is_over = true;
    pthread_join(thread, NULL);
    munmap(bytes, fixture.size);
    close(fd);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_and_counters_are_read),
        cmocka_unit_test(test_strings_that_fill_their_field_are_ended),
        cmocka_unit_test(test_empty_arguments_are_arguments),
        cmocka_unit_test(test_entries_are_found_in_every_extent),
        cmocka_unit_test(test_summary_leaves_entries_alone),
        cmocka_unit_test(test_later_writers_sections_kinds_and_header_are_accepted),
        cmocka_unit_test(test_unknown_functions_are_read_where_the_header_has_them),
        cmocka_unit_test(test_half_written_records_of_a_dead_writer_are_counted),
        cmocka_unit_test(test_many_torn_records_do_not_hold_up_the_reader),
        cmocka_unit_test(test_records_being_written_are_read_whole),
    };

    return cmocka_run_group_tests(tests, fixture_make_path, fixture_remove_path);
}
