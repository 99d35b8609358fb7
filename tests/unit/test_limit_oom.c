/* SPDX-License-Identifier: MIT
 *
 * shim/limit_oom*.c: what a report says where a program would have to be in a rare state, and how
 * little room it needs at worst. That it is JSON by its schema is tested in tests/preload/.
 */
#include "limit_fixture.h"

#include "books.h"
#include "limit_oom.h"
#include "limit_oom_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[] = "/tmp/test_limit_oom.XXXXXX";
static char text[(256 << 10) + 2];

static struct ticket ticket = {.kind = GPULIMIT_KIND_LINEAR, .bytes = MIB(512)};
static struct refusal refusal;
static struct limit_oom oom = {.ticket = &ticket, .refusal = &refusal, .number = OOM_FIRST};

/* 512 MiB, of which nothing is known but that they were refused. */
static int refuse(void **state)
{
    (void)state;
    refusal = (struct refusal){.api = "cuMemAlloc_v2",
                               .requested_bytes = MIB(512),
                               .need_bytes = MIB(512),
                               .limit_bytes = MIB(1024),
                               .limit_text = "1024",
                               .card_total_bytes = MIB(8192),
                               .command = "python3"};
    oom.is_by_driver = false;
    return 0;
}

/* What the report says. */
static const char *written(void)
{
    char path[REPORT_FILE_PATH];
    assert_true(limit_oom_write(&oom, path));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    assert_int_equal(unlink(path), 0);
    assert_in_range(got, 1, 256 << 10);
    text[got] = '\0';
    assert_string_equal(text + got - 4, "]\n}\n");
    return text;
}

static void assert_says(const char *words)
{
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in %s", words, text);
}

static void assert_shortfall(uint64_t limit, uint64_t used, uint64_t need, uint64_t expected)
{
    const struct limit_live live = {.used_bytes = used};
    refusal.limit_bytes = limit;
    refusal.need_bytes = need;
    assert_true(limit_oom_shortfall(&oom, &live) == expected);
}

static void test_the_shortfall_is_what_the_limit_lacks(void **state)
{
    (void)state;
    assert_shortfall(1000, 900, 300, 200);
    assert_shortfall(1000, 900, 100, 0);
    assert_shortfall(1000, 1100, 50, 150); /* overhead came that nobody could refuse */
    assert_shortfall(1000, 1100, 0, 100);
    assert_shortfall(1000, 0, 2000, 1000);
    assert_shortfall(0, 0, 5, 5);
    assert_shortfall(1000, 1000, UINT64_MAX, UINT64_MAX);
    assert_shortfall(1000, 2000, UINT64_MAX, UINT64_MAX);
    assert_shortfall(1000, 0, UINT64_MAX, UINT64_MAX - 1000);
}

static void test_a_size_near_2_to_64_gets_no_limit_to_set(void **state)
{
    (void)state;
    refusal.need_bytes = refusal.requested_bytes = UINT64_MAX;
    written();
    assert_says("\"bytes\": 18446744073709551615");
    assert_says("\"cause\": \"limit_larger_than_total\"");
    assert_null(strstr(text, "raise_limit"));
}

static void test_room_that_came_meanwhile_is_worth_another_try(void **state)
{
    (void)state;
    written();
    assert_says("\"shortfall_bytes\": 0");
    assert_says("\"code\": \"try_again\"");
    assert_null(strstr(text, "raise_limit"));
}

static void test_the_limit_to_set_is_in_whole_mebibytes(void **state)
{
    (void)state;
    refusal.need_bytes = MIB(1024) + 1;
    written();
    assert_says("To let it pass, set GPU_LIMIT_MB to 1025 or more.");
    assert_says("Ask for less: a smaller batch.");
}

static void test_a_card_that_is_full_too_is_said(void **state)
{
    (void)state;
    refusal.knows_card_free = true;
    refusal.card_free_bytes = MIB(12);
    written();
    assert_says("Without the limit it would not fit either: 12 MiB free of 8192 MiB.");
    oom.is_by_driver = true;
    written();
    assert_says("The card is really full, 12 MiB free of 8192 MiB.");
    assert_says("\"cause\": \"driver\"");
    refusal.card_free_bytes = MIB(4096);
    written();
    assert_says("\"code\": \"driver_reason\"");
    refusal.need_bytes = 0; /* nobody knows how much it was */
    written();
    assert_says("The card has 4096 MiB free of 8192 MiB.");
    assert_null(strstr(text, "raise_limit"));
}

static void test_what_is_no_allocation_has_no_kind(void **state)
{
    (void)state;
    refusal.what = LIMIT_GREEN_CONTEXT;
    written();
    assert_says("\"what\": \"green_context\"");
    assert_says("\"kind\": null");
    assert_says("Ask for less: fewer contexts.");
    refusal.what = LIMIT_CONTEXT;
    written();
    assert_null(strstr(text, "ask_less"));
}

static uint32_t add_text(const char *name)
{
    struct sites_text added = {{0}};
    snprintf(added.text, sizeof added.text, "%s", name);
    uint32_t number = sites_add_text(&books_lock()->sites, &added);
    books_unlock();
    return number;
}

static void test_frames_of_both_languages_are_told(void **state)
{
    struct gpulimit_module module = {
        .end = 4096, .build_id = {0xab, 0x01}, .build_id_bytes = 2, .path = "/lib/torch.so"};
    struct gpulimit_site site = {.native_count = 2, .python_count = 1};
    (void)state;
    site.frames[0] = (struct gpulimit_frame){.kind = GPULIMIT_FRAME_NATIVE, .place = 0x7f00};
    site.frames[1] =
        (struct gpulimit_frame){.kind = GPULIMIT_FRAME_NATIVE,
                                .file = sites_add_module(&books_lock()->sites, &module),
                                .place = 0x1234};
    books_unlock();
    site.frames[2] = (struct gpulimit_frame){.kind = GPULIMIT_FRAME_PYTHON,
                                             .file = add_text("/data/\"train\".py"),
                                             .place = (uint64_t)add_text("forward") << 32 | 88};
    refusal.site = sites_add(&books_lock()->sites, 4711, &site, "train.py:88 forward");
    books_unlock();
    refusal.asked_by = "train.py:88 forward";
    refusal.tag = "epoch 3";
    written();
    assert_says("\"where\": \"train.py:88 forward\"");
    assert_says("\"tag\": \"epoch 3\"");
    assert_says("\"module\": null,\n        \"build_id\": null,\n        \"offset\": \"0x7f00\"");
    assert_says("\"module\": \"/lib/torch.so\",\n        \"build_id\": \"ab01\",\n"
                "        \"offset\": \"0x1234\"");
    assert_says("\"file\": \"/data/\\\"train\\\".py\",\n        \"line\": 88,\n"
                "        \"function\": \"forward\"");
}

/* Names of bytes that JSON has to write in six characters each, as many as there can be. */
static void test_at_worst_a_report_still_fits(void **state)
{
    struct rlimit before, limit;
    struct gpulimit_module module = {.end = 8192};
    struct gpulimit_site site = {.native_count = GPULIMIT_SITE_FRAMES};
    char name[SITE_NAME_BYTES] = "";
    (void)state;
    memset(module.path, '\x01', sizeof module.path - 1);
    memset(name, '\x02', sizeof name - 1);
    uint32_t file = sites_add_module(&books_lock()->sites, &module);
    books_unlock();
    for (unsigned i = 0; i < GPULIMIT_SITE_FRAMES; i++)
        site.frames[i].file = file;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t address = BASE + i * MIB(4);
        assert_true(take(GPULIMIT_KIND_LINEAR, CONTEXT, address, MIB(2)));
        struct books *books = books_lock();
        ledger_at(&books->ledger, ledger_find(&books->ledger, address))->site =
            sites_add(&books->sites, 10000 + i, &site, name);
        books_unlock();
    }
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    for (rlim_t bytes = 256 << 10; bytes >= 128 << 10; bytes -= 32 << 10) {
        limit.rlim_cur = bytes;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_true(strlen(written()) <= bytes);
        assert_says("\"truncated\": true");
        assert_says("\"sites\": "); /* the others, be they more than fifty left */
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    for (unsigned i = 0; i < 100; i++)
        give(BASE + i * MIB(4));
}

static int set_up(void **state)
{
    if (!mkdtemp(folder))
        return 1;
    setenv("GPU_LIMIT_STACKS", "off", 1); /* the tests give sites of their own */
    setenv("GPU_LIMIT_REPORT_DIR", folder, 1);
    return start(state);
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(folder);
}

#define REFUSED(_test) cmocka_unit_test_setup_teardown(_test, refuse, assert_nothing_held)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        REFUSED(test_the_shortfall_is_what_the_limit_lacks),
        REFUSED(test_a_size_near_2_to_64_gets_no_limit_to_set),
        REFUSED(test_room_that_came_meanwhile_is_worth_another_try),
        REFUSED(test_the_limit_to_set_is_in_whole_mebibytes),
        REFUSED(test_a_card_that_is_full_too_is_said),
        REFUSED(test_what_is_no_allocation_has_no_kind),
        REFUSED(test_frames_of_both_languages_are_told),
        REFUSED(test_at_worst_a_report_still_fits),
    };
    return cmocka_run_group_tests_name("limit_oom", tests, set_up, tear_down);
}
