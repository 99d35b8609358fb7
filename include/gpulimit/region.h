/* SPDX-License-Identifier: MIT
 *
 * The layout of a ledger file: what libgpulimit.so writes and gpulimit-stat reads. Nothing else.
 *
 * Fixed width, little endian as the machine is, offsets instead of pointers. Every offset below is
 * pinned by tests/abi/test_region_layout.c; a change that moves one needs a new
 * GPULIMIT_REGION_VERSION.
 *
 *        0  +--------------------------------------+
 *           | struct gpulimit_header               |  identity, written once; extents[] grows
 *     4096  +--------------------------------------+
 *           | struct gpulimit_device[16]           |  counters, one record a device
 *    12288  +--------------------------------------+
 *           | extent: API names                    |  char[GPULIMIT_API_BYTES] each, written once
 *           +--------------------------------------+
 *           | extent: entries 0 .. n-1             |  one live allocation each; kind 0 = free slot
 *           +--------------------------------------+
 *           | extent: entries n .. 3n-1            |  added when the first is full, and so on
 *           +--------------------------------------+
 *           | extents: modules, texts, sites       |  added when there is one; where from
 *           +--------------------------------------+
 *           | extents: tallies, timelines          |  added when there is one; rewritten
 *           +--------------------------------------+
 *           | extents: events, marks               |  one each: rings, the newest over the oldest
 *           +--------------------------------------+
 *
 * Who may write: the process that created the file, under one lock of its own. Readers take no
 * lock. A record (device, entry, tally, timeline) begins with a sequence number: odd while it is
 * being written. The writer makes it odd, stores the fields with release order, then stores the
 * next even number with release order. A reader that sees the same even number before and after has
 * seen one moment. A writer killed half-way leaves its one record odd for good; a reader gives up
 * on it after some tries and says so. An extent is allocated on disk before extents_used, stored
 * with release order, makes it known.
 */
#ifndef GPULIMIT_REGION_H
#define GPULIMIT_REGION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define GPULIMIT_REGION_MAGIC   "GPULIMIT"
#define GPULIMIT_REGION_VERSION 1u
#define GPULIMIT_REGION_PREFIX  "gpulimit." /* of every file name in GPU_LIMIT_DIR */

/* The file's permissions once its process has ended, or was found dead; 0600 before. Its
 * modification time is then that of the end, or of the finding. */
#define GPULIMIT_REGION_DEAD_MODE 0400

#define GPULIMIT_DEVICES   16u /* a process's devices beyond these are limited, but not listed */
#define GPULIMIT_EXTENTS   64u
#define GPULIMIT_API_BYTES 48u
#define GPULIMIT_NO_LIMIT  UINT64_MAX

#define GPULIMIT_TEXT_BYTES  128u /* of a file's or function's name; the end of a longer one */
#define GPULIMIT_SITE_FRAMES 31u

#define GPULIMIT_UNKNOWN_NAMES 8u /* the first so many are listed */

#define GPULIMIT_TIMELINE_SAMPLES 255u

enum gpulimit_kind {
    GPULIMIT_KIND_NONE, /* a free slot */
#define KIND(_name, _NAME, _text) GPULIMIT_KIND_##_NAME,
#include "gpulimit/tbl/kinds.def"
    GPULIMIT_KINDS
};

enum gpulimit_section {
    GPULIMIT_SECTION_NONE,
    GPULIMIT_SECTION_APIS,      /* records of GPULIMIT_API_BYTES, NUL-padded names */
    GPULIMIT_SECTION_ENTRIES,   /* struct gpulimit_entry */
    GPULIMIT_SECTION_MODULES,   /* struct gpulimit_module; append-only, likewise below */
    GPULIMIT_SECTION_TEXTS,     /* records of GPULIMIT_TEXT_BYTES, NUL-padded */
    GPULIMIT_SECTION_SITES,     /* struct gpulimit_site */
    GPULIMIT_SECTION_TALLIES,   /* struct gpulimit_tally; rewritten, likewise timelines */
    GPULIMIT_SECTION_TIMELINES, /* struct gpulimit_timeline, one a device */
    GPULIMIT_SECTION_EVENTS,    /* struct gpulimit_event; a ring in one extent, likewise marks */
    GPULIMIT_SECTION_MARKS,     /* struct gpulimit_mark */
};

enum gpulimit_count_mode {
    GPULIMIT_COUNT_PROCESS,     /* charged = committed + overhead */
    GPULIMIT_COUNT_ALLOCATIONS, /* charged = requested */
};

/* Who says what the driver takes outside any allocation call. */
enum gpulimit_truth {
    GPULIMIT_TRUTH_OFF,   /* nobody: overhead is not measured */
    GPULIMIT_TRUTH_NVML,  /* NVML's figure for the process */
    GPULIMIT_TRUTH_DELTA, /* what a card has less after the calls that are known to take it: NVML
                             does not list the process */
    GPULIMIT_TRUTHS
};

/* A run of records of one section. The records of a section are numbered through its extents in
 * order. */
struct gpulimit_extent {
    uint32_t section; /* enum gpulimit_section */
    uint32_t count;   /* records */
    uint64_t offset;  /* bytes from the start of the file */
};

struct gpulimit_header {
    char magic[8]; /* written last, when all that follows is in place */
    uint32_t version;
    uint32_t header_bytes; /* sizeof(struct gpulimit_header), likewise below */
    uint32_t device_bytes;
    uint32_t entry_bytes;
    uint32_t devices_offset;
    uint32_t kinds; /* GPULIMIT_KINDS of the writer: later rows of kinds.def are unknown to it */

    /* Whose it is. A pid alone names nobody: pids are reused, and differ between namespaces. */
    int32_t pid;
    uint32_t uid;
    uint64_t pid_namespace;   /* inode of /proc/self/ns/pid; 0 unknown */
    uint64_t start_ticks;     /* field 22 of /proc/self/stat */
    uint64_t created_time_ns; /* CLOCK_REALTIME at creation */
    uint64_t created_mono_ns; /* CLOCK_MONOTONIC at the same moment */
    char boot_id[40];
    char library_version[24];
    char command[1024]; /* /proc/self/cmdline: arguments, each ended by NUL */
    char notebook[256]; /* JPY_SESSION_NAME */
    char slurm_job_id[64];
    char cgroup[256];
    char limit_text[128]; /* GPU_LIMIT_MB as it was set; empty if it was not */
    char group[64];
    uint32_t command_bytes; /* used bytes of command[] */
    uint32_t count_mode;    /* enum gpulimit_count_mode */

    _Atomic uint64_t ended_time_ns; /* CLOCK_REALTIME at exit; 0 while running or when killed */
    _Atomic uint64_t
        entries_unlisted;          /* live allocations that found no slot (no space for the file) */
    _Atomic uint32_t extents_used; /* extents[0 .. extents_used-1] are valid */
    uint32_t reserved;
    struct gpulimit_extent extents[GPULIMIT_EXTENTS];

    /* From here on: appended within version 1. A file whose header_bytes ends before a member does
     * not have it; new members go to the end. */

    /* Functions about memory, of a driver newer than the library, that the program has been given
     * and that nobody counts. The first byte of a name is written last; a name that is "" is none.
     */
    char unknown_names[GPULIMIT_UNKNOWN_NAMES][GPULIMIT_API_BYTES];
};

/* What one device holds for the process. The counters are those of fields.def. */
struct gpulimit_device {
    _Atomic uint32_t sequence;
    _Atomic uint32_t in_use; /* 1 once the process has used the device */
    uint32_t gpu_index;      /* CUDA's ordinal, as this process numbers its devices */
    uint32_t reserved;
    uint64_t total_bytes; /* the card's memory */
    char gpu_uuid[48];    /* "GPU-..." or "MIG-..." */
#define FIELD(_name, _type, _text) _Atomic uint64_t _name;
#include "gpulimit/tbl/fields.def"
    struct {
        _Atomic uint64_t bytes; /* committed; requested when count_mode is allocations */
        _Atomic uint64_t count; /* live allocations */
    } by_kind[16];              /* by enum gpulimit_kind */
    /* What overhead_bytes rests on, enum gpulimit_truth. */
    _Atomic uint64_t truth_source;
    /* Of charged_bytes, what the driver's own figure for a process leaves out: managed memory, a
     * heap that no kernel has used yet. */
    _Atomic uint64_t hidden_bytes;
    /* When peak_bytes was reached, by CLOCK_MONOTONIC, its number (see struct gpulimit_tally), and
     * how much of it was overhead. */
    _Atomic uint64_t peak_mono_ns;
    _Atomic uint64_t peak_epoch;
    _Atomic uint64_t peak_overhead_bytes;
    _Atomic uint64_t
        driver_denials;            /* requests that the driver refused, though the limit did not */
    _Atomic uint64_t denied_bytes; /* asked for by all requests that the limit refused */
    _Atomic uint64_t denied_mono_ns; /* when the latest of them was refused; 0 none was */
    _Atomic uint64_t largest_bytes;  /* the largest allocation that succeeded, as requested */
    uint64_t spare[3];
};

/* One live allocation. */
struct gpulimit_entry {
    _Atomic uint32_t sequence;
    _Atomic uint32_t place;   /* kind | device << 8 | api << 16, see GPULIMIT_PLACE */
    _Atomic uint64_t address; /* device pointer, or handle for vmm */
    _Atomic uint64_t requested_bytes;
    _Atomic uint64_t
        committed_bytes; /* async: the request itself; the pool's idle rest is no entry's */
    _Atomic uint64_t born_mono_ns; /* CLOCK_MONOTONIC; the writer's time namespace */
    _Atomic uint32_t thread_id;    /* gettid() */
    _Atomic uint32_t site;         /* call site; 0 unknown */
    _Atomic uint64_t owner;        /* context or pool handle; 0 none */
    _Atomic uint32_t tag;    /* number of the text that the thread had pushed, from 1; 0 none */
    _Atomic uint32_t stream; /* number of the text that names the stream, likewise */
};

/* A file that native code was loaded from. Written once, before a site names it. */
struct gpulimit_module {
    uint64_t start, end; /* addresses that it was mapped at */
    uint8_t build_id[32];
    uint32_t build_id_bytes; /* 0: it has none */
    char path[460];          /* NUL-terminated; the end of one that is too long */
};

enum gpulimit_frame_kind {
    GPULIMIT_FRAME_NATIVE,
    GPULIMIT_FRAME_PYTHON,
};

struct gpulimit_frame {
    uint32_t kind;  /* enum gpulimit_frame_kind */
    uint32_t file;  /* native: number of its module, from 1, 0 unknown; python: number of a text,
                       likewise */
    uint64_t place; /* native: address within the module, as its ELF file counts them, of the return
                       address; python: number of the function's text << 32 | line */
};

/* Where a program asked for memory: its stack, the innermost frame first, native frames before
 * Python's. Sites are numbered from 1 in gpulimit_entry. Written once, before an entry names it. */
struct gpulimit_site {
    uint16_t native_count, python_count;
    uint32_t reserved;
    uint64_t spare;
    struct gpulimit_frame frames[GPULIMIT_SITE_FRAMES]; /* native_count + python_count of them */
};

/* What one call site (0: those without one) holds on one device, and held at the peak. Changed with
 * each allocation and free. */
struct gpulimit_tally {
    _Atomic uint32_t sequence;
    _Atomic uint32_t device; /* with site, written once, before anything is counted */
    _Atomic uint32_t site;
    _Atomic uint32_t peak_count;
    _Atomic uint64_t bytes; /* live; committed, or requested when count_mode is allocations */
    _Atomic uint64_t allocations_total;
    _Atomic uint64_t frees_total;
    /* Of the device's peak number peak_epoch: what was live here then. If the device has seen a
     * later peak, nothing has changed here since, and what is live now was live then. */
    _Atomic uint64_t peak_epoch;
    _Atomic uint64_t peak_bytes;
    uint64_t spare;
};

/* How full a device was, from the first use of it on: samples[0 .. count-1], each of interval_ns.
 * When all are full, neighbours are joined and the interval doubles. */
struct gpulimit_timeline {
    _Atomic uint32_t sequence;
    uint32_t device;
    _Atomic uint32_t count;
    uint32_t reserved;
    _Atomic uint64_t interval_ns;
    uint64_t start_mono_ns;
    struct {
        _Atomic uint64_t highest_bytes, lowest_bytes; /* charged */
        _Atomic uint64_t limit_bytes;                 /* at the end of the interval */
        _Atomic uint64_t denials;                     /* in it */
    } samples[GPULIMIT_TIMELINE_SAMPLES];
};

enum gpulimit_event_what {
    GPULIMIT_EVENT_NONE,
    GPULIMIT_EVENT_ALLOCATED,
    GPULIMIT_EVENT_FREED,
    GPULIMIT_EVENT_REFUSED,        /* by the limit */
    GPULIMIT_EVENT_DRIVER_REFUSED, /* by the driver */
};

/* Something that happened: a refusal, or an allocation or free of 1 MiB or more. The n-th event of
 * a process, from 1, lies at place (n - 1) modulo the extent's count. The number is 0 while the
 * record is being written and comes last, with release order: a reader that sees the same one
 * before and after has seen one event. Marks likewise. */
struct gpulimit_event {
    _Atomic uint64_t number;
    _Atomic uint64_t mono_ns;
    _Atomic uint32_t place; /* as of an entry */
    _Atomic uint32_t what;  /* enum gpulimit_event_what */
    _Atomic uint32_t thread_id;
    _Atomic uint32_t site, tag;
    uint32_t reserved;
    _Atomic uint64_t bytes;         /* requested */
    _Atomic uint64_t charged_bytes; /* on the device, afterwards */
    _Atomic uint64_t address;       /* 0 none */
};

/* A point of the program's own: gpulimit_mark("epoch 3"). One record for each device in use. */
struct gpulimit_mark {
    _Atomic uint64_t number;
    _Atomic uint64_t mono_ns;
    _Atomic uint32_t text;
    _Atomic uint32_t device;
    _Atomic uint64_t charged_bytes;
    _Atomic uint64_t peak_bytes; /* the highest since the mark before, or the start */
    _Atomic uint64_t requested_bytes;
    _Atomic uint64_t allocations_total;
    _Atomic uint32_t live_allocations;
    _Atomic uint32_t denials; /* since the start */
};

#define GPULIMIT_PLACE(kind, device, api)                                                          \
    ((uint32_t)(kind) | (uint32_t)(device) << 8 | (uint32_t)(api) << 16)
#define GPULIMIT_PLACE_KIND(place)   ((place)&0xffu)
#define GPULIMIT_PLACE_DEVICE(place) ((place) >> 8 & 0xffu)
#define GPULIMIT_PLACE_API(place)    ((place) >> 16)

#define GPULIMIT_DEVICES_OFFSET 4096u
#define GPULIMIT_EXTENTS_OFFSET 12288u /* where the first extent may begin */

/* The least header_bytes of a valid file. */
#define GPULIMIT_HEADER_BYTES_MIN offsetof(struct gpulimit_header, unknown_names)

_Static_assert(sizeof(struct gpulimit_header) <= GPULIMIT_DEVICES_OFFSET,
               "the header fits its page");
_Static_assert(sizeof(struct gpulimit_device) == 512, "16 devices take two pages");
_Static_assert(sizeof(struct gpulimit_entry) == 64, "an entry is one cache line");
_Static_assert(sizeof(struct gpulimit_module) == 512, "no padding");
_Static_assert(sizeof(struct gpulimit_site) == 512, "no padding");
_Static_assert(sizeof(struct gpulimit_tally) == 64, "a tally is one cache line");
_Static_assert(sizeof(struct gpulimit_timeline) == 8192, "a timeline takes two pages");
_Static_assert(sizeof(struct gpulimit_event) == 64, "no padding");
_Static_assert(sizeof(struct gpulimit_mark) == 64, "no padding");
_Static_assert(GPULIMIT_DEVICES_OFFSET + GPULIMIT_DEVICES * sizeof(struct gpulimit_device) ==
                   GPULIMIT_EXTENTS_OFFSET,
               "the drawing above");

#endif
