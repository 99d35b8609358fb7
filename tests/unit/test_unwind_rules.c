/* SPDX-License-Identifier: MIT
 *
 * shim/unwind_rules.c against binutils: every row of whole libraries, as readelf interprets it. A
 * row is asked for at its first address and its last.
 *
 *   usage: test_unwind_rules [LIBRARY...]     the C library and this program, and those
 */
#include "unit.h"

#include "unwind_rules.h"

#include "../cannot.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)

enum { COLUMNS = 40, COLUMN_BYTES = 16, SIGNAL_CIES = 64 };

static char **libraries;

struct object {
    const char *path;
    uint64_t bias;
    const void *table;
};

/* What readelf has said so far. */
struct table {
    struct object object;
    char names[COLUMNS][COLUMN_BYTES], row[COLUMNS][COLUMN_BYTES];
    unsigned columns;
    uint64_t location, end; /* of the row; end: of the function */
    bool is_signal, has_row, is_fde;
    unsigned signal_cies;
    uint64_t signal_cie[SIGNAL_CIES];
    unsigned rows, understood;
};

static int find_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct object *object = argument;
    (void)size;
    if (strcmp(info->dlpi_name, object->path) != 0)
        return 0;
    object->bias = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            object->table = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    return 1;
}

static const char *cell(const struct table *table, const char *name)
{
    for (unsigned i = 0; i < table->columns; i++) {
        if (strcmp(table->names[i], name) == 0)
            return table->row[i];
    }
    return "u";
}

/* What the row is as a rule; where it has an expression, what unwind_rule_at made of it. */
static struct unwind_rule rule_of_row(const struct table *table, struct unwind_rule found)
{
    const char *end = cell(table, "CFA"), *ret = cell(table, "ra"), *bp = cell(table, "rbp");
    struct unwind_rule unknown = {.end = UNWIND_END_UNKNOWN}, rule = unknown;
    if (table->is_signal)
        return unknown;
    if (strcmp(ret, "u") == 0)
        return (struct unwind_rule){.end = UNWIND_END_OF_STACK};
    if (strcmp(end, "exp") == 0 || strcmp(bp, "exp") == 0)
        return found;
    if (strcmp(ret, "c-8") != 0 || (strcmp(bp, "u") != 0 && strcmp(bp, "s") != 0 && bp[0] != 'c'))
        return unknown;
    if (strncmp(end, "rsp", 3) != 0 && strncmp(end, "rbp", 3) != 0)
        return unknown;
    rule.end = end[1] == 's' ? UNWIND_END_BY_SP : UNWIND_END_BY_BP;
    rule.end_offset = atoi(end + 3);
    rule.bp = bp[0] == 'c' ? UNWIND_BP_AT_END : UNWIND_BP_SAME;
    rule.bp_offset = (int16_t)(bp[0] == 'c' ? atoi(bp + 1) : 0);
    return rule;
}

static void check_at(struct table *table, uint64_t location)
{
    uint32_t row;
    struct unwind_rule found =
        unwind_rule_at(table->object.table, table->object.bias + location + 1, &row);
    struct unwind_rule expected = rule_of_row(table, found);
    if (found.end == UNWIND_END_UNKNOWN && expected.end == UNWIND_END_UNKNOWN)
        return;
    if (memcmp(&found, &expected, sizeof found) != 0)
        fail_msg("%s at %lx: end %u%+d bp %u%+d, readelf says CFA %s rbp %s ra %s",
                 table->object.path, (unsigned long)location, found.end, found.end_offset, found.bp,
                 found.bp_offset, cell(table, "CFA"), cell(table, "rbp"), cell(table, "ra"));
    table->understood++;
}

/* A row is over where the next begins. */
static void finish_row(struct table *table, uint64_t next)
{
    if (table->has_row && table->is_fde && next > table->location) {
        table->rows += 2;
        check_at(table, table->location);
        check_at(table, next - 1);
    }
    table->has_row = false;
}

static void read_head(struct table *table, const char *line)
{
    const char *cie = strstr(line, " FDE cie="), *pc = strstr(line, " pc=");
    table->columns = 0;
    table->is_fde = cie && pc;
    if (table->is_fde) {
        uint64_t of = strtoull(cie + strlen(" FDE cie="), NULL, 16);
        table->end = strtoull(strstr(pc, "..") + 2, NULL, 16);
        table->is_signal = false;
        for (unsigned i = 0; i < table->signal_cies; i++)
            table->is_signal |= table->signal_cie[i] == of;
    } else if (strstr(line, "\"zRS\"") && table->signal_cies < SIGNAL_CIES) {
        table->signal_cie[table->signal_cies++] = strtoull(line, NULL, 16);
    }
}

static unsigned split(char *line, char cells[COLUMNS][COLUMN_BYTES])
{
    unsigned count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \n", &rest); word && count < COLUMNS;
         word = strtok_r(NULL, " \n", &rest))
        snprintf(cells[count++], COLUMN_BYTES, "%.15s", word);
    return count;
}

static void read_line(struct table *table, char *line)
{
    char *rest;
    uint64_t location = strtoull(line, &rest, 16);
    bool is_number = rest - line >= 8 && *rest == ' ';
    if (is_number && (strstr(line, " CIE ") || strstr(line, " FDE "))) {
        finish_row(table, table->end);
        read_head(table, line);
    } else if (strstr(line, "   LOC ")) {
        table->columns = split(strstr(line, "LOC") + 3, table->names);
    } else if (is_number && table->columns > 0) {
        finish_row(table, location);
        table->location = location;
        table->has_row = split(rest, table->row) == table->columns;
    }
}

static void check_library(const char *path, const char *name)
{
    struct table table = {.object = {.path = name}};
    char line[1024];
    assert_int_equal(dl_iterate_phdr(find_object, &table.object), 1);
    assert_non_null(table.object.table);
    snprintf(line, sizeof line, "readelf -wF '%s' 2>/dev/null", path);
    FILE *said = popen(line, "r");
    assert_non_null(said);
    while (fgets(line, sizeof line, said))
        read_line(&table, line);
    finish_row(&table, table.end);
    pclose(said); /* it has complaints about sections for debuggers */
    print_message("# %s: %u rows, %u understood\n", path, table.rows / 2, table.understood / 2);
    assert_true(table.rows > 0);
    assert_true(table.understood + table.rows / 50 + 20 > table.rows);
}

static void test_each_row_of_the_c_library_is_as_binutils_reads_it(void **state)
{
    Dl_info info;
    (void)state;
    assert_true(dladdr(dlsym(RTLD_DEFAULT, "qsort"), &info) != 0);
    check_library(info.dli_fname, info.dli_fname);
}

static void test_each_row_of_this_program_is_as_binutils_reads_it(void **state)
{
    char path[512] = "";
    (void)state;
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    check_library(path, "");
}

static void test_each_row_of_the_libraries_named_is_as_binutils_reads_it(void **state)
{
    (void)state;
    for (char **library = libraries; *library; library++) {
        struct link_map *map = dlopen(*library, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(map);
        check_library(map->l_name, map->l_name);
        dlclose(map);
    }
}

static void test_an_address_before_and_after_all_functions_has_no_rule(void **state)
{
    struct object object = {.path = ""};
    uint32_t row;
    (void)state;
    assert_int_equal(dl_iterate_phdr(find_object, &object), 1);
    assert_int_equal(unwind_rule_at(object.table, object.bias + 1, &row).end, UNWIND_END_UNKNOWN);
    assert_int_equal(unwind_rule_at(object.table, UINT64_MAX, &row).end, UNWIND_END_UNKNOWN);
}

static void test_a_table_of_another_form_has_no_rules(void **state)
{
    uint32_t row;
    uint8_t table[64] = {2, 0x1b, 0x03, 0x3b};
    (void)state;
    assert_int_equal(unwind_rule_at(table, 4711, &row).end, UNWIND_END_UNKNOWN);
    memcpy(table, (uint8_t[]){1, 0x1b, 0x03, 0xff}, 4);
    assert_int_equal(unwind_rule_at(table, 4711, &row).end, UNWIND_END_UNKNOWN);
    memcpy(table, (uint8_t[]){1, 0x1b, 0xff, 0x3b}, 4);
    assert_int_equal(unwind_rule_at(table, 4711, &row).end, UNWIND_END_UNKNOWN);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_row_of_the_c_library_is_as_binutils_reads_it),
        cmocka_unit_test(test_each_row_of_this_program_is_as_binutils_reads_it),
        cmocka_unit_test(test_each_row_of_the_libraries_named_is_as_binutils_reads_it),
        cmocka_unit_test(test_an_address_before_and_after_all_functions_has_no_rule),
        cmocka_unit_test(test_a_table_of_another_form_has_no_rules),
    };
    libraries = argv + (argc > 0);
    return cmocka_run_group_tests_name("unwind_rules", tests, NULL, NULL);
}

#else

int main(void)
{
    CANNOT_BE_SEEN("the rules are x86-64's");
    return 0;
}

#endif
