/* SPDX-License-Identifier: MIT
 *
 * gpulimit-run: sets the environment that libgpulimit.so reads, and becomes the program. It stays
 * out of the way: no fork, so signals, the terminal and the exit status are the program's own.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "option_rows.h"
#include "run_preload.h"

/* As env(1) ends. */
enum { EXIT_OWN = 125, EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

enum option_number {
#define OPTION(_NAME, _letter, _long, _argument, _variable, _text) OPTION_##_NAME,
#include "run_options.def"
    OPTIONS
};

static const struct option_row run_rows[OPTIONS] = {
#define OPTION(_NAME, _letter, _long, _argument, _variable, _text)                                 \
    {_letter, _long, _argument, _text},
#include "run_options.def"
};

static const char *const run_variables[OPTIONS] = {
#define OPTION(_NAME, _letter, _long, _argument, _variable, _text) _variable,
#include "run_options.def"
};

static void run_print_help(void)
{
    puts("Usage: gpulimit-run [OPTIONS] [--] COMMAND [ARGUMENT]...\n"
         "Runs a CUDA program with a hard limit on its GPU memory.\n\n"
         "  gpulimit-run -m 1G -- python train.py\n"
         "  gpulimit-run -m 0=2G,1=512M --count allocations -- ./solver input.dat\n\n"
         "Options:");
    for (size_t i = 0; i < OPTIONS; i++) {
        char letter[] = {'-', run_rows[i].letter, ',', ' ', '\0'};

        printf("  %s--%-10s %-6s %s\n", run_rows[i].letter ? letter : "    ", run_rows[i].name,
               run_rows[i].argument, run_rows[i].text);
    }
    puts("\nWithout -m there is no limit, but a ledger for gpulimit-stat all the same.\n"
         "Exit: COMMAND's own status; 125 if this program fails, 126 if COMMAND cannot be run,\n"
         "127 if it is not found.");
}

/* One item of GPU_LIMIT_MB: [DEVICE=]SIZE. The library knows the syntax; this refuses what cannot
 * be meant. */
static bool run_is_limit(const char *item, size_t length)
{
    const char *equals = memchr(item, '=', length);
    const char *size = equals ? equals + 1 : item;
    size_t size_length = length - (size_t)(size - item);
    size_t digits = strspn(size, "0123456789.");

    return size_length > 0 && equals != item && digits > 0 && size[0] != '.' &&
           digits <= size_length &&
           digits + strspn(size + digits, "%KMGTkmgtiIbB") >= size_length &&
           size_length - digits <= 3;
}

static bool run_check_memory(const char *text)
{
    const char *at = text;

    for (;;) {
        size_t length = strcspn(at, ",");

        if (!run_is_limit(at, length)) {
            fprintf(
                stderr,
                "gpulimit-run: -m '%s' is no amount of memory (examples: -m 1024, which is MiB, "
                "-m 1.5G, -m 50%%, -m 0=1G,1=2G)\n",
                text);
            return false;
        }
        if (at[length] == '\0') {
            return true;
        }
        at += length + 1;
    }
}

static bool run_check_value(enum option_number option, const char *value)
{
    if (option == OPTION_MEMORY) {
        return run_check_memory(value);
    }
    if (option == OPTION_COUNT && strcmp(value, "process") != 0 &&
        strcmp(value, "allocations") != 0) {
        fprintf(stderr, "gpulimit-run: --count is process or allocations, not '%s'\n", value);
        return false;
    }
    if (option == OPTION_VERBOSE && (strlen(value) != 1 || value[0] < '0' || value[0] > '4')) {
        fprintf(stderr, "gpulimit-run: --verbose is a number from 0 to 4, not '%s'\n", value);
        return false;
    }
    return true;
}

/* Reads the options into the environment. Returns false after the complaint. */
static bool run_take_options(int argc, char **argv, const char **library)
{
    struct option longs[OPTIONS + 1];
    char shorts[2 * OPTIONS + 2];
    int value;

    /* '+': what follows COMMAND is COMMAND's. */
    option_rows_list(run_rows, OPTIONS, '+', longs, shorts);
    while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        enum option_number option = (enum option_number)option_rows_find(run_rows, OPTIONS, value);

        if (option == OPTIONS) { /* getopt has complained */
            return false;
        }
        if (option == OPTION_HELP) {
            run_print_help();
            exit(EXIT_SUCCESS);
        }
        if (option == OPTION_VERSION) {
            puts("gpulimit-run " GPULIMIT_VERSION);
            exit(EXIT_SUCCESS);
        }
        if (option == OPTION_LIB) {
            *library = optarg;
        } else if (!run_check_value(option, optarg)) {
            return false;
        } else if (setenv(run_variables[option], optarg, 1) != 0) {
            perror("gpulimit-run: environment");
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    const char *given = NULL;
    char library[PATH_MAX];
    char *preload;
    int status;

    if (!run_take_options(argc, argv, &given)) {
        fputs("Try 'gpulimit-run --help'.\n", stderr);
        return EXIT_OWN;
    }
    if (optind == argc) {
        fputs("gpulimit-run: which program? (example: gpulimit-run -m 1G -- python train.py)\n",
              stderr);
        return EXIT_OWN;
    }
    if (!preload_find(given, library)) {
        return EXIT_OWN;
    }
    preload = preload_join(library, getenv("LD_PRELOAD"));
    if (!preload || setenv("LD_PRELOAD", preload, 1) != 0) {
        perror("gpulimit-run: environment");
        return EXIT_OWN;
    }
    free(preload);
    /* The program's NVTX, if it has one, tells the library its ranges; a profiler's own comes
     * first. By its name alone, so that nobody loads it who has it not preloaded. */
    if (setenv("NVTX_INJECTION64_PATH", "libgpulimit.so", 0) != 0) {
        perror("gpulimit-run: environment");
        return EXIT_OWN;
    }
    execvp(argv[optind], argv + optind);
    status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    fprintf(stderr, "gpulimit-run: '%s': %s\n", argv[optind], strerror(errno));
    return status;
}
