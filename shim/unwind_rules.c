/* SPDX-License-Identifier: MIT
 *
 * Runs a function's program of .eh_frame up to the row that is wanted: see unwind_rules.h.
 */
#include "unwind_rules.h"

#include "unwind_table.h"

/* DWARF's numbers: of registers on x86-64, of instructions (DW_CFA_*, DWARF 5, 7.24), of operations
 * (DW_OP_*), and of the encodings of pointers (DW_EH_PE_*, LSB 10.5). */
enum { UNWIND_BP = 6, UNWIND_SP = 7, UNWIND_RETURN = 16 };
enum { UNWIND_BREG_BP = 0x76, UNWIND_DEREF = 0x06 };
enum { UNWIND_UDATA4 = 0x03, UNWIND_SDATA4 = 0x0b };
enum {
    DW_CFA_ADVANCE = 0x40,
    DW_CFA_OFFSET = 0x80,
    DW_CFA_RESTORE = 0xc0,
    DW_CFA_NOP = 0x00,
    DW_CFA_ADVANCE_1 = 0x02,
    DW_CFA_ADVANCE_2 = 0x03,
    DW_CFA_ADVANCE_4 = 0x04,
    DW_CFA_OFFSET_EXTENDED = 0x05,
    DW_CFA_RESTORE_EXTENDED = 0x06,
    DW_CFA_UNDEFINED = 0x07,
    DW_CFA_SAME_VALUE = 0x08,
    DW_CFA_REGISTER = 0x09,
    DW_CFA_REMEMBER = 0x0a,
    DW_CFA_RECALL = 0x0b,
    DW_CFA_DEF = 0x0c,
    DW_CFA_DEF_REGISTER = 0x0d,
    DW_CFA_DEF_OFFSET = 0x0e,
    DW_CFA_DEF_EXPRESSION = 0x0f,
    DW_CFA_EXPRESSION = 0x10,
    DW_CFA_OFFSET_EXTENDED_SF = 0x11,
    DW_CFA_DEF_SF = 0x12,
    DW_CFA_DEF_OFFSET_SF = 0x13,
    DW_CFA_ARGS_SIZE = 0x2e,
};

enum { UNWIND_REMEMBERED = 8 };

enum unwind_place { UNWIND_SAME, UNWIND_UNDEFINED, UNWIND_AT_END, UNWIND_AT_BP, UNWIND_ELSEWHERE };

struct unwind_register {
    enum unwind_place place;
    int64_t offset;
};

/* A row: where the frame ends, and where two of the caller's registers are. */
struct unwind_row {
    enum unwind_end end;
    int64_t end_offset;
    struct unwind_register bp, ret;
};

struct unwind_program {
    uint64_t location, target; /* the row for an address holds up to the next one's */
    uint64_t code_align;
    int64_t data_align;
    struct unwind_row row, initial, remembered[UNWIND_REMEMBERED];
    unsigned depth;
};

static void unwind_set(struct unwind_row *row, uint64_t number, struct unwind_register where)
{
    if (number == UNWIND_BP)
        row->bp = where;
    else if (number == UNWIND_RETURN)
        row->ret = where;
}

static void unwind_restore(struct unwind_program *program, uint64_t number)
{
    unwind_set(&program->row, number,
               number == UNWIND_BP ? program->initial.bp : program->initial.ret);
}

static void unwind_set_end(struct unwind_row *row, uint64_t number)
{
    row->end = number == UNWIND_SP   ? UNWIND_END_BY_SP
               : number == UNWIND_BP ? UNWIND_END_BY_BP
                                     : UNWIND_END_UNKNOWN;
}

/* Reads an expression that is the base pointer and an offset, and maybe what lies there: as
 * functions have it that align their stack. Returns whether it is one. */
static bool unwind_expression(struct unwind_bytes *bytes, bool is_deref, int64_t *offset)
{
    struct unwind_bytes block = unwind_block(bytes, unwind_uleb(bytes));
    if (unwind_fixed(&block, 1) != UNWIND_BREG_BP)
        return false;
    *offset = unwind_sleb(&block);
    if (is_deref && unwind_fixed(&block, 1) != UNWIND_DEREF)
        return false;
    return !block.is_bad && block.at == block.end;
}

static void unwind_set_expression(struct unwind_program *program, struct unwind_bytes *bytes)
{
    struct unwind_register where = {.place = UNWIND_ELSEWHERE};
    uint64_t number = unwind_uleb(bytes);
    if (unwind_expression(bytes, false, &where.offset))
        where.place = UNWIND_AT_BP;
    unwind_set(&program->row, number, where);
}

/* One instruction about where the frame ends. Returns false if it is none. */
static bool unwind_step_end(struct unwind_program *program, struct unwind_bytes *bytes,
                            uint8_t code)
{
    struct unwind_row *row = &program->row;
    if (code == DW_CFA_DEF || code == DW_CFA_DEF_SF || code == DW_CFA_DEF_REGISTER)
        unwind_set_end(row, unwind_uleb(bytes));
    if (code == DW_CFA_DEF || code == DW_CFA_DEF_OFFSET)
        row->end_offset = (int64_t)unwind_uleb(bytes);
    else if (code == DW_CFA_DEF_SF || code == DW_CFA_DEF_OFFSET_SF)
        row->end_offset = unwind_sleb(bytes) * program->data_align;
    else if (code == DW_CFA_DEF_EXPRESSION)
        row->end = unwind_expression(bytes, true, &row->end_offset) ? UNWIND_END_AT_BP
                                                                    : UNWIND_END_UNKNOWN;
    else
        return code == DW_CFA_DEF_REGISTER;
    return true;
}

/* One about a register. Returns false if it is none. */
static bool unwind_step_register(struct unwind_program *program, struct unwind_bytes *bytes,
                                 uint8_t code)
{
    struct unwind_register where = {.place = UNWIND_AT_END};
    uint64_t number;
    switch (code) {
    case DW_CFA_OFFSET_EXTENDED:
        number = unwind_uleb(bytes);
        where.offset = (int64_t)unwind_uleb(bytes) * program->data_align;
        break;
    case DW_CFA_OFFSET_EXTENDED_SF:
        number = unwind_uleb(bytes);
        where.offset = unwind_sleb(bytes) * program->data_align;
        break;
    case DW_CFA_UNDEFINED:
    case DW_CFA_SAME_VALUE:
        number = unwind_uleb(bytes);
        where.place = code == DW_CFA_UNDEFINED ? UNWIND_UNDEFINED : UNWIND_SAME;
        break;
    case DW_CFA_REGISTER:
        number = unwind_uleb(bytes);
        unwind_uleb(bytes);
        where.place = UNWIND_ELSEWHERE;
        break;
    default:
        return false;
    }
    unwind_set(&program->row, number, where);
    return true;
}

static void unwind_step_other(struct unwind_program *program, struct unwind_bytes *bytes,
                              uint8_t code)
{
    switch (code) {
    case DW_CFA_NOP:
        break;
    case DW_CFA_ADVANCE_1:
    case DW_CFA_ADVANCE_2:
    case DW_CFA_ADVANCE_4:
        program->location +=
            unwind_fixed(bytes, (size_t)1 << (code - DW_CFA_ADVANCE_1)) * program->code_align;
        break;
    case DW_CFA_RESTORE_EXTENDED:
        unwind_restore(program, unwind_uleb(bytes));
        break;
    case DW_CFA_EXPRESSION:
        unwind_set_expression(program, bytes);
        break;
    case DW_CFA_ARGS_SIZE:
        unwind_uleb(bytes);
        break;
    case DW_CFA_REMEMBER:
        if (program->depth == UNWIND_REMEMBERED)
            bytes->is_bad = true;
        else
            program->remembered[program->depth++] = program->row;
        break;
    case DW_CFA_RECALL:
        if (program->depth == 0)
            bytes->is_bad = true;
        else
            program->row = program->remembered[--program->depth];
        break;
    default:
        bytes->is_bad = true;
    }
}

/* Runs the instructions up to the row that holds at the target. */
static void unwind_run(struct unwind_program *program, struct unwind_bytes *bytes)
{
    while (bytes->at < bytes->end && !bytes->is_bad && program->location <= program->target) {
        uint8_t code = (uint8_t)unwind_fixed(bytes, 1), low = code & 0x3f;
        switch (code & 0xc0) {
        case DW_CFA_ADVANCE:
            program->location += low * program->code_align;
            break;
        case DW_CFA_OFFSET:
            unwind_set(&program->row, low,
                       (struct unwind_register){UNWIND_AT_END,
                                                (int64_t)unwind_uleb(bytes) * program->data_align});
            break;
        case DW_CFA_RESTORE:
            unwind_restore(program, low);
            break;
        default:
            if (!unwind_step_end(program, bytes, code) &&
                !unwind_step_register(program, bytes, code))
                unwind_step_other(program, bytes, code);
        }
    }
}

static size_t unwind_size(uint64_t encoding)
{
    uint64_t format = encoding & 0x0f;
    return format == UNWIND_UDATA4 || format == UNWIND_SDATA4 ? 4
           : format == 2 || format == 10                      ? 2
                                                              : 8;
}

/* The letters of a CIE, which say what data it has. Returns false if one is not understood: S is
 * that of a signal's frame, which nobody called. */
static bool unwind_read_letters(const char *letters, struct unwind_bytes *data, uint64_t *encoding)
{
    for (; *letters; letters++) {
        if (*letters != 'L' && *letters != 'R' && *letters != 'P')
            return false;
        uint64_t byte = unwind_fixed(data, 1);
        if (*letters == 'R')
            *encoding = byte;
        else if (*letters == 'P')
            unwind_fixed(data, unwind_size(byte));
    }
    return !data->is_bad;
}

/* Runs what the functions of a CIE have in common. *encoding: of the addresses in their FDEs;
 * *is_sized: whether these have data of their own before their instructions. */
static bool unwind_run_common(struct unwind_program *program, struct unwind_bytes bytes,
                              uint64_t *encoding, bool *is_sized)
{
    uint64_t version = unwind_fixed(&bytes, 1);
    const char *letters = (const char *)bytes.at;
    while (unwind_fixed(&bytes, 1) != 0) {
    }
    if (bytes.is_bad || (version != 1 && version != 3) || (*letters && *letters != 'z'))
        return false;
    program->code_align = unwind_uleb(&bytes);
    program->data_align = unwind_sleb(&bytes);
    uint64_t ret = version == 1 ? unwind_fixed(&bytes, 1) : unwind_uleb(&bytes);
    *encoding = 0;
    *is_sized = *letters == 'z';
    if (*is_sized) {
        struct unwind_bytes data = unwind_block(&bytes, unwind_uleb(&bytes));
        if (!unwind_read_letters(letters + 1, &data, encoding))
            return false;
    }
    uint64_t target = program->target;
    program->target = UINT64_MAX;
    unwind_run(program, &bytes);
    program->target = target;
    program->initial = program->row;
    return ret == UNWIND_RETURN && !bytes.is_bad;
}

static struct unwind_rule unwind_result(const struct unwind_row *row)
{
    struct unwind_rule unknown = {.end = UNWIND_END_UNKNOWN}, rule = unknown;
    if (row->ret.place == UNWIND_UNDEFINED)
        return (struct unwind_rule){.end = UNWIND_END_OF_STACK};
    if (row->ret.place != UNWIND_AT_END || row->ret.offset != -8 ||
        row->bp.place == UNWIND_ELSEWHERE || row->end_offset != (int32_t)row->end_offset ||
        row->bp.offset != (int16_t)row->bp.offset)
        return unknown;
    rule.end = (uint8_t)row->end;
    rule.end_offset = (int32_t)row->end_offset;
    rule.bp_offset = (int16_t)row->bp.offset;
    rule.bp = row->bp.place == UNWIND_AT_END  ? UNWIND_BP_AT_END
              : row->bp.place == UNWIND_AT_BP ? UNWIND_BP_AT_BP
                                              : UNWIND_BP_SAME;
    return rule;
}

struct unwind_rule unwind_rule_at(const void *table, uint64_t return_address, uint32_t *row)
{
    struct unwind_rule unknown = {.end = UNWIND_END_UNKNOWN};
    struct unwind_program program = {.target = return_address - 1};
    struct unwind_function function;
    uint64_t encoding;
    bool is_sized;
    if (!unwind_table_find(table, program.target, &function) ||
        !unwind_run_common(&program, function.common, &encoding, &is_sized))
        return unknown;
    struct unwind_bytes bytes = function.record;
    unwind_fixed(&bytes, unwind_size(encoding));
    if (program.target - function.begin >= unwind_fixed(&bytes, unwind_size(encoding)))
        return unknown;
    if (is_sized)
        unwind_block(&bytes, unwind_uleb(&bytes));
    program.location = function.begin;
    unwind_run(&program, &bytes);
    *row = function.row;
    return bytes.is_bad ? unknown : unwind_result(&program.row);
}
