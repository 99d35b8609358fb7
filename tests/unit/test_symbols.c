/* SPDX-License-Identifier: MIT
 *
 * Addresses of this very program get their names from its file, and from no file that cannot be
 * trusted to be the one that was loaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cannot.h"
#include "emit_site.h"
#include "memory.h"
#include "symbols.h"

static struct gpulimit_module test_self;
static uint64_t test_base; /* what the loader added to the file's addresses */

__attribute__((noinline)) static uint64_t test_get_return_address(void)
{
    return (uintptr_t)__builtin_return_address(0) - test_base;
}

enum { TEST_CALLER_LINE = __LINE__ + 4 };
__attribute__((noinline)) static uint64_t test_caller(uint32_t *line)
{
    *line = 0; /* what follows the call is another line */
    uint64_t address = test_get_return_address();

    *line = TEST_CALLER_LINE;
    return address;
}

static int test_find_base(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    (void)data;
    test_base = object->dlpi_addr;
    return 1; /* the program comes first */
}

static int test_set_up(void **state)
{
    const void *id;
    ssize_t length = readlink("/proc/self/exe", test_self.path, sizeof(test_self.path) - 1);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    Elf *elf;

    (void)state;
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    length = length > 0 ? dwelf_elf_gnu_build_id(elf, &id) : 0;
    if (length <= 0) {
        return -1;
    }
    memcpy(test_self.build_id, id, (size_t)length);
    test_self.build_id_bytes = (uint32_t)length;
    elf_end(elf);
    close(fd);
    dl_iterate_phdr(test_find_base, NULL);
    return 0;
}

static void test_expect_unknown(struct symbols *symbols, const struct gpulimit_module *module)
{
    uint32_t line;
    struct symbol symbol = symbols_find(symbols, module, test_caller(&line));

    assert_null(symbol.function);
    assert_null(symbol.file);
    assert_int_equal(symbol.line, 0);
}

static void test_a_return_address_is_within_the_call(void **state)
{
    struct symbols *symbols = symbols_open();
    uint32_t line;
    uint64_t address = test_caller(&line);

    (void)state;
    for (int time = 0; time < 2; time++) { /* looked up, and kept */
        struct symbol symbol = symbols_find(symbols, &test_self, address);

        assert_non_null(symbol.function);
        assert_string_equal(symbol.function, "test_caller");
        assert_non_null(symbol.file);
        assert_string_equal(strrchr(symbol.file, '/'), "/test_symbols.c");
        assert_int_equal(symbol.line, line);
    }
    symbols_close(symbols);
}

static void test_labels_have_what_is_known(void **state)
{
    struct symbols *symbols = symbols_open();
    uint32_t line;
    struct sites_frame frame = {.kind = GPULIMIT_FRAME_NATIVE,
                                .module = &test_self,
                                .address = test_caller(&line),
                                .file = "",
                                .function = ""};
    char *wanted = memory_print("test_symbols.c:%u test_caller", line);
    char *label = emit_site_label(&frame, symbols, false);
    char *beginning;

    (void)state;
    assert_string_equal(label, wanted);
    free(label);
    label = emit_site_label(&frame, symbols, true);
    beginning =
        memory_print("%s+0x%llx test_caller (", test_self.path, (unsigned long long)frame.address);
    assert_int_equal(strncmp(label, beginning, strlen(beginning)), 0);
    free(wanted);
    wanted = memory_print("/test_symbols.c:%u)", line);
    assert_string_equal(strrchr(label, '/'), wanted);
    free(label);
    free(beginning);
    free(wanted);

    label = emit_site_label(&frame, NULL, false);
    wanted = memory_print("test_symbols+0x%llx", (unsigned long long)frame.address);
    assert_string_equal(label, wanted);
    free(label);
    free(wanted);
    frame.module = NULL;
    frame.address = 5;
    label = emit_site_label(&frame, symbols, true);
    assert_string_equal(label, "?+0x5");
    free(label);
    symbols_close(symbols);
}

static void test_addresses_of_nothing_have_no_name(void **state)
{
    static const uint64_t addresses[] = {0, 1, UINT64_C(1) << 40, UINT64_MAX};
    struct symbols *symbols = symbols_open();

    (void)state;
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        assert_null(symbols_find(symbols, &test_self, addresses[i]).file);
    }
    symbols_close(symbols);
}

static void test_another_build_is_not_believed(void **state)
{
    struct symbols *symbols = symbols_open();
    struct gpulimit_module other = test_self;

    (void)state;
    other.build_id[0] ^= 1;
    test_expect_unknown(symbols, &other);
    other = test_self;
    other.build_id_bytes--;
    test_expect_unknown(symbols, &other);
    other.build_id_bytes = 0;
    test_expect_unknown(symbols, &other);
    symbols_close(symbols);
}

static void test_what_is_no_program_has_no_names(void **state)
{
    static const char *const paths[] = {"",          "relative", "/no/such/file",
                                        "/dev/null", "/proc",    "/etc/passwd"};
    struct symbols *symbols = symbols_open();

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct gpulimit_module other = test_self;

        strcpy(other.path, paths[i]);
        test_expect_unknown(symbols, &other);
    }
    symbols_close(symbols);
}

/* The same file, were it somebody else's: root must not parse what any user puts there. */
static void test_files_of_others_are_not_opened(void **state)
{
    char path[] = "/tmp/test_symbols.XXXXXX";
    struct symbols *symbols = symbols_open();
    struct gpulimit_module copy = test_self;
    int fd = mkstemp(path);
    char *command = memory_print("cp '%s' %s", test_self.path, path);
    uint32_t line;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(system(command), 0);
    free(command);
    strcpy(copy.path, path);
    assert_non_null(symbols_find(symbols, &copy, test_caller(&line)).function);
    symbols_close(symbols);
    if (geteuid() == 0) { /* nobody else can give a file away */
        symbols = symbols_open();
        assert_int_equal(chown(path, 65534, 65534), 0);
        test_expect_unknown(symbols, &copy);
        symbols_close(symbols);
    }
    unlink(path);
}

/* A container of its own: a folder as the root of a process, which sees files by other names. */
static pid_t test_begin_in_root(const char *folder)
{
    int ready[2];
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        close(ready[0]);
        if (chroot(folder) != 0 &&
            (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || chroot(folder) != 0)) {
            _exit(1);
        }
        if (write(ready[1], &byte, 1) == 1) {
            pause();
        }
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) {
        waitpid(child, NULL, 0);
        child = -1;
    }
    close(ready[0]);
    return child;
}

static void test_files_of_a_container_are_found_in_it(void **state)
{
    static const char *const links[] = {"absolute", "relative", "outside"};
    static const char *const targets[] = {"/copy", "../copy", NULL};
    char folder[] = "/tmp/test_symbols.XXXXXX";
    struct symbols *symbols = symbols_open();
    struct gpulimit_module there = test_self;
    char *command;
    uint32_t line;
    pid_t child;

    (void)state;
    assert_non_null(mkdtemp(folder));
    command = memory_print("cp '%s' %s/copy", test_self.path, folder);
    assert_int_equal(system(command), 0);
    free(command);
    for (int i = 0; i < 3; i++) {
        char *path = memory_print("%s/%s", folder, links[i]);

        assert_int_equal(symlink(targets[i] ? targets[i] : test_self.path, path), 0);
        free(path);
    }
    child = test_begin_in_root(folder);
    if (child > 0) {
        strcpy(there.path, "/copy");
        test_expect_unknown(symbols, &there); /* nobody has said where to look */
        symbols_add_process(symbols, getpid());
        test_expect_unknown(symbols, &there);
        symbols_add_process(symbols, child);
        symbols_add_process(symbols, child);
        assert_string_equal(symbols_find(symbols, &there, test_caller(&line)).function,
                            "test_caller");
        for (int i = 0; i < 2; i++) {
            snprintf(there.path, sizeof(there.path), "/%s", links[i]);
            assert_non_null(symbols_find(symbols, &there, test_caller(&line)).function);
        }
        strcpy(there.path, "/outside"); /* there, that leads nowhere */
        test_expect_unknown(symbols, &there);
        strcpy(there.path, "/copy");
        there.build_id[0] ^= 1;
        test_expect_unknown(symbols, &there);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else {
        CANNOT_BE_SEEN("no process may have a root of its own here");
    }
    symbols_close(symbols);
    command = memory_print("rm -r %s", folder);
    assert_int_equal(system(command), 0);
    free(command);
}

static void test_without_symbols_nothing_has_a_name(void **state)
{
    (void)state;
    assert_true(symbols_are_built_in());
    test_expect_unknown(NULL, &test_self);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_return_address_is_within_the_call),
        cmocka_unit_test(test_labels_have_what_is_known),
        cmocka_unit_test(test_addresses_of_nothing_have_no_name),
        cmocka_unit_test(test_another_build_is_not_believed),
        cmocka_unit_test(test_what_is_no_program_has_no_names),
        cmocka_unit_test(test_files_of_others_are_not_opened),
        cmocka_unit_test(test_files_of_a_container_are_found_in_it),
        cmocka_unit_test(test_without_symbols_nothing_has_a_name),
    };

    return cmocka_run_group_tests(tests, test_set_up, NULL);
}
