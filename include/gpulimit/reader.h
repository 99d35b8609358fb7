/* SPDX-License-Identifier: MIT
 *
 * Reading ledger files, for programs that show them: what gpulimit-stat is built on. The files
 * belong to other processes, perhaps other users, and are written to at this very moment, so
 * nothing in them is trusted and nothing here disturbs a writer: the bytes are copied with pread,
 * never mapped (a file cut short under a mapping is SIGBUS), and no lock is taken.
 *
 * Thread rules: no function has hidden state; a ledger belongs to the caller and is constant once
 * read. Process rule: never read the ledger that the calling process itself writes. POSIX drops all
 * record locks of a process when it closes any descriptor of the file, and the writer's lock shows
 * that it lives.
 */
#ifndef GPULIMIT_READER_H
#define GPULIMIT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpulimit/region.h"

#define GPULIMIT_READER_REASON_BYTES 160u        /* room for a reason, its NUL included */
#define GPULIMIT_READER_ENTRIES_MAX  (16u << 20) /* slots; a file that claims more is refused */
#define GPULIMIT_READER_APIS_MAX     (1u << 16)  /* names; an entry's index has 16 bits */

/* Where allocations were asked for is detail: of a file that claims more, the first so many. */
#define GPULIMIT_READER_MODULES_MAX (1u << 13)
#define GPULIMIT_READER_TEXTS_MAX   (1u << 17)
#define GPULIMIT_READER_SITES_MAX   (1u << 16)

/* How it came to be so, likewise. */
#define GPULIMIT_READER_TALLIES_MAX (1u << 18)
#define GPULIMIT_READER_RING_MAX    (1u << 16) /* events, and marks */

/* The outcomes of reading. The names of gpulimit_reader_status_name are part of the JSON output. */
enum gpulimit_reader_status {
    GPULIMIT_READER_OK,
    GPULIMIT_READER_GONE,       /* no such file; one that was listed a moment ago went away */
    GPULIMIT_READER_FORBIDDEN,  /* the file may not be read */
    GPULIMIT_READER_UNFINISHED, /* its writer is creating it at this moment */
    GPULIMIT_READER_DAMAGED,    /* not a ledger, or one that contradicts itself */
    GPULIMIT_READER_VERSION,    /* a ledger of another version of the format */
    GPULIMIT_READER_FAILED,     /* a system call failed, or memory ran out */
};

enum gpulimit_state {
    GPULIMIT_STATE_LIVE,   /* its process runs */
    GPULIMIT_STATE_EXITED, /* its process ended and said so */
    GPULIMIT_STATE_STALE,  /* its process is gone without a word: killed, or crashed */
};

/* What to read besides the header and the devices, or-ed together. */
enum gpulimit_reader_parts {
    GPULIMIT_READER_SUMMARY = 0,
    GPULIMIT_READER_ENTRIES = 1, /* live allocations, the names of APIs, and call sites */
    GPULIMIT_READER_HISTORY = 2, /* tallies, timelines, events and marks, and all of ENTRIES */
};

struct gpulimit_ledger_device {
    uint32_t gpu_index; /* as the process numbers its devices */
    bool is_torn;       /* the writer died while writing this: the counters may disagree */
    uint64_t total_bytes;
    char gpu_uuid[49];
#define FIELD(_name, _type, _text) uint64_t _name;
#include "gpulimit/tbl/fields.def"
    struct {
        uint64_t bytes;
        uint64_t count;
    } by_kind[16]; /* by enum gpulimit_kind; may hold kinds that this build does not know */
    enum gpulimit_truth truth_source;
    uint64_t hidden_bytes;
    uint64_t peak_mono_ns;
    uint64_t peak_overhead_bytes;
    uint64_t driver_denials;
    uint64_t denied_bytes;
    uint64_t denied_mono_ns;
    uint64_t largest_bytes;

    /* Read only with GPULIMIT_READER_HISTORY. */
    struct gpulimit_ledger_sample *samples; /* from sample_start_mono_ns on; NULL: none */
    uint32_t sample_count;
    uint64_t sample_start_mono_ns;
    uint64_t sample_interval_ns; /* of each; not 0 where there are any */
};

struct gpulimit_ledger_sample {
    uint64_t highest_bytes;
    uint64_t lowest_bytes;
    uint64_t limit_bytes;
    uint64_t denials;
};

/* What a call site (0: those without one) holds on a device, and held at its peak. */
struct gpulimit_ledger_tally {
    uint32_t device; /* index into devices[] */
    uint32_t site;
    uint64_t bytes;
    uint64_t allocations_total;
    uint64_t frees_total; /* the difference is live */
    uint64_t peak_bytes;  /* when the device had its own, likewise */
    uint64_t peak_count;
};

struct gpulimit_ledger_event {
    uint64_t number; /* from 1; earlier ones may have been written over */
    uint64_t mono_ns;
    uint32_t what;   /* enum gpulimit_event_what, or one of a newer writer */
    uint32_t kind;   /* below 16, as an entry's; 0 unknown */
    uint32_t device; /* index into devices[] */
    uint32_t api;
    uint32_t thread_id;
    uint32_t site;
    uint32_t tag;
    uint64_t bytes;
    uint64_t charged_bytes;
    uint64_t address;
};

struct gpulimit_ledger_mark {
    uint64_t number;
    uint64_t mono_ns;
    uint32_t text;
    uint32_t device; /* index into devices[] */
    uint64_t charged_bytes;
    uint64_t peak_bytes; /* since the mark before */
    uint64_t requested_bytes;
    uint64_t allocations_total;
    uint64_t live_allocations;
    uint64_t denials; /* since the start */
};

struct gpulimit_ledger_entry {
    uint64_t address;
    uint64_t requested_bytes;
    uint64_t committed_bytes;
    uint64_t born_mono_ns; /* by the writer's CLOCK_MONOTONIC: compare with created_mono_ns only */
    uint64_t owner;
    uint32_t thread_id;
    uint32_t site;
    uint32_t tag; /* texts: what the thread had pushed, and the stream's name; 0 none */
    uint32_t stream;
    uint32_t kind;   /* enum gpulimit_kind, or one of a newer writer: below 16 */
    uint32_t device; /* index into devices[] */
    uint32_t api;    /* for gpulimit_reader_api_name */
};

/* One ledger file at one moment. Strings end with NUL, but hold whatever bytes the writer put
 * there. */
struct gpulimit_ledger {
    enum gpulimit_state state;
    char *path;         /* as it was given */
    uint32_t owner_uid; /* of the file; the header's uid is only a claim */
    int32_t pid;        /* in the writer's pid namespace */
    int32_t lock_pid;   /* the same process in the reader's namespace; 0 unknown */
    uint32_t uid;
    uint64_t pid_namespace;
    uint64_t start_ticks;
    uint64_t created_time_ns; /* CLOCK_REALTIME */
    uint64_t created_mono_ns; /* the same moment, by the writer's CLOCK_MONOTONIC */
    uint64_t ended_time_ns;   /* CLOCK_REALTIME; 0 if the writer did not say */
    uint64_t entries_unlisted;
    enum gpulimit_count_mode count_mode;
    char boot_id[41];
    char library_version[25];
    char notebook[257];
    char slurm_job_id[65];
    char cgroup[257];
    char limit_text[129];
    char group[65];

    /* Functions about memory, of a driver newer than the library, that the program has been given:
     * nobody counts what they take. Those that a full list left out are not told. */
    char unknown_names[GPULIMIT_UNKNOWN_NAMES][GPULIMIT_API_BYTES + 1];
    uint32_t unknown_count;

    char command[1025]; /* what arguments[] points into */
    const char **arguments;
    uint32_t argument_count;

    struct gpulimit_ledger_device devices[GPULIMIT_DEVICES]; /* those in use, in the file's order */
    uint32_t device_count;

    /* Read only with GPULIMIT_READER_ENTRIES. */
    char (*apis)[GPULIMIT_API_BYTES + 1];
    uint32_t api_count;
    struct gpulimit_ledger_entry *entries;
    uint32_t entry_count;
    uint32_t entries_torn; /* left half-written by a writer that died, and so not in entries[] */

    /* For gpulimit_reader_site, gpulimit_reader_module and gpulimit_reader_text. */
    struct gpulimit_module *modules;
    uint32_t module_count;
    char (*texts)[GPULIMIT_TEXT_BYTES + 1];
    uint32_t text_count;
    struct gpulimit_site *sites;
    uint32_t site_count;

    /* Read only with GPULIMIT_READER_HISTORY. */
    struct gpulimit_ledger_tally *tallies;
    uint32_t tally_count;
    struct gpulimit_ledger_event *events; /* the oldest first, likewise marks */
    uint32_t event_count;
    struct gpulimit_ledger_mark *marks;
    uint32_t mark_count;
};

/* Reads the ledger file at `path`. A symbolic link or anything but a regular file is refused.
 *
 * GPULIMIT_READER_OK: *ledger is set, and the caller frees it with gpulimit_reader_close.
 * Otherwise *ledger is untouched and `reason` says in a few words, without the path, what is wrong.
 * Takes at most some tens of milliseconds more than the copying, however busy the writer is. */
enum gpulimit_reader_status gpulimit_reader_open(const char *path, unsigned int parts,
                                                 char reason[GPULIMIT_READER_REASON_BYTES],
                                                 struct gpulimit_ledger **ledger);

/* The same for a file that the caller has open for reading. The descriptor stays the caller's, its
 * file position unmoved. `path` is only copied. */
enum gpulimit_reader_status gpulimit_reader_read(int fd, const char *path, unsigned int parts,
                                                 char reason[GPULIMIT_READER_REASON_BYTES],
                                                 struct gpulimit_ledger **ledger);

/* Frees a ledger; NULL is accepted. */
void gpulimit_reader_close(struct gpulimit_ledger *ledger);

/* The name that the ledger's own writer gave to an API, so that an old reader prints a new writer's
 * names;
 * "" if `api` is none of its. Lives as long as the ledger. */
const char *gpulimit_reader_api_name(const struct gpulimit_ledger *ledger, uint32_t api);

/* What an entry, a frame or a site calls by a number from 1; NULL, or "" for a text, if there is no
 * such number, or nothing sensible under it. A site has at most GPULIMIT_SITE_FRAMES frames, a
 * module's path ends, its build-id has room; all else in them is the writer's word. They live as
 * long as the ledger. */
const struct gpulimit_site *gpulimit_reader_site(const struct gpulimit_ledger *ledger,
                                                 uint32_t number);
const struct gpulimit_module *gpulimit_reader_module(const struct gpulimit_ledger *ledger,
                                                     uint32_t number);
const char *gpulimit_reader_text(const struct gpulimit_ledger *ledger, uint32_t number);

/* Constant names, as in JSON: "linear" and so on, "unknown" for a kind that this build does not
 * know; "live", "exited", "stale"; "damaged" and so on. */
const char *gpulimit_reader_kind_name(uint32_t kind);

/* "off", "nvml" or "delta". */
const char *gpulimit_reader_truth_name(enum gpulimit_truth truth);
const char *gpulimit_reader_state_name(enum gpulimit_state state);
const char *gpulimit_reader_status_name(enum gpulimit_reader_status status);

#endif
