/* SPDX-License-Identifier: MIT
 *
 * What the parts of the reader share while one file is being read: reader.c, reader_header.c,
 * reader_entries.c and reader_sites.c. Nobody else includes this.
 */
#ifndef GPULIMIT_TOOLS_READER_PARTS_H
#define GPULIMIT_TOOLS_READER_PARTS_H

#include <sys/stat.h>

#include "gpulimit/reader.h"
#include "reader_records.h"

#define READER_KINDS_MAX 16u        /* what by_kind[] has room for */
#define READER_NO_PLACE  UINT32_MAX /* of a device that is not in use */

struct reader {
    int fd;
    char *reason;
    struct stat file;
    struct gpulimit_header header; /* private copy, checked */
    struct records_patience patience;
    uint32_t places[GPULIMIT_DEVICES]; /* device of the file -> index into ledger->devices */
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

/* Fills the ledger's apis[] and entries[] from the extents, which have been checked. The entries'
 * devices are as the file numbers them, until reader_place_entries makes them indices into
 * devices[]. */
enum gpulimit_reader_status reader_read_entries(struct reader *reader,
                                                struct gpulimit_ledger *ledger);
enum gpulimit_reader_status reader_place_entries(struct reader *reader,
                                                 struct gpulimit_ledger *ledger);

/* Fills the ledger's modules[], texts[] and sites[]; after the entries, so that what these name has
 * been written. */
enum gpulimit_reader_status reader_read_sites(struct reader *reader,
                                              struct gpulimit_ledger *ledger);

#endif
