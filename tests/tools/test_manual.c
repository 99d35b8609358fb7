/* SPDX-License-Identifier: MIT
 *
 * The manual pages tell of every option and verb that the tools' tables have, with its letter and
 * its argument. The pages' folder is the first argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *test_folder;

static const struct {
    char letter;
    const char *name;
    const char *argument;
} stat_rows[] =
    {
#define OPTION(_NAME, _letter, _long, _argument, _text) {_letter, _long, _argument},
#include "options.def"
},
  run_rows[] = {
#define OPTION(_NAME, _letter, _long, _argument, _variable, _text) {_letter, _long, _argument},
#include "run_options.def"
};

static const char *const verbs[] = {
#define VERB(_NAME, _name, _text) _name,
#include "verbs.def"
};

static const char *const variables[] = {
#define OPTION(_NAME, _letter, _long, _argument, _variable, _text) _variable,
#include "run_options.def"
};

static void test_read(const char *name, char *text, size_t size)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", test_folder, name);
    file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* ".It Fl p , Fl -pid Ar list", as mdoc has it. */
static void test_expect_option(const char *page, char letter, const char *name,
                               const char *argument)
{
    char wanted[128];
    char *end = wanted;

    end += sprintf(end, "\n.It ");
    if (letter) {
        end += sprintf(end, "Fl %c , ", letter);
    }
    end += sprintf(end, "Fl -%s%s", name, argument[0] != '\0' ? " Ar " : "\n");
    for (; *argument != '\0'; argument++) {
        *end++ = (char)(*argument | 0x20); /* the page has arguments in lower case */
    }
    *end = '\0';
    if (!strstr(page, wanted)) {
        fail_msg("the manual page lacks this line:%s", wanted);
    }
}

static void test_stat_page_tells_of_every_option_and_verb(void **state)
{
    static char page[1 << 16];

    (void)state;
    test_read("gpulimit-stat.1", page, sizeof(page));
    for (size_t i = 0; i < sizeof(stat_rows) / sizeof(stat_rows[0]); i++) {
        test_expect_option(page, stat_rows[i].letter, stat_rows[i].name, stat_rows[i].argument);
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        char wanted[64];

        snprintf(wanted, sizeof(wanted), "\n.It Cm %s\n", verbs[i]);
        assert_non_null(strstr(page, wanted));
    }
}

static void test_run_page_tells_of_every_option_and_variable(void **state)
{
    static char page[1 << 16];

    (void)state;
    test_read("gpulimit-run.1", page, sizeof(page));
    for (size_t i = 0; i < sizeof(run_rows) / sizeof(run_rows[0]); i++) {
        test_expect_option(page, run_rows[i].letter, run_rows[i].name, run_rows[i].argument);
        assert_non_null(strstr(page, variables[i]));
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat_page_tells_of_every_option_and_verb),
        cmocka_unit_test(test_run_page_tells_of_every_option_and_variable),
    };

    if (argc != 2) {
        return EXIT_FAILURE;
    }
    test_folder = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
