/* SPDX-License-Identifier: MIT
 *
 * What the parts of the reader share while one file is being read: reader.c, reader_header.c,
 * reader_extents.c, reader_entries.c, reader_sites.c, reader_history.c and reader_rings.c. Nobody
 * else includes this.
 */
#ifndef GPULIMIT_TOOLS_READER_PARTS_H
#define GPULIMIT_TOOLS_READER_PARTS_H

#include <sys/stat.h>

#include "gpulimit/reader.h"
#include "reader_records.h"

#define READER_KINDS_MAX 16u        /* what by_kind[] has room for */
#define READER_NO_PLACE  UINT32_MAX /* of a device that is not in use */

#define READER_RING_BYTES 64u /* of a record of a ring */

struct reader {
    int fd;
    char *reason;
    struct stat file;
    struct gpulimit_header header; /* private copy, checked */
    struct records_patience patience;
    uint32_t places[GPULIMIT_DEVICES];      /* device of the file -> index into ledger->devices */
    uint64_t peak_epochs[GPULIMIT_DEVICES]; /* of the file's devices */
};

/* Puts the reason down and returns `status`. */
__attribute__((format(printf, 3, 4))) enum gpulimit_reader_status
reader_fail(struct reader *reader, enum gpulimit_reader_status status, const char *format, ...);

/* The same for RECORDS_SHORT and RECORDS_FAILED, with errno. */
enum gpulimit_reader_status reader_fail_copy(struct reader *reader, enum records_outcome outcome);

/* Copies the header; an empty one if the file is shorter. */
enum gpulimit_reader_status reader_read_header(struct reader *reader);

/* Checks the header; `file` has been filled in. */
enum gpulimit_reader_status reader_check_header(struct reader *reader);

/* Checks that the extents lie within the file, apart from each other, and claim a sane number of
 * records. */
enum gpulimit_reader_status reader_check_extents(struct reader *reader);

/* The array with room for one element more than its `count`, all added by way of this; it may move.
 * NULL if memory ran out: then it is as it was. */
void *reader_grow(void *array, uint32_t count, size_t size);

/* Gets one record: RECORDS_SETTLED, or the last copy seen of one that is RECORDS_TORN or
 * RECORDS_MOVING. */
typedef enum gpulimit_reader_status reader_take_function(struct reader *reader, const void *record,
                                                         enum records_outcome outcome,
                                                         struct gpulimit_ledger *ledger);

/* The records of a section through its extents, which have been checked: each begins with a
 * sequence number. */
struct reader_run {
    struct reader *reader;
    struct gpulimit_ledger *ledger; /* for take() */
    uint32_t section;
    size_t record_bytes;
    uint32_t most; /* the first so many */
    reader_take_function *take;
};

/* Ends early with what take() returns, if that is not GPULIMIT_READER_OK. */
enum gpulimit_reader_status reader_read_records(const struct reader_run *run);

/* Fills the ledger's apis[] and entries[] from the extents, which have been checked. The entries'
 * devices are as the file numbers them, until reader_place_entries makes them indices into
 * devices[]. */
enum gpulimit_reader_status reader_read_entries(struct reader *reader,
                                                struct gpulimit_ledger *ledger);
enum gpulimit_reader_status reader_place_entries(struct reader *reader,
                                                 struct gpulimit_ledger *ledger);

/* These fill the ledger's tallies[], its devices' samples[], and its events[] and marks[]; after
 * the devices. The tallies tell of the peaks that these had when they were read:
 * reader_has_new_peak is true if there has been another since. */
enum gpulimit_reader_status reader_read_tallies(struct reader *reader,
                                                struct gpulimit_ledger *ledger);
bool reader_has_new_peak(struct reader *reader);
enum gpulimit_reader_status reader_read_timelines(struct reader *reader,
                                                  struct gpulimit_ledger *ledger);
enum gpulimit_reader_status reader_read_rings(struct reader *reader,
                                              struct gpulimit_ledger *ledger);

/* Makes sites that there are not unknown; after the sites. */
void reader_check_history(struct gpulimit_ledger *ledger);

/* Fills the ledger's modules[], texts[] and sites[]; after the entries and the history, so that
 * what these name has been written. */
enum gpulimit_reader_status reader_read_sites(struct reader *reader,
                                              struct gpulimit_ledger *ledger);

#endif
