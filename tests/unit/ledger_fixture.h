/* SPDX-License-Identifier: MIT
 *
 * Ledger files for tests of the reader and of the tools, written from region.h alone: nothing of
 * shim/ is in them. A fixture is the image of a file in memory; tests change it at will, also into
 * nonsense, and then write it out.
 */
#ifndef GPULIMIT_TESTS_LEDGER_FIXTURE_H
#define GPULIMIT_TESTS_LEDGER_FIXTURE_H

#include <stddef.h>

#include "gpulimit/region.h"

#define FIXTURE_BYTES_MAX (1u << 20)
#define FIXTURE_MIB       (UINT64_C(1) << 20)

struct fixture {
    unsigned char *image; /* FIXTURE_BYTES_MAX, all zero beyond `size` */
    size_t size;          /* of the file */
    struct gpulimit_header *header;
    struct gpulimit_device *devices;
    struct gpulimit_module *modules; /* these three: after fixture_add_sites */
    char (*texts)[GPULIMIT_TEXT_BYTES];
    struct gpulimit_site *sites;

    struct gpulimit_tally *tallies; /* these: after the first of each */
    uint32_t tally_count;
    struct gpulimit_event *events;
    uint32_t event_count;
    struct gpulimit_mark *marks;
    uint32_t mark_count;
};

enum { FIXTURE_PAGE = 4096 };
enum { FIXTURE_MODULES = 8, FIXTURE_TEXTS = 32, FIXTURE_SITES = 16 };
enum { FIXTURE_TALLIES = 32, FIXTURE_EVENTS = 16, FIXTURE_MARKS = 16 };

/* A valid ledger of this very process, begun `age_seconds` ago: pid 4121, `python train.py`, no
 * device, the APIs cuMemAlloc_v2 (0) and cuMemAllocAsync (1), no entries. */
void fixture_open(struct fixture *fixture, unsigned int age_seconds);
void fixture_close(struct fixture *fixture);

/* Makes it this process's own, as identity goes. */
void fixture_set_identity(struct fixture *fixture);

/* Arguments as in /proc/PID/cmdline; a string literal with NULs in it. */
void fixture_set_command(struct fixture *fixture, const char *arguments, size_t bytes);

/* Puts a device in use: 64 MiB of 1 GiB charged, as one linear allocation. */
struct gpulimit_device *fixture_add_device(struct fixture *fixture, unsigned int number);

/* Appends an extent of free slots; the result stays valid. */
struct gpulimit_entry *fixture_add_entries(struct fixture *fixture, uint32_t count);

/* Fills a slot: `size_mib` MiB, by API number, `age_seconds` old. */
void fixture_fill_entry(const struct fixture *fixture, struct gpulimit_entry *entry, uint32_t place,
                        unsigned int size_mib, unsigned int age_seconds);

/* Appends the sections of call sites, all empty; then fills them, record after record. Each returns
 * the number of its record; the same text has the same number. */
void fixture_add_sites(struct fixture *fixture);
uint32_t fixture_put_module(struct fixture *fixture, const char *path);
uint32_t fixture_put_text(struct fixture *fixture, const char *text);
uint32_t fixture_put_site(struct fixture *fixture);

/* The site's next frame: native ones first, from the innermost. */
void fixture_put_native(struct fixture *fixture, uint32_t site, uint32_t module, uint64_t address);
void fixture_put_python(struct fixture *fixture, uint32_t site, const char *file,
                        const char *function, uint32_t line);

/* Each appends one record, and with the first of them the section; rings turn over. What is not
 * said here is 0, and for the caller to fill in. */

/* `bytes` are live, of `allocations` less `frees`. */
struct gpulimit_tally *fixture_add_tally(struct fixture *fixture, uint32_t device, uint32_t site,
                                         uint64_t bytes, uint64_t allocations, uint64_t frees);

/* From the creation of the ledger on; sample i lies between i and i + 1 MiB, under 1 GiB. */
struct gpulimit_timeline *fixture_add_timeline(struct fixture *fixture, uint32_t device,
                                               uint32_t count, uint64_t interval_ns);
struct gpulimit_event *fixture_add_event(struct fixture *fixture, enum gpulimit_event_what what,
                                         uint32_t place, uint64_t bytes, unsigned int age_seconds);

/* After fixture_add_sites, for the text. */
struct gpulimit_mark *fixture_add_mark(struct fixture *fixture, uint32_t device, const char *text,
                                       uint64_t charged_bytes, unsigned int age_seconds);

/* A file of the test program's own, to write ledgers to: for cmocka's set-up and tear-down of a
 * group. */
extern char fixture_path[];
int fixture_make_path(void **state);
int fixture_remove_path(void **state);

/* Writes the file anew. */
void fixture_write(const struct fixture *fixture, const char *path);

/* Locks the file as its writer does, in this process. Closing the descriptor, or any other of the
 * file, unlocks it. */
int fixture_lock(const char *path);

/* Maps the file's first page, as its writer does. Returns it, for munmap of FIXTURE_PAGE bytes. */
void *fixture_map(const char *path);

#endif
