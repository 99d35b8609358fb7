/* SPDX-License-Identifier: MIT
 *
 * The walk of unwind.h, and the rules that it keeps.
 *
 * A rule holds for as long as its object stays where it is, and another may come to lie there, a
 * new build of the same at worst. So a kept rule is used only if what it was read from is still
 * there.
 */
#include "unwind.h"

#include "finder.h"
#include "unwind_rules.h"
#include "unwind_table.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)

enum {
    UNWIND_SLOTS_LOG2 = 10,
    UNWIND_FRAME_BYTES_MOST = 64 << 20, /* of one frame; beyond, a rule was misread */
};

/* Odd while it is being written; then passed over. All members by atomic operations. */
struct unwind_slot {
    uint64_t sequence, address, table, row, digest, rule;
} __attribute__((aligned(64)));

static struct unwind_slot unwind_slots[1 << UNWIND_SLOTS_LOG2];

struct unwind_frame {
    uint64_t address, sp, bp;
};

/* What another function has put on the stack: to a sanitizer, out of bounds. */
__attribute__((no_sanitize("address"), no_sanitize("thread"))) static uint64_t
unwind_word(uint64_t at)
{
    return *(const volatile uint64_t *)(uintptr_t)at;
}

static bool unwind_recall(struct unwind_slot *slot, uint64_t address, const void *table,
                          struct unwind_rule *rule)
{
    uint64_t sequence = __atomic_load_n(&slot->sequence, __ATOMIC_ACQUIRE);
    uint64_t kept = __atomic_load_n(&slot->address, __ATOMIC_ACQUIRE);
    uint64_t kept_table = __atomic_load_n(&slot->table, __ATOMIC_ACQUIRE);
    uint64_t row = __atomic_load_n(&slot->row, __ATOMIC_ACQUIRE);
    uint64_t digest = __atomic_load_n(&slot->digest, __ATOMIC_ACQUIRE);
    uint64_t packed = __atomic_load_n(&slot->rule, __ATOMIC_ACQUIRE);
    if (sequence % 2 != 0 || __atomic_load_n(&slot->sequence, __ATOMIC_RELAXED) != sequence)
        return false;
    if (kept != address || kept_table != (uintptr_t)table ||
        digest != unwind_table_digest(table, (uint32_t)row))
        return false;
    memcpy(rule, &packed, sizeof *rule);
    return true;
}

/* With release all along: who sees any of it sees the odd number too. */
static void unwind_keep(struct unwind_slot *slot, uint64_t address, const void *table, uint32_t row,
                        const struct unwind_rule *rule)
{
    uint64_t packed, digest = unwind_table_digest(table, row);
    uint64_t sequence = __atomic_load_n(&slot->sequence, __ATOMIC_RELAXED);
    if (sequence % 2 != 0 ||
        !__atomic_compare_exchange_n(&slot->sequence, &sequence, sequence + 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    _Static_assert(sizeof *rule == sizeof packed, "a rule is one word");
    memcpy(&packed, rule, sizeof packed);
    __atomic_store_n(&slot->address, address, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->table, (uintptr_t)table, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->row, row, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->digest, digest, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->rule, packed, __ATOMIC_RELEASE);
    __atomic_store_n(&slot->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static struct unwind_rule unwind_find_rule(uint64_t address)
{
    struct unwind_rule rule = {.end = UNWIND_END_UNKNOWN};
    struct finder_object object;
    if (!finder_find(address - 1, &object) || !object.table)
        return rule;
    const void *table = object.table;
    struct unwind_slot *slot =
        &unwind_slots[address * 0x9e3779b97f4a7c15u >> (64 - UNWIND_SLOTS_LOG2)];
    if (!unwind_recall(slot, address, table, &rule)) {
        uint32_t row = 0;
        rule = unwind_rule_at(table, address, &row);
        if (rule.end != UNWIND_END_UNKNOWN)
            unwind_keep(slot, address, table, row, &rule);
    }
    return rule;
}

/* Whether eight bytes lie in the frame that begins at sp, as far as its size can be told. */
static bool unwind_is_near(uint64_t at, uint64_t sp)
{
    return at >= sp && at - sp <= UNWIND_FRAME_BYTES_MOST && at % sizeof(uint64_t) == 0;
}

/* Goes to the caller's frame. Returns false if the rule leads nowhere. */
static bool unwind_step(struct unwind_frame *frame, const struct unwind_rule *rule)
{
    uint64_t end = (uint64_t)(int64_t)rule->end_offset, bp = (uint64_t)(int64_t)rule->bp_offset;
    end += rule->end == UNWIND_END_BY_SP ? frame->sp : frame->bp;
    if (rule->end == UNWIND_END_AT_BP) {
        if (!unwind_is_near(end, frame->sp))
            return false;
        end = unwind_word(end);
    }
    if (end <= frame->sp || !unwind_is_near(end, frame->sp))
        return false;
    if (rule->bp != UNWIND_BP_SAME) {
        bp += rule->bp == UNWIND_BP_AT_END ? end : frame->bp;
        if (bp >= end || !unwind_is_near(bp, frame->sp))
            return false;
        frame->bp = unwind_word(bp);
    }
    frame->address = unwind_word(end - sizeof(uint64_t));
    frame->sp = end;
    return true;
}

bool unwind(bool (*wants_more)(void *argument, uint64_t return_address), void *argument)
{
    struct unwind_frame frame;
    /* Here and now, of which the tables tell as of any other place. */
    __asm__ volatile("movq %%rbp, %2\n\tmovq %%rsp, %1\n\tleaq 0(%%rip), %0"
                     : "=&r"(frame.address), "=&r"(frame.sp), "=&r"(frame.bp));
    for (;;) {
        struct unwind_rule rule = unwind_find_rule(frame.address);
        if (rule.end == UNWIND_END_OF_STACK)
            return true;
        if (rule.end == UNWIND_END_UNKNOWN || !unwind_step(&frame, &rule))
            return false;
        if (frame.address == 0 || !wants_more(argument, frame.address))
            return true;
    }
}

#else

bool unwind(bool (*wants_more)(void *argument, uint64_t return_address), void *argument)
{
    (void)wants_more;
    (void)argument;
    return false;
}

#endif
