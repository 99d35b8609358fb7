/* SPDX-License-Identifier: MIT
 *
 * report/run_report.c: what the holders of a report hold adds up to what is held, whatever the
 * figures; the JSON stays within its bound; the text for people fits a screen.
 */
#include "unit.h"

#include "report/run_report.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct writer writer;
static struct text text;
static char written[REPORT_BYTES_MAX + 1];

static const char *const command[] = {"python3", "train.py"};
static const struct report_head head = {.version = "1.2.3",
                                        .pid = 4121,
                                        .uid = 1000,
                                        .state = "exited",
                                        .command = command,
                                        .command_count = 2,
                                        .limit_text = "1024",
                                        .start_time_ns = 1796044621 * UINT64_C(1000000000),
                                        .end_time_ns = 1796044746 * UINT64_C(1000000000)};

static uint64_t sum(const struct report_holders *holders)
{
    uint64_t bytes = holders->others_bytes + holders->idle_bytes + holders->overhead_bytes;
    for (unsigned i = 0; i < holders->site_count; i++)
        bytes += holders->sites[i].bytes;
    return bytes;
}

static void assert_ranked(const struct report_holders *holders)
{
    assert_true(holders->site_count <= REPORT_SITES);
    for (unsigned i = 1; i < holders->site_count; i++)
        assert_true(holders->sites[i - 1].bytes >= holders->sites[i].bytes);
}

static void in_whatever_order_sites_come_the_largest_stay_and_all_add_up(void **state)
{
    static const unsigned steps[] = {1, 7, 12, 24}; /* each runs through 1 to 24, of 25 */
    (void)state;
    for (size_t order = 0; order < sizeof steps / sizeof steps[0]; order++) {
        struct report_holders holders = {.bytes = MIB(400), .overhead_bytes = MIB(60)};
        for (unsigned i = 1; i < 25; i++)
            report_add_site(&holders, "train.py:1 step", MIB(i * steps[order] % 25), 1);
        report_settle(&holders);
        assert_int_equal(holders.site_count, REPORT_SITES);
        assert_ranked(&holders);
        assert_int_equal(holders.sites[0].bytes, MIB(24));
        assert_int_equal(holders.sites[9].bytes, MIB(15));
        assert_int_equal(holders.others, 14);
        assert_int_equal(holders.others_bytes, MIB(105));
        assert_int_equal(holders.idle_bytes, MIB(40));
        assert_int_equal(sum(&holders), MIB(400));
    }
}

static void of_sites_that_hold_as_much_the_first_stays_first(void **state)
{
    struct report_holders holders = {.bytes = 3};
    (void)state;
    report_add_site(&holders, "first", 1, 1);
    report_add_site(&holders, "nothing", 0, 1);
    report_add_site(&holders, "second", 1, 1);
    report_settle(&holders);
    assert_int_equal(holders.site_count, 2);
    assert_string_equal(holders.sites[0].where, "first");
    assert_string_equal(holders.sites[1].where, "second");
    assert_int_equal(holders.idle_bytes, 1);
}

static void where_parts_are_more_than_the_whole_the_smallest_lose(void **state)
{
    struct report_holders holders = {.bytes = 100, .overhead_bytes = 30};
    (void)state;
    report_add_site(&holders, "large", 60, 1);
    report_add_site(&holders, "small", 20, 1);
    report_add_site(&holders, "smaller", 10, 1);
    report_settle(&holders);
    assert_int_equal(holders.overhead_bytes, 30);
    assert_int_equal(holders.sites[0].bytes, 60);
    assert_int_equal(holders.sites[1].bytes, 10);
    assert_int_equal(holders.site_count, 2);
    assert_int_equal(holders.others, 1);
    assert_int_equal(holders.others_bytes, 0);
    assert_int_equal(holders.idle_bytes, 0);
    assert_int_equal(sum(&holders), 100);
}

static void figures_that_make_no_sense_add_up_all_the_same(void **state)
{
    static const uint64_t odd[] = {0, 1, 100, UINT64_MAX - 1, UINT64_MAX};
    enum { ODD = sizeof odd / sizeof odd[0] };
    (void)state;
    for (unsigned i = 0; i < ODD * ODD * ODD; i++) {
        struct report_holders holders = {.bytes = odd[i % ODD],
                                         .overhead_bytes = odd[i / ODD % ODD]};
        for (unsigned site = 0; site < 13; site++)
            report_add_site(&holders, "a", odd[(i / ODD / ODD + site) % ODD], UINT64_MAX);
        report_settle(&holders);
        assert_ranked(&holders);
        assert_int_equal(sum(&holders), odd[i % ODD]);
        assert_true(holders.idle_bytes <= holders.bytes);
    }
}

/* 1000 MiB at the peak by `sites` sites, 100 MiB of overhead; 300 MiB at the end by one. */
static struct report_device make_device(unsigned sites)
{
    struct report_device device = {.gpu_index = 0,
                                   .gpu_uuid = "GPU-5a1c",
                                   .limit_bytes = MIB(1024),
                                   .peak_after_ns = 12345678901,
                                   .peak = {.bytes = MIB(1000), .overhead_bytes = MIB(100)},
                                   .end = {.bytes = MIB(300), .overhead_bytes = MIB(100)},
                                   .requested_bytes = MIB(199),
                                   .committed_bytes = MIB(200),
                                   .live_allocations = 2,
                                   .allocations_total = 1234,
                                   .frees_total = 1232,
                                   .largest_bytes = MIB(512),
                                   .denials = 3,
                                   .denials_recovered = 2,
                                   .denied_bytes = MIB(1536),
                                   .driver_denials = 1};
    for (unsigned i = 0; i < sites; i++)
        report_add_site(&device.peak, "train.py:88 forward", MIB(60 - i), i + 1);
    report_settle(&device.peak);
    report_add_site(&device.end, "model.py:31 load", MIB(200), 2);
    report_settle(&device.end);
    return device;
}

static bool write_report(unsigned devices, const struct report_device *device)
{
    writer_begin(&writer, memfd_create("written", 0), REPORT_BYTES_MAX);
    report_begin(&writer, &head);
    for (unsigned i = 0; i < devices; i++)
        report_add_device(&writer, device);
    report_end(&writer);
    bool is_whole = writer_end(&writer);
    ssize_t length = pread(writer.file, written, sizeof written - 1, 0);
    assert_true(length > 0);
    written[length] = '\0';
    close(writer.file);
    return is_whole;
}

static void the_report_is_json(void **state)
{
    struct report_device device = make_device(1);
    (void)state;
    assert_true(write_report(1, &device));
    assert_string_equal(written, "{\n"
                                 "  \"schema\": \"gpulimit.report/1\",\n"
                                 "  \"library_version\": \"1.2.3\",\n"
                                 "  \"pid\": 4121,\n"
                                 "  \"uid\": 1000,\n"
                                 "  \"state\": \"exited\",\n"
                                 "  \"command\": [\n"
                                 "    \"python3\",\n"
                                 "    \"train.py\"\n"
                                 "  ],\n"
                                 "  \"count_mode\": \"process\",\n"
                                 "  \"limit_text\": \"1024\",\n"
                                 "  \"start_time\": \"2026-11-30T13:17:01.000Z\",\n"
                                 "  \"end_time\": \"2026-11-30T13:19:06.000Z\",\n"
                                 "  \"devices\": [\n"
                                 "    {\n"
                                 "      \"gpu_index\": 0,\n"
                                 "      \"gpu_uuid\": \"GPU-5a1c\",\n"
                                 "      \"limit_bytes\": 1073741824,\n"
                                 "      \"peak\": {\n"
                                 "        \"bytes\": 1048576000,\n"
                                 "        \"after_seconds\": 12.345,\n"
                                 "        \"sites\": [\n"
                                 "          {\n"
                                 "            \"where\": \"train.py:88 forward\",\n"
                                 "            \"bytes\": 62914560,\n"
                                 "            \"count\": 1\n"
                                 "          }\n"
                                 "        ],\n"
                                 "        \"others\": {\n"
                                 "          \"sites\": 0,\n"
                                 "          \"bytes\": 0\n"
                                 "        },\n"
                                 "        \"idle_bytes\": 880803840,\n"
                                 "        \"overhead_bytes\": 104857600\n"
                                 "      },\n"
                                 "      \"end\": {\n"
                                 "        \"bytes\": 314572800,\n"
                                 "        \"sites\": [\n"
                                 "          {\n"
                                 "            \"where\": \"model.py:31 load\",\n"
                                 "            \"bytes\": 209715200,\n"
                                 "            \"count\": 2\n"
                                 "          }\n"
                                 "        ],\n"
                                 "        \"others\": {\n"
                                 "          \"sites\": 0,\n"
                                 "          \"bytes\": 0\n"
                                 "        },\n"
                                 "        \"idle_bytes\": 0,\n"
                                 "        \"overhead_bytes\": 104857600\n"
                                 "      },\n"
                                 "      \"requested_bytes\": 208666624,\n"
                                 "      \"committed_bytes\": 209715200,\n"
                                 "      \"live_allocations\": 2,\n"
                                 "      \"allocations_total\": 1234,\n"
                                 "      \"frees_total\": 1232,\n"
                                 "      \"largest_bytes\": 536870912,\n"
                                 "      \"denials\": 3,\n"
                                 "      \"denials_recovered\": 2,\n"
                                 "      \"denied_bytes\": 1610612736,\n"
                                 "      \"driver_denials\": 1\n"
                                 "    }\n"
                                 "  ]\n"
                                 "}\n");
}

static void what_is_not_set_is_null(void **state)
{
    struct report_head bare = head;
    struct report_device device = make_device(0);
    (void)state;
    bare.limit_text = "";
    bare.end_time_ns = 0;
    bare.counts_requests = true;
    device.limit_bytes = GPULIMIT_NO_LIMIT;
    writer_begin(&writer, memfd_create("written", 0), REPORT_BYTES_MAX);
    report_begin(&writer, &bare);
    report_add_device(&writer, &device);
    report_end(&writer);
    assert_true(writer_end(&writer));
    ssize_t length = pread(writer.file, written, sizeof written - 1, 0);
    assert_true(length > 0);
    written[length] = '\0';
    close(writer.file);
    assert_non_null(strstr(written, "\"limit_text\": null,"));
    assert_non_null(strstr(written, "\"end_time\": null,"));
    assert_non_null(strstr(written, "\"limit_bytes\": null,"));
    assert_non_null(strstr(written, "\"count_mode\": \"allocations\","));
    assert_non_null(strstr(written, "\"sites\": [],"));
}

/* Adds up the figures behind every occurrence of a key. */
static uint64_t add_up(const char *key, unsigned *count)
{
    uint64_t total = 0;
    *count = 0;
    for (const char *at = strstr(written, key); at; at = strstr(at + 1, key)) {
        unsigned long long number;
        assert_int_equal(sscanf(at + strlen(key), "%llu", &number), 1);
        total += number;
        ++*count;
    }
    return total;
}

static void sites_without_room_are_among_the_others(void **state)
{
    static char where[1500]; /* with bytes that take six each */
    struct report_device device = make_device(0);
    unsigned count, devices;
    (void)state;
    memset(where, 0x01, sizeof where - 1);
    device.peak = (struct report_holders){.bytes = 100};
    for (unsigned i = 0; i < 12; i++)
        report_add_site(&device.peak, where, 8, 1);
    report_settle(&device.peak);
    device.end = device.peak;
    assert_true(write_report(GPULIMIT_DEVICES, &device));
    (void)add_up("\"count\": ", &count); /* of the sites that are named */
    assert_in_range(count, 5, 2 * REPORT_SITES * GPULIMIT_DEVICES - 5);
    uint64_t others = add_up("          \"sites\": ", &devices);
    assert_int_equal(devices, 2 * GPULIMIT_DEVICES);
    assert_int_equal(count + others, 2 * 12 * GPULIMIT_DEVICES);
    assert_int_equal(8 * (count + others), add_up("          \"bytes\": ", &devices));
}

static unsigned count_lines(const char *string)
{
    unsigned lines = 0;
    for (; *string != '\0'; string++)
        lines += *string == '\n';
    return lines;
}

static void people_get_the_same_in_a_few_lines(void **state)
{
    struct report_device device = make_device(8);
    (void)state;
    report_tell_head(&text, "gpulimit: ", &head);
    assert_string_equal(text_string(&text),
                        "gpulimit: process 4121 (python3 train.py) ran for 2m05s, under "
                        "GPU_LIMIT_MB=1024\n");
    report_tell(&text, "gpulimit: ", &head, &device);
    assert_string_equal(
        text_string(&text),
        "gpulimit: GPU 0: peak 1000 MiB of 1024 MiB (97%), 12 s after the start, held by\n"
        "gpulimit:      60 MiB  train.py:88 forward (1 allocation)\n"
        "gpulimit:      59 MiB  train.py:88 forward (2 allocations)\n"
        "gpulimit:      58 MiB  train.py:88 forward (3 allocations)\n"
        "gpulimit:      57 MiB  train.py:88 forward (4 allocations)\n"
        "gpulimit:      56 MiB  train.py:88 forward (5 allocations)\n"
        "gpulimit:     162 MiB  3 other sites\n"
        "gpulimit:     448 MiB  idle in pools\n"
        "gpulimit:     100 MiB  overhead: context, code, streams\n"
        "gpulimit:   refused       3 requests for 1536 MiB (2 later succeeded); 1 by the driver\n"
        "gpulimit:   in all        1234 allocations, the largest 512 MiB; 1232 frees\n"
        "gpulimit:   live at exit  200 MiB in 2 allocations, most by model.py:31 load\n");
    report_tell_next(&text, "gpulimit: ", &head);
    assert_string_equal(text_string(&text),
                        "gpulimit: again, and with its history: gpulimit-stat report -p 4121\n");
}

static void people_are_told_what_is_special(void **state)
{
    static const char *const longer[] = {"1", "2", "3", "4", "5", "6", "7"};
    struct report_head other = head;
    struct report_device device = {.gpu_uuid = "", .limit_bytes = GPULIMIT_NO_LIMIT};
    (void)state;
    other.state = "stale";
    other.end_time_ns = 0;
    other.limit_text = "";
    report_tell_head(&text, "", &other);
    assert_string_equal(text_string(&text), "process 4121 (python3 train.py) is gone without a "
                                            "word: killed, or crashed\n");
    other.command = longer;
    other.command_count = 7;
    other.state = "live";
    other.limit_text = "1\n";
    other.counts_requests = true;
    report_tell_head(&text, "", &other);
    assert_string_equal(text_string(&text),
                        "process 4121 (1 2 3 4 5 6 ...) runs, under GPU_LIMIT_MB=1?, "
                        "GPU_LIMIT_COUNT=allocations\n");
    report_tell(&text, "", &other, &device);
    assert_string_equal(text_string(&text), "GPU 0: peak 0 bytes (no limit), 0.0 s after the "
                                            "start\n"
                                            "  refused       nothing\n"
                                            "  in all        0 allocations; 0 frees\n"
                                            "  live now      0 bytes in 0 allocations\n");
}

static void the_longest_text_is_whole(void **state)
{
    static char where[500];
    struct report_device device;
    (void)state;
    memset(where, 'w', sizeof where - 1);
    memset(&device, 0xff, sizeof device);
    device.limit_bytes = UINT64_MAX - 1;
    device.peak = (struct report_holders){.bytes = UINT64_MAX, .overhead_bytes = UINT64_MAX / 3};
    for (unsigned i = 0; i < 12; i++)
        report_add_site(&device.peak, where, UINT64_MAX / 25, UINT64_MAX);
    report_settle(&device.peak);
    device.end = device.peak;
    report_tell(&text, "gpulimit: ", &head, &device);
    assert_true(text.length < sizeof text.bytes - 1); /* not cut off */
    assert_int_equal(text.bytes[text.length - 1], '\n');
    assert_in_range(count_lines(text_string(&text)), 8, REPORT_LINES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_whatever_order_sites_come_the_largest_stay_and_all_add_up),
        cmocka_unit_test(of_sites_that_hold_as_much_the_first_stays_first),
        cmocka_unit_test(where_parts_are_more_than_the_whole_the_smallest_lose),
        cmocka_unit_test(figures_that_make_no_sense_add_up_all_the_same),
        cmocka_unit_test(the_report_is_json),
        cmocka_unit_test(what_is_not_set_is_null),
        cmocka_unit_test(sites_without_room_are_among_the_others),
        cmocka_unit_test(people_get_the_same_in_a_few_lines),
        cmocka_unit_test(people_are_told_what_is_special),
        cmocka_unit_test(the_longest_text_is_whole),
    };
    return cmocka_run_group_tests_name("run_report", tests, NULL, NULL);
}
