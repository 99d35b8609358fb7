/* SPDX-License-Identifier: MIT
 *
 * How to get from a frame to its caller's, on x86-64: read from the tables that compilers leave for
 * exceptions (.eh_frame, as the x86-64 psABI and the Linux Standard Base describe it). It knows the
 * rules that compilers write for calls and says so of any other.
 *
 * No state. Any thread. No memory is allocated.
 */
#ifndef SHIM_UNWIND_RULES_H
#define SHIM_UNWIND_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* Where the frame ends: the stack pointer once the function has returned, the CFA of the tables.
 * The return address lies right below. */
enum unwind_end {
    UNWIND_END_UNKNOWN, /* a rule that is not understood */
    UNWIND_END_BY_SP,   /* the stack pointer + end_offset */
    UNWIND_END_BY_BP,   /* the base pointer + end_offset */
    UNWIND_END_AT_BP,   /* what lies at the base pointer + end_offset */
    UNWIND_END_OF_STACK /* nobody called this function */
};

/* Where the caller's base pointer is. */
enum unwind_bp {
    UNWIND_BP_SAME,   /* still in its register */
    UNWIND_BP_AT_END, /* at the end of the frame + bp_offset */
    UNWIND_BP_AT_BP,  /* at the base pointer + bp_offset */
};

struct unwind_rule {
    int32_t end_offset;
    int16_t bp_offset;
    uint8_t end; /* enum unwind_end */
    uint8_t bp;  /* enum unwind_bp */
};

/* Reads the rule that holds at a return address. table: the object's .eh_frame_hdr. *row: the row
 * of it that led to the rule, see unwind_table_digest; as it was if the rule is unknown. */
struct unwind_rule unwind_rule_at(const void *table, uint64_t return_address, uint32_t *row);

#endif
