/* SPDX-License-Identifier: MIT
 *
 * Call sites of a ledger: their frames, and the rule which of these is named.
 */
#include "sites.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

/* Files of Python that ask for memory on behalf of whoever called them. */
static const char *const sites_frameworks[] = {
    "*-packages/torch/*",
    "*-packages/jax/*",
    "*-packages/jaxlib/*",
    "*-packages/cupy/*",
    "*-packages/cupy_backends/*",
    "*-packages/numba/*",
    "*-packages/numba_cuda/*",
    "*-packages/numpy/*",
    /* Decorators that frameworks wrap the program's functions with pass through these. */
    "*/python3*/contextlib.py",
    "*/python3*/functools.py",
    "<frozen *>",
    /* Code that torch.compile and numpy make while the program runs. */
    "*/torchinductor_*",
    "<eval_with_key>*",
    "<__array_function__ internals>",
};

/* Names of modules that every request passes through, whoever makes it. */
static const char *const sites_passages[] = {
    "libgpulimit*", "libcuda.so*",  "libcudart*",  "libcuda-*",     "libcudadebugger*",
    "libnvidia*",   "libc.so*",     "libc-[0-9]*", "ld-linux*.so*", "ld-[0-9]*.so",
    "libdl.so*",    "libdl-[0-9]*", "libpthread*",
};

uint32_t sites_get_count(const struct gpulimit_site *site)
{
    return site ? (uint32_t)site->native_count + site->python_count : 0;
}

struct sites_frame sites_get_frame(const struct gpulimit_ledger *ledger,
                                   const struct gpulimit_site *site, uint32_t number)
{
    const struct gpulimit_frame *record = &site->frames[number];
    struct sites_frame frame = {.kind = record->kind, .file = "", .function = ""};

    if (record->kind == GPULIMIT_FRAME_PYTHON) {
        frame.file = gpulimit_reader_text(ledger, record->file);
        frame.function = gpulimit_reader_text(ledger, (uint32_t)(record->place >> 32));
        frame.line = (uint32_t)record->place;
    } else {
        frame.module = gpulimit_reader_module(ledger, record->file);
        frame.address = record->place;
    }
    return frame;
}

static bool sites_matches(const char *text, const char *const patterns[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fnmatch(patterns[i], text, 0) == 0) {
            return true;
        }
    }
    return false;
}

#define SITES_MATCHES(text, patterns)                                                              \
    sites_matches(text, patterns, sizeof(patterns) / sizeof((patterns)[0]))

static bool sites_is_own_python(const struct sites_frame *frame)
{
    return frame->kind == GPULIMIT_FRAME_PYTHON && !SITES_MATCHES(frame->file, sites_frameworks);
}

/* A module that nobody knows is none that every request passes through. */
static bool sites_is_own_native(const struct sites_frame *frame)
{
    const char *path = frame->module ? frame->module->path : "";
    const char *slash = strrchr(path, '/');

    return frame->kind == GPULIMIT_FRAME_NATIVE &&
           !SITES_MATCHES(slash ? slash + 1 : path, sites_passages);
}

static bool sites_is_python(const struct sites_frame *frame)
{
    return frame->kind == GPULIMIT_FRAME_PYTHON;
}

static uint32_t sites_find(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site,
                           bool (*fits)(const struct sites_frame *frame))
{
    for (uint32_t number = 0; number < sites_get_count(site); number++) {
        struct sites_frame frame = sites_get_frame(ledger, site, number);

        if (fits(&frame)) {
            return number;
        }
    }
    return SITES_NO_FRAME;
}

uint32_t sites_choose_python(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    uint32_t number = sites_find(ledger, site, sites_is_own_python);

    return number != SITES_NO_FRAME ? number : sites_find(ledger, site, sites_is_python);
}

uint32_t sites_choose(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    uint32_t number = sites_find(ledger, site, sites_is_own_python);

    if (number == SITES_NO_FRAME) {
        number = sites_find(ledger, site, sites_is_own_native);
    }
    return number == SITES_NO_FRAME && sites_get_count(site) > 0 ? 0 : number;
}

const char *sites_get_tag(const struct gpulimit_ledger *ledger, const struct gpulimit_site *site)
{
    return site ? gpulimit_reader_text(ledger, site->tag) : "";
}

static int sites_compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int sites_compare_frames(const struct sites_frame *a, const struct sites_frame *b)
{
    int order = sites_compare_numbers(a->kind, b->kind);

    order = order != 0 ? order : strcmp(a->file, b->file);
    order = order != 0 ? order : sites_compare_numbers(a->line, b->line);
    order = order != 0 ? order : strcmp(a->function, b->function);
    order = order != 0 ? order
                       : strcmp(a->module ? a->module->path : "", b->module ? b->module->path : "");
    return order != 0 ? order : sites_compare_numbers(a->address, b->address);
}
