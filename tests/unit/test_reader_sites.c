/* SPDX-License-Identifier: MIT
 *
 * What the reader makes of call sites: modules, texts and sites of good ledgers, of old ones that
 * have none, and of damaged ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
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

static void test_call_sites_are_read_with_what_they_name(void **state)
{
    struct gpulimit_entry *entries;
    const struct gpulimit_module *module;
    const struct gpulimit_site *found;
    struct gpulimit_ledger *ledger;
    struct fixture fixture;
    uint32_t site;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    entries = fixture_add_entries(&fixture, 1);
    fixture_add_sites(&fixture);
    fixture_put_module(&fixture, "/opt/lib/liba.so");
    site = fixture_put_site(&fixture);
    fixture_put_native(&fixture, site, 1, 0x1234);
    fixture_put_python(&fixture, site, "/srv/anna/train.py", "main", 12);
    fixture_fill_entry(&fixture, entries, GPULIMIT_PLACE(GPULIMIT_KIND_LINEAR, 0, 0), 1, 1);
    entries->site = site;
    entries->tag = fixture_put_text(&fixture, "epoch 3");
    entries->stream = fixture_put_text(&fixture, "prefetch");
    ledger = test_read(&fixture);
    assert_int_equal(ledger->entry_count, 1);
    assert_int_equal(ledger->entries[0].site, site);
    assert_string_equal(gpulimit_reader_text(ledger, ledger->entries[0].tag), "epoch 3");
    assert_string_equal(gpulimit_reader_text(ledger, ledger->entries[0].stream), "prefetch");

    found = gpulimit_reader_site(ledger, site);
    assert_non_null(found);
    assert_int_equal(found->native_count, 1);
    assert_int_equal(found->python_count, 1);
    assert_int_equal(found->frames[0].place, 0x1234);
    assert_string_equal(gpulimit_reader_text(ledger, found->frames[1].file), "/srv/anna/train.py");
    module = gpulimit_reader_module(ledger, found->frames[0].file);
    assert_non_null(module);
    assert_string_equal(module->path, "/opt/lib/liba.so");
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_numbers_of_nothing_are_unknown(void **state)
{
    static const uint32_t numbers[] = {0, FIXTURE_SITES, FIXTURE_SITES + 1, FIXTURE_TEXTS + 1,
                                       UINT32_MAX};
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    for (int has_sites = 0; has_sites < 2; has_sites++) { /* before, an old ledger */
        ledger = test_read(&fixture);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
            assert_null(gpulimit_reader_site(ledger, numbers[i]));
            assert_null(gpulimit_reader_module(ledger, numbers[i]));
            assert_string_equal(gpulimit_reader_text(ledger, numbers[i]), "");
        }
        gpulimit_reader_close(ledger);
        if (!has_sites) {
            fixture_add_sites(&fixture);
        }
    }
    fixture_close(&fixture);
}

static void test_call_sites_are_numbered_through_their_extents(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_sites(&fixture);
    strcpy(fixture.texts[FIXTURE_TEXTS - 1], "last of the first");
    fixture_add_sites(&fixture);
    strcpy(fixture.texts[0], "first of the second");
    ledger = test_read(&fixture);
    assert_string_equal(gpulimit_reader_text(ledger, FIXTURE_TEXTS), "last of the first");
    assert_string_equal(gpulimit_reader_text(ledger, FIXTURE_TEXTS + 1), "first of the second");
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

static void test_a_damaged_call_site_is_unknown_and_harms_no_other(void **state)
{
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_sites(&fixture);
    fixture.sites[0].native_count = GPULIMIT_SITE_FRAMES;
    fixture.sites[1].native_count = 1;
    fixture.sites[1].python_count = GPULIMIT_SITE_FRAMES;
    fixture.sites[2].native_count = 0xffff;
    fixture.sites[2].python_count = 1; /* a sum of 0 in 16 bits */
    memset(&fixture.modules[0], 'm', sizeof(fixture.modules[0]));
    memset(fixture.texts[0], 't', sizeof(fixture.texts[0]));
    ledger = test_read(&fixture);
    assert_non_null(gpulimit_reader_site(ledger, 1));
    assert_null(gpulimit_reader_site(ledger, 2));
    assert_null(gpulimit_reader_site(ledger, 3));
    assert_int_equal(strlen(gpulimit_reader_module(ledger, 1)->path), 459);
    assert_int_equal(gpulimit_reader_module(ledger, 1)->build_id_bytes, 0);
    assert_int_equal(strlen(gpulimit_reader_text(ledger, 1)), GPULIMIT_TEXT_BYTES);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

/* Holes cost a file nothing; what is beyond the bounds is unknown, and all else is shown. */
static void test_call_sites_beyond_the_bounds_are_left_out(void **state)
{
    char reason[GPULIMIT_READER_REASON_BYTES];
    struct gpulimit_ledger *ledger;
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, 60);
    fixture_add_device(&fixture, 0);
    fixture_add_sites(&fixture);
    fixture.header->extents[3].count = GPULIMIT_READER_SITES_MAX + 5;
    fixture_write(&fixture, fixture_path);
    assert_int_equal(truncate(fixture_path, 1ll << 30), 0);
    assert_int_equal(gpulimit_reader_open(fixture_path, GPULIMIT_READER_ENTRIES, reason, &ledger),
                     GPULIMIT_READER_OK);
    assert_int_equal(ledger->site_count, GPULIMIT_READER_SITES_MAX);
    assert_int_equal(ledger->device_count, 1);
    gpulimit_reader_close(ledger);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_sites_are_read_with_what_they_name),
        cmocka_unit_test(test_numbers_of_nothing_are_unknown),
        cmocka_unit_test(test_call_sites_are_numbered_through_their_extents),
        cmocka_unit_test(test_a_damaged_call_site_is_unknown_and_harms_no_other),
        cmocka_unit_test(test_call_sites_beyond_the_bounds_are_left_out),
    };

    return cmocka_run_group_tests(tests, fixture_make_path, fixture_remove_path);
}
