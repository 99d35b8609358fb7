/* SPDX-License-Identifier: MIT
 *
 * The append-only sections of the ledger file: modules, texts, sites. Of each only the extent that
 * is being filled is mapped; what is full is nobody's business any more.
 */
#include "region_parts.h"

#include <string.h>
#include <sys/mman.h>

enum {
    RECORDS_SECTIONS = GPULIMIT_SECTION_SITES + 1,
    RECORDS_FIRST_BYTES =
        8192, /* of a section's first extent; each further one is twice as large */
    RECORDS_MOST_EXTENTS = 10,
};

static struct records {
    char *memory; /* of the extent that is being filled; NULL: none */
    uint32_t capacity, used;
    uint32_t total; /* records in all extents */
    unsigned extents;
    bool is_full; /* growing has failed; not tried again: numbers would no longer be the caller's */
} records[RECORDS_SECTIONS];

static uint32_t region_record_bytes(enum gpulimit_section section)
{
    static const uint32_t bytes[RECORDS_SECTIONS] = {
        [GPULIMIT_SECTION_MODULES] = sizeof(struct gpulimit_module),
        [GPULIMIT_SECTION_TEXTS] = GPULIMIT_TEXT_BYTES,
        [GPULIMIT_SECTION_SITES] = sizeof(struct gpulimit_site)};
    return bytes[section];
}

static bool region_grow_records(struct records *of, enum gpulimit_section section)
{
    uint32_t record_bytes = region_record_bytes(section);
    uint64_t bytes = (uint64_t)RECORDS_FIRST_BYTES << of->extents, offset;
    if (of->extents == RECORDS_MOST_EXTENTS)
        return false;
    char *memory = region_extend(bytes, &offset);
    if (!memory)
        return false;
    if (of->memory)
        munmap(of->memory, (size_t)of->capacity * record_bytes);
    of->memory = memory;
    of->capacity = (uint32_t)(bytes / record_bytes);
    of->used = 0;
    of->extents++;
    return region_publish_extent(section, of->capacity, offset);
}

uint32_t region_append(enum gpulimit_section section, const void *record)
{
    struct records *of = &records[section];
    uint32_t record_bytes = region_record_bytes(section);
    if (!region_header())
        return 0;
    if (of->used == of->capacity && !of->is_full)
        of->is_full = !region_grow_records(of, section);
    if (of->is_full)
        return 0;
    memcpy(of->memory + (size_t)of->used * record_bytes, record, record_bytes);
    of->used++;
    return ++of->total;
}

void region_forget_records(void)
{
    for (unsigned i = 0; i < RECORDS_SECTIONS; i++) {
        if (records[i].memory)
            munmap(records[i].memory,
                   (size_t)records[i].capacity * region_record_bytes((enum gpulimit_section)i));
        records[i] = (struct records){0};
    }
}
