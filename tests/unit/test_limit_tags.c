/* SPDX-License-Identifier: MIT
 *
 * shim/limit_tags.c: an allocation has the numbers of the name that its thread had pushed and of
 * its stream.
 */
#include "limit_fixture.h"

#include "limit_history.h"
#include "limit_tags.h"
#include "queue.h"
#include "tags.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The number of a text that is known, or 0. */
static uint32_t number_of(const char *name)
{
    struct sites_text text = {{0}};
    snprintf(text.text, sizeof text.text, "%s", name);
    uint32_t number = sites_find_text(&books_lock()->sites, &text);
    books_unlock();
    return number;
}

static struct ledger_entry entry_at(uint64_t address)
{
    struct ledger *ledger = &books_lock()->ledger;
    struct ledger_entry entry = *ledger_at(ledger, ledger_find(ledger, address));
    books_unlock();
    return entry;
}

static void test_a_name_has_a_number_from_the_first_allocation_under_it(void **state)
{
    (void)state;
    tags_push(TAGS_OWN, "epoch 1");
    assert_int_equal(number_of("epoch 1"), 0);
    assert_true(take(GPULIMIT_KIND_LINEAR, 0, BASE, MIB(2)));
    assert_int_not_equal(number_of("epoch 1"), 0);
    assert_int_equal(entry_at(BASE).tag, number_of("epoch 1"));
    tags_pop(TAGS_OWN);
    give(BASE);
    assert_true(take(GPULIMIT_KIND_LINEAR, 0, BASE, MIB(2)));
    assert_int_equal(entry_at(BASE).tag, 0);
    give(BASE);
}

static void test_the_same_name_is_the_same_number(void **state)
{
    (void)state;
    tags_push(TAGS_OWN, "epoch 2");
    uint32_t number = limit_tag();
    assert_int_equal(limit_tag(), number);
    tags_push(TAGS_OWN, "forward");
    assert_int_not_equal(limit_tag(), number);
    tags_push(TAGS_OWN, "epoch 2");
    assert_int_equal(limit_tag(), number);
    for (unsigned i = 0; i < 3; i++)
        tags_pop(TAGS_OWN);
}

static void test_an_entry_that_is_put_back_keeps_them(void **state)
{
    struct removal removal;
    (void)state;
    tags_push(TAGS_OWN, "epoch 3");
    assert_true(take(GPULIMIT_KIND_LINEAR, 0, BASE, MIB(2)));
    uint32_t number = limit_tag();
    tags_pop(TAGS_OWN);
    limit_detach(&removal, BASE);
    limit_restore(&removal);
    assert_int_equal(entry_at(BASE).tag, number);
    give(BASE);
}

static void assert_called(uint64_t stream, const char *name)
{
    uint32_t number = limit_stream(stream);
    assert_int_not_equal(number, 0);
    assert_int_equal(number, number_of(name));
}

static void test_streams_have_the_names_that_people_know(void **state)
{
    (void)state;
    assert_int_equal(limit_stream(0), 0);
    assert_called(QUEUE_LEGACY_STREAM, "legacy default stream");
    assert_called(QUEUE_THREAD_STREAM, "per-thread default stream");
    assert_called(0x55d0ff10, "stream 0x55d0ff10");
    assert_called(0x55d0ff10, "stream 0x55d0ff10"); /* remembered */
    assert_called(0x55d0ff20, "stream 0x55d0ff20");
}

/* What a child that fork has left with empty books finds. */
static int in_child(void)
{
    uint32_t stream = limit_stream(0x55d0ff10), tag = limit_tag();
    return stream != 0 && stream == number_of("stream 0x55d0ff10") && tag != 0 &&
                   tag == number_of("epoch 4")
               ? 0
               : 1;
}

static void test_a_child_has_numbers_of_its_own(void **state)
{
    int status;
    (void)state;
    tags_push(TAGS_OWN, "epoch 4");
    assert_int_not_equal(limit_tag(), 0);
    assert_int_not_equal(limit_stream(0x55d0ff10), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    tags_pop(TAGS_OWN);
}

/* Last, as it leaves no room. */
static void test_there_is_an_end_to_what_has_a_number(void **state)
{
    char name[32];
    (void)state;
    for (unsigned i = 0; i < SITES_TAGS_MOST + 10; i++) {
        snprintf(name, sizeof name, "step %u", i);
        tags_push(TAGS_OWN, name);
        limit_tag();
        tags_pop(TAGS_OWN);
    }
    assert_int_not_equal(number_of("step 1"), 0);
    assert_int_equal(number_of(name), 0);
    tags_push(TAGS_OWN, "step 1");
    assert_int_equal(limit_tag(), number_of("step 1"));
    tags_pop(TAGS_OWN);
    for (unsigned i = 0; i < SITES_MARKS_MOST + 10; i++) {
        snprintf(name, sizeof name, "mark %u", i);
        limit_mark(name);
    }
    assert_int_not_equal(number_of("mark 1"), 0);
    assert_int_equal(number_of(name), 0);
    for (uint64_t i = 0; i < SITES_STREAMS_MOST + 10; i++)
        limit_stream(0x10000 + i * 16);
    assert_int_equal(limit_stream(0x10000 + (SITES_STREAMS_MOST + 9) * 16), 0);
    assert_int_not_equal(limit_stream(QUEUE_LEGACY_STREAM), 0);
}

static void test_a_name_that_has_no_number_yet_can_be_refused_under(void **state)
{
    struct ticket ticket;
    struct gpulimit_event event;
    (void)state;
    tags_push(TAGS_OWN, "never allocated under");
    assert_false(
        limit_reserve(&ticket, GPULIMIT_KIND_LINEAR, 0, CONTEXT, API_cuMemAlloc_v2, MIB(2000)));
    assert_int_equal(history_copy_events(&books_lock()->ledger.history, &event, 1), 1);
    books_unlock();
    assert_int_equal(event.what, GPULIMIT_EVENT_REFUSED);
    assert_int_not_equal(event.tag, 0);
    assert_int_equal(event.tag, limit_tag());
    tags_pop(TAGS_OWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_a_name_has_a_number_from_the_first_allocation_under_it),
        GATE(test_the_same_name_is_the_same_number),
        GATE(test_an_entry_that_is_put_back_keeps_them),
        GATE(test_streams_have_the_names_that_people_know),
        GATE(test_a_child_has_numbers_of_its_own),
        GATE(test_a_name_that_has_no_number_yet_can_be_refused_under),
        GATE(test_there_is_an_end_to_what_has_a_number),
    };
    return cmocka_run_group_tests_name("limit_tags", tests, start, NULL);
}
