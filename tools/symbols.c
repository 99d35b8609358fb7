/* SPDX-License-Identifier: MIT
 *
 * What native code is called, by elfutils' libdwfl. A module is looked at by itself, at the
 * addresses that its file gives it, so each has a Dwfl of its own; it is opened when something in
 * it is first asked for, and both it and the answers are kept.
 */
#include "symbols.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demangle.h"
#include "memory.h"
#include "roots.h"

struct symbols_module {
    struct gpulimit_module identity;
    Dwfl *session;       /* NULL: nothing can be known of it */
    Dwfl_Module *module; /* the one of the session */
    void *answers;       /* a tree of struct symbols_answer */
    size_t places_tried; /* for its file: first here, then each of the roots */
};

struct symbols_answer {
    uint64_t address;
    struct symbol symbol;
    char *readable; /* the function's name, if that in the file is a mangled one; else NULL */
};

struct symbols {
    struct symbols_module **modules;
    size_t count;
    struct roots roots;
};

/* Separate files of debug information by build-id alone: none of another build, and nothing is
 * fetched from the network, for which a table cannot wait. */
static const Dwfl_Callbacks symbols_callbacks = {
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

struct symbols *symbols_open(void)
{
    return memory_check(calloc(1, sizeof(struct symbols)));
}

static void symbols_free_answer(void *answer)
{
    free(((struct symbols_answer *)answer)->readable);
    free(answer);
}

void symbols_close(struct symbols *symbols)
{
    for (size_t i = 0; symbols && i < symbols->count; i++) {
        struct symbols_module *module = symbols->modules[i];

        tdestroy(module->answers, symbols_free_answer);
        dwfl_end(module->session); /* which NULL is fine for */
        free(module);
    }
    if (symbols) {
        free(symbols->modules);
        roots_drop(&symbols->roots);
    }
    free(symbols);
}

void symbols_add_process(struct symbols *symbols, int32_t pid)
{
    if (symbols) {
        roots_add(&symbols->roots, pid);
    }
}

bool symbols_are_built_in(void)
{
    return true;
}

/* A ledger may be anybody's, and so the path in it may be anything: a pipe, a device, a file made
 * to confuse whoever parses it. number: of the root to look in, from 1; 0 ours. Returns a
 * descriptor, or -1. */
static int symbols_open_file(const struct roots *roots, size_t number, const char *path)
{
    struct stat file;
    int fd = -1;

    if (path[0] == '/') {
        fd = number == 0 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                         : roots_open_file(roots, number - 1, path);
    }
    if (fd >= 0 && (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) ||
                    (file.st_uid != 0 && file.st_uid != geteuid()))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool symbols_is_same_build(Dwfl_Module *module, const struct gpulimit_module *identity)
{
    const unsigned char *id;
    GElf_Addr address;
    int bytes = dwfl_module_build_id(module, &id, &address);

    return bytes > 0 && (uint32_t)bytes == identity->build_id_bytes &&
           memcmp(id, identity->build_id, identity->build_id_bytes) == 0;
}

/* Takes a file, for good or bad. Leaves the session NULL where anything is amiss. */
static void symbols_load_file(struct symbols_module *module, int fd)
{
    module->session = dwfl_begin(&symbols_callbacks);
    if (module->session) {
        dwfl_report_begin(module->session);
        module->module = dwfl_report_elf(module->session, module->identity.path,
                                         module->identity.path, fd, 0, true);
        dwfl_report_end(module->session, NULL, NULL);
    }
    if (!module->module) {
        close(fd); /* else the session's */
    }
    if (!module->module || !symbols_is_same_build(module->module, &module->identity)) {
        dwfl_end(module->session);
        module->session = NULL;
        module->module = NULL;
    }
}

/* From wherever there is a file of that name and build: here, or in a container. Asked again when
 * there are more places to look in. */
static void symbols_load(struct symbols_module *module, const struct roots *roots)
{
    while (!module->session && module->places_tried < roots->count + 1) {
        int fd = symbols_open_file(roots, module->places_tried++, module->identity.path);

        if (fd >= 0) {
            symbols_load_file(module, fd);
        }
    }
}

/* The same file, mapped at different places by different processes, is one. */
static bool symbols_is_module(const struct symbols_module *module,
                              const struct gpulimit_module *identity)
{
    return module->identity.build_id_bytes == identity->build_id_bytes &&
           memcmp(module->identity.build_id, identity->build_id, identity->build_id_bytes) == 0 &&
           strcmp(module->identity.path, identity->path) == 0;
}

static struct symbols_module *symbols_get_module(struct symbols *symbols,
                                                 const struct gpulimit_module *identity)
{
    struct symbols_module *module;

    for (size_t i = 0; i < symbols->count; i++) {
        if (symbols_is_module(symbols->modules[i], identity)) {
            symbols_load(symbols->modules[i], &symbols->roots);
            return symbols->modules[i];
        }
    }
    module = memory_check(calloc(1, sizeof(*module)));
    module->identity = *identity;
    symbols_load(module, &symbols->roots);
    symbols->modules = memory_grow(symbols->modules, symbols->count, sizeof(*symbols->modules));
    symbols->modules[symbols->count++] = module;
    return module;
}

/* Through all units of the module, since clang writes no table of addresses (.debug_aranges), which
 * libdwfl relies on. */
static void symbols_search_line(Dwfl_Module *module, uint64_t address, struct symbol *symbol)
{
    Dwarf_Die *unit = NULL;
    Dwarf_Addr bias = 0;

    while ((unit = dwfl_module_nextcu(module, unit, &bias))) {
        Dwarf_Line *place =
            dwarf_haspc(unit, address - bias) == 1 ? dwarf_getsrc_die(unit, address - bias) : NULL;
        int line;

        if (place && dwarf_lineno(place, &line) == 0 && line > 0) {
            symbol->file = dwarf_linesrc(place, NULL, NULL);
            symbol->line = symbol->file ? (uint32_t)line : 0;
            return;
        }
    }
}

static struct symbol symbols_look_up(Dwfl_Module *module, uint64_t address)
{
    struct symbol symbol = {0};
    GElf_Off offset;
    GElf_Sym details;
    Dwfl_Line *place;
    int line = 0;

    symbol.function = dwfl_module_addrinfo(module, address, &offset, &details, NULL, NULL, NULL);
    place = dwfl_module_getsrc(module, address);
    symbol.file = place ? dwfl_lineinfo(place, NULL, &line, NULL, NULL, NULL) : NULL;
    symbol.line = symbol.file && line > 0 ? (uint32_t)line : 0;
    if (!symbol.file) {
        symbols_search_line(module, address, &symbol);
    }
    return symbol;
}

static int symbols_compare_answers(const void *first, const void *second)
{
    const struct symbols_answer *a = first;
    const struct symbols_answer *b = second;

    return a->address < b->address ? -1 : a->address > b->address;
}

struct symbol symbols_find(struct symbols *symbols, const struct gpulimit_module *module,
                           uint64_t return_address)
{
    /* Within the call: what is returned to may be another line, or another function. */
    struct symbols_answer wanted = {.address = return_address - 1};
    struct symbols_answer *answer;
    struct symbols_module *known;
    void **found;

    if (!symbols || return_address == 0) {
        return (struct symbol){0};
    }
    known = symbols_get_module(symbols, module);
    if (!known->session) {
        return (struct symbol){0};
    }
    found = tfind(&wanted, &known->answers, symbols_compare_answers);
    if (found) {
        answer = *found;
        return answer->symbol;
    }
    answer = memory_check(malloc(sizeof(*answer)));
    *answer = (struct symbols_answer){.address = wanted.address,
                                      .symbol = symbols_look_up(known->module, wanted.address)};
    answer->readable = answer->symbol.function ? demangle_name(answer->symbol.function) : NULL;
    if (answer->readable) {
        answer->symbol.function = answer->readable;
    }
    memory_check(tsearch(answer, &known->answers, symbols_compare_answers));
    return answer->symbol;
}
