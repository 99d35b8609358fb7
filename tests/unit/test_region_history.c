/* SPDX-License-Identifier: MIT
 *
 * shim/region_history.c: tallies, timelines, events and marks, as they lie in the file. Each test
 * works in a folder of its own.
 */
#include "unit.h"

#include "region.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char *const apis[] = {"cuMemAlloc_v2"};
static char folder[64];
static const unsigned char *file;
static size_t file_bytes;

static int open_region(void **state)
{
    const char *reason;
    (void)state;
    strcpy(folder, "/tmp/gpulimit-test-history-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    return !region_open(folder, "", GPULIMIT_COUNT_PROCESS, apis, 1, &reason);
}

static int close_region(void **state)
{
    char command[128];
    (void)state;
    if (file)
        munmap((void *)(uintptr_t)file, file_bytes);
    file = NULL;
    region_forget();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const struct gpulimit_header *map_file(void)
{
    struct stat status;
    int descriptor = open(region_path(), O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(fstat(descriptor, &status), 0);
    file_bytes = (size_t)status.st_size;
    file = mmap(NULL, file_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_ptr_not_equal(file, MAP_FAILED);
    return (const void *)file;
}

/* The n-th record of a section, from 0; NULL if there are not so many. */
static const void *record(enum gpulimit_section section, uint32_t number, size_t record_bytes)
{
    const struct gpulimit_header *header = file ? (const void *)file : map_file();
    for (uint32_t i = 0; i < atomic_load(&header->extents_used); i++) {
        const struct gpulimit_extent *extent = &header->extents[i];
        if (extent->section != section)
            continue;
        assert_true(extent->offset + extent->count * record_bytes <= file_bytes);
        if (number < extent->count)
            return file + extent->offset + number * record_bytes;
        number -= extent->count;
    }
    return NULL;
}

static void tallies_lie_by_number_however_many_there_are(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= TALLY_MOST; number++) {
        struct tally tally = {.site = number,
                              .device = number % 2,
                              .bytes = 3 * number,
                              .allocations_total = 5,
                              .frees_total = 2,
                              .peak_epoch = 9,
                              .peak_bytes = 4 * number,
                              .peak_count = 4};
        region_put_tally(number, &tally);
    }
    for (uint32_t number = 1; number <= TALLY_MOST; number++) {
        const struct gpulimit_tally *tally =
            record(GPULIMIT_SECTION_TALLIES, number - 1, sizeof *tally);
        assert_non_null(tally);
        assert_int_equal(atomic_load(&tally->sequence), 2);
        assert_int_equal(atomic_load(&tally->site), number);
        assert_int_equal(atomic_load(&tally->device), number % 2);
        assert_int_equal(atomic_load(&tally->bytes), 3 * number);
        assert_int_equal(atomic_load(&tally->peak_bytes), 4 * number);
        assert_int_equal(atomic_load(&tally->peak_epoch), 9);
        assert_int_equal(atomic_load(&tally->peak_count), 4);
        assert_int_equal(atomic_load(&tally->allocations_total), 5);
        assert_int_equal(atomic_load(&tally->frees_total), 2);
    }
}

static void a_device_has_its_timeline_once_it_is_drawn(void **state)
{
    static struct timeline timeline;
    (void)state;
    timeline_note(&timeline, 1000, 64, 128, 0);
    region_put_timeline(3, &timeline, 0);
    timeline_note(&timeline, 1000 + TIMELINE_FIRST_NS, 96, 128, 1);
    region_put_timeline(3, &timeline, 1);
    const struct gpulimit_timeline *drawn = record(GPULIMIT_SECTION_TIMELINES, 0, sizeof *drawn);
    assert_non_null(drawn);
    assert_null(record(GPULIMIT_SECTION_TIMELINES, 1, sizeof *drawn));
    assert_int_equal(drawn->device, 3);
    assert_int_equal(drawn->start_mono_ns, 1000);
    assert_int_equal(atomic_load(&drawn->count), 2);
    assert_int_equal(atomic_load(&drawn->interval_ns), TIMELINE_FIRST_NS);
    assert_int_equal(atomic_load(&drawn->samples[0].highest_bytes), 64);
    assert_int_equal(atomic_load(&drawn->samples[1].highest_bytes), 96);
    assert_int_equal(atomic_load(&drawn->samples[1].denials), 1);
}

static void a_ring_has_the_newest_events(void **state)
{
    (void)state;
    for (uint64_t number = 1; number <= 1000; number++) {
        const struct gpulimit_event event = {.number = number, .bytes = 2 * number, .what = 1};
        region_put_event(&event);
    }
    uint64_t newest = 0, oldest = UINT64_MAX;
    uint32_t place = 0;
    const struct gpulimit_event *event;
    for (; (event = record(GPULIMIT_SECTION_EVENTS, place, sizeof *event)); place++) {
        uint64_t number = atomic_load(&event->number);
        assert_int_equal((number - 1) % 512, place);
        assert_int_equal(atomic_load(&event->bytes), 2 * number);
        newest = number > newest ? number : newest;
        oldest = number < oldest ? number : oldest;
    }
    assert_int_equal(newest, 1000);
    assert_int_equal(oldest, 1000 - place + 1);
}

static void marks_are_written_as_they_come(void **state)
{
    (void)state;
    const struct gpulimit_mark mark = {.number = 1, .text = 7, .charged_bytes = 64};
    region_put_mark(&mark);
    const struct gpulimit_mark *written = record(GPULIMIT_SECTION_MARKS, 0, sizeof *written);
    assert_non_null(written);
    assert_int_equal(atomic_load(&written->number), 1);
    assert_int_equal(atomic_load(&written->text), 7);
    assert_int_equal(atomic_load(&written->charged_bytes), 64);
}

static void a_file_that_may_not_grow_costs_the_history_alone(void **state)
{
    struct rlimit limit, before;
    const struct tally tally = {.site = 1};
    const struct gpulimit_event event = {.number = 1};
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    region_put_tally(1, &tally);
    region_put_event(&event);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_null(record(GPULIMIT_SECTION_TALLIES, 0, sizeof(struct gpulimit_tally)));
    assert_null(record(GPULIMIT_SECTION_EVENTS, 0, sizeof(struct gpulimit_event)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tallies_lie_by_number_however_many_there_are, open_region,
                                        close_region),
        cmocka_unit_test_setup_teardown(a_device_has_its_timeline_once_it_is_drawn, open_region,
                                        close_region),
        cmocka_unit_test_setup_teardown(a_ring_has_the_newest_events, open_region, close_region),
        cmocka_unit_test_setup_teardown(marks_are_written_as_they_come, open_region, close_region),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_grow_costs_the_history_alone,
                                        open_region, close_region),
    };
    return cmocka_run_group_tests_name("region history", tests, NULL, NULL);
}
