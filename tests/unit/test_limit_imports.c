/* SPDX-License-Identifier: MIT
 *
 * shim/limit_imports.c: what belongs to others is listed and costs nothing.
 */
#include "limit_fixture.h"

#include "limit_contexts.h"
#include "limit_imports.h"

#define API API_cuMemImportFromShareableHandle

static uint64_t listed(void)
{
    return totals(0)->by_kind[GPULIMIT_KIND_IMPORTED].count;
}

static void test_opened_twice_it_is_one_thing_to_be_closed_twice(void **state)
{
    (void)state;
    limit_imported(BASE, 0, CONTEXT, API);
    limit_imported(BASE, 0, CONTEXT, API);
    assert_int_equal(listed(), 1);
    assert_int_equal(budget_used(0), 0);
    limit_closed(BASE);
    assert_int_equal(listed(), 1);
    limit_closed(BASE);
    assert_int_equal(listed(), 0);
    limit_closed(BASE); /* never opened, as far as we know */
}

static void test_an_imported_pointer_may_be_freed(void **state)
{
    struct removal removal;
    (void)state;
    limit_imported(BASE, 0, 0, API);
    limit_detach(&removal, BASE);
    limit_restore(&removal);
    assert_int_equal(listed(), 1);
    limit_detach(&removal, BASE);
    limit_release(&removal);
    assert_int_equal(listed(), 0);
    limit_imported(BASE, 0, 0, API);
    assert_int_equal(listed(), 1);
    limit_closed(BASE);
}

static void test_it_dies_with_its_context_if_it_has_one(void **state)
{
    (void)state;
    limit_context_created(OTHER, 0, 0);
    limit_imported(BASE, 0, OTHER, API);
    limit_imported(BASE + MIB(2), 0, CONTEXT, API);
    limit_imported(BASE + MIB(4), 0, 0, API);
    limit_context_destroyed(OTHER, limit_context_mark());
    assert_int_equal(listed(), 2);
    limit_primary_destroyed(0, limit_context_mark());
    assert_int_equal(listed(), 1);
    limit_closed(BASE + MIB(4));
    assert_int_equal(listed(), 0);
}

static void test_an_allocation_of_ours_at_its_address_takes_its_place(void **state)
{
    (void)state;
    limit_imported(BASE, 0, CONTEXT, API);
    assert_true(take(GPULIMIT_KIND_LINEAR, 0, BASE, MIB(2)));
    assert_int_equal(listed(), 0);
    limit_closed(BASE); /* what was opened, not what is there now */
    assert_int_equal(budget_used(0), MIB(2));
    give(BASE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATE(test_opened_twice_it_is_one_thing_to_be_closed_twice),
        GATE(test_an_imported_pointer_may_be_freed),
        GATE(test_it_dies_with_its_context_if_it_has_one),
        GATE(test_an_allocation_of_ours_at_its_address_takes_its_place),
    };
    return cmocka_run_group_tests_name("limit_imports", tests, start, NULL);
}
