/* SPDX-License-Identifier: MIT
 *
 * The writer's side of the ledger file. Every page is allocated by posix_fallocate before it is
 * touched: a write to a page that a full /dev/shm cannot give would be a SIGBUS in somebody's
 * program.
 */
#include "region_parts.h"

#include "clock.h"
#include "identity.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    REGION_FIRST_ENTRIES = 512,  /* the n-th extent of entries holds 512 * 2^(n-1) */
    REGION_MIN_DESCRIPTOR = 200, /* above what programs that count their descriptors look at */
};

static struct {
    int file;
    dev_t device; /* of the file, and its number there */
    ino_t inode;
    struct gpulimit_header *header; /* NULL: no file */
    struct gpulimit_device *devices;
    struct gpulimit_entry *extents[GPULIMIT_EXTENTS]; /* of entries, in order */
    unsigned extents_used;
    uint32_t entries; /* in all extents */
    uint64_t bytes;   /* of the file */
    bool is_full;     /* growing has failed; not tried again */
    char path[320];
} region = {.file = -1};

/* Whether the descriptor is still that of our file: programs close all they did not open
 * themselves, and then open their own under the same number. */
static bool region_has_file(void)
{
    struct stat status;
    return region.file >= 0 && fstat(region.file, &status) == 0 && status.st_dev == region.device &&
           status.st_ino == region.inode;
}

/* Whether the process may write a file this long: over RLIMIT_FSIZE the kernel sends a signal that
 * kills. */
static bool region_may_be(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

void *region_extend(uint64_t bytes, uint64_t *offset)
{
    int error;
    if (!region_has_file() || !region_may_be(region.bytes + bytes))
        return NULL;
    do {
        error = posix_fallocate(region.file, (off_t)region.bytes, (off_t)bytes);
    } while (error == EINTR);
    if (error != 0)
        return NULL;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.file, (off_t)region.bytes);
    if (memory == MAP_FAILED)
        return NULL;
    *offset = region.bytes;
    region.bytes += bytes;
    return memory;
}

bool region_publish_extent(enum gpulimit_section section, uint32_t count, uint64_t offset)
{
    uint32_t used = atomic_load_explicit(&region.header->extents_used, memory_order_relaxed);
    if (used == GPULIMIT_EXTENTS)
        return false;
    region.header->extents[used] =
        (struct gpulimit_extent){.section = section, .count = count, .offset = offset};
    /* Release pairs with the reader's acquire: it sees the extent whole, and its pages in the file.
     */
    atomic_store_explicit(&region.header->extents_used, used + 1, memory_order_release);
    return true;
}

static bool region_grow(void)
{
    uint32_t count = (uint32_t)REGION_FIRST_ENTRIES << region.extents_used;
    uint64_t offset;
    if (region.is_full)
        return false;
    void *memory = NULL;
    /* The names of APIs take one extent, the append-only sections up to ten each but some eight in
     * fact, the history the rest. */
    if (region.extents_used < 20)
        memory = region_extend(count * sizeof(struct gpulimit_entry), &offset);
    if (!memory) {
        region.is_full = true;
        return false;
    }
    region.extents[region.extents_used++] = memory;
    region.entries += count;
    return region_publish_extent(GPULIMIT_SECTION_ENTRIES, count, offset);
}

static bool region_write_apis(const char *const apis[], unsigned apis_count)
{
    /* A whole number of pages, since the next extent's mapping begins where this one ends. */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = (apis_count * (uint64_t)GPULIMIT_API_BYTES + page - 1) / page * page;
    uint64_t offset;
    char *names = region_extend(bytes, &offset);
    if (!names)
        return false;
    for (unsigned i = 0; i < apis_count; i++)
        strncpy(names + i * (size_t)GPULIMIT_API_BYTES, apis[i], GPULIMIT_API_BYTES - 1);
    munmap(names, bytes);
    return region_publish_extent(GPULIMIT_SECTION_APIS, apis_count, offset);
}

/* Creates a file that nobody else has: pids repeat, also at the same time in another namespace. */
static bool region_create_file(const char *dir)
{
    struct text name;
    text_init(&name);
    text_add(&name, dir);
    text_add(&name, "/" GPULIMIT_REGION_PREFIX);
    text_add_number(&name, (uint64_t)getpid());
    text_add(&name, ".");
    text_add_number(&name, clock_ns(CLOCK_REALTIME));
    if (name.length >= sizeof region.path) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(region.path, text_string(&name));
    int file = open(region.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    region.file = fcntl(file, F_DUPFD_CLOEXEC, REGION_MIN_DESCRIPTOR);
    if (region.file < 0)
        region.file = file;
    else
        close(file);
    struct stat status;
    if (fstat(region.file, &status) == 0) {
        region.device = status.st_dev;
        region.inode = status.st_ino;
    }
    return true;
}

/* Takes the lock that says "alive" to readers: the kernel drops it with the process, however that
 * ends, and a fork does not inherit it. */
static void region_lock_for_life(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    (void)fcntl(region.file, F_SETLK, &lock); /* a file system without locks: readers ask /proc */
}

static void region_abandon(void)
{
    if (region.header)
        munmap(region.header, GPULIMIT_EXTENTS_OFFSET);
    if (region.file >= 0) {
        close(region.file);
        unlink(region.path);
    }
    region.header = NULL;
    region.file = -1;
    region.path[0] = '\0';
}

bool region_open(const char *dir, const char *limit_text, enum gpulimit_count_mode count_mode,
                 const char *const apis[], unsigned apis_count, const char **reason)
{
    if (!region_create_file(dir)) {
        *reason = strerrordesc_np(errno); /* no buffer and no locale, unlike strerror */
        region.path[0] = '\0';
        return false;
    }
    region_lock_for_life();
    region.bytes = 0;
    region.extents_used = 0;
    region.entries = 0;
    region.is_full = false;
    region_forget_records();
    region_forget_history();
    uint64_t start;
    struct gpulimit_header *header = region_extend(GPULIMIT_EXTENTS_OFFSET, &start);
    if (header) {
        region.header = header;
        region.devices = (void *)((char *)header + GPULIMIT_DEVICES_OFFSET);
        header->version = GPULIMIT_REGION_VERSION;
        header->header_bytes = sizeof(struct gpulimit_header);
        header->device_bytes = sizeof(struct gpulimit_device);
        header->entry_bytes = sizeof(struct gpulimit_entry);
        header->devices_offset = GPULIMIT_DEVICES_OFFSET;
        header->kinds = GPULIMIT_KINDS;
        header->count_mode = count_mode;
        header->created_time_ns = clock_ns(CLOCK_REALTIME);
        header->created_mono_ns = clock_ns(CLOCK_MONOTONIC);
        strncpy(header->limit_text, limit_text, sizeof header->limit_text - 1);
        identity_fill(header);
    }
    if (!header || !region_write_apis(apis, apis_count) || !region_grow()) {
        *reason = "no space left for it";
        region_abandon();
        return false;
    }
    /* The magic comes last: a reader that comes before it sees no ledger yet. */
    atomic_thread_fence(memory_order_release);
    memcpy(header->magic, GPULIMIT_REGION_MAGIC, sizeof header->magic);
    return true;
}

const char *region_path(void)
{
    return region.path;
}

struct gpulimit_header *region_header(void)
{
    return region.header;
}

void region_end(void)
{
    if (!region.header)
        return;
    atomic_store_explicit(&region.header->ended_time_ns, clock_ns(CLOCK_REALTIME),
                          memory_order_relaxed);
    if (region_has_file()) {
        (void)futimens(region.file, NULL);
        (void)fchmod(region.file, GPULIMIT_REGION_DEAD_MODE);
    }
}

void region_forget(void)
{
    /* Unmapped, not just forgotten: a child of a multi-gigabyte trainer need not carry it. */
    if (region.header)
        munmap(region.header, GPULIMIT_EXTENTS_OFFSET);
    for (unsigned i = 0; i < region.extents_used; i++)
        munmap(region.extents[i],
               ((size_t)REGION_FIRST_ENTRIES << i) * sizeof(struct gpulimit_entry));
    region_forget_records();
    region_forget_history();
    if (region_has_file())
        close(region.file);
    region.header = NULL;
    region.extents_used = 0;
    region.entries = 0;
    region.file = -1;
    region.path[0] = '\0';
}

void region_add_device(unsigned device, const char *uuid, uint64_t total_bytes)
{
    if (!region.header || device >= GPULIMIT_DEVICES)
        return;
    struct gpulimit_device *record = &region.devices[device];
    record->gpu_index = device;
    record->total_bytes = total_bytes;
    strncpy(record->gpu_uuid, uuid, sizeof record->gpu_uuid - 1);
    /* Release: whoever sees the device in use sees the lines above. */
    REGION_STORE(record->in_use, 1);
}

/* What seldom changes: not to be written each time. */
static void region_put_seldom(struct gpulimit_device *record, const struct region_totals *totals)
{
    if (atomic_load_explicit(&record->peak_epoch, memory_order_relaxed) != totals->peak_epoch) {
        REGION_STORE(record->peak_mono_ns, totals->peak_mono_ns);
        REGION_STORE(record->peak_epoch, totals->peak_epoch);
        REGION_STORE(record->peak_overhead_bytes, totals->peak_overhead_bytes);
    }
    if (atomic_load_explicit(&record->largest_bytes, memory_order_relaxed) != totals->largest_bytes)
        REGION_STORE(record->largest_bytes, totals->largest_bytes);
    if (atomic_load_explicit(&record->denied_bytes, memory_order_relaxed) != totals->denied_bytes) {
        REGION_STORE(record->denied_bytes, totals->denied_bytes);
        REGION_STORE(record->denied_mono_ns, totals->denied_mono_ns);
    }
}

void region_put_device(unsigned device, const struct region_totals *totals, enum gpulimit_kind kind)
{
    if (!region.header || device >= GPULIMIT_DEVICES)
        return;
    struct gpulimit_device *record = &region.devices[device];
    uint32_t next = region_begin(&record->sequence);
#define FIELD(_name, _type, _text) REGION_STORE(record->_name, totals->_name);
#include "gpulimit/tbl/fields.def"
    REGION_STORE(record->by_kind[kind].bytes, totals->by_kind[kind].bytes);
    REGION_STORE(record->by_kind[kind].count, totals->by_kind[kind].count);
    REGION_STORE(record->truth_source, totals->truth_source);
    REGION_STORE(record->hidden_bytes, totals->hidden_bytes);
    REGION_STORE(record->driver_denials, totals->driver_denials);
    region_put_seldom(record, totals);
    REGION_STORE(record->sequence, next);
}

/* The place of an entry in the extents, of which each is twice as large as the one before. */
static struct gpulimit_entry *region_place(uint32_t number)
{
    uint32_t scaled = number / REGION_FIRST_ENTRIES + 1;
    unsigned extent = 31u - (unsigned)__builtin_clz(scaled);
    uint32_t first = (((uint32_t)1 << extent) - 1) * REGION_FIRST_ENTRIES;
    return &region.extents[extent][number - first];
}

bool region_put_entry(uint32_t number, const struct gpulimit_entry *entry)
{
    if (!region.header)
        return false;
    while (number >= region.entries) {
        if (!region_grow())
            return false;
    }
    struct gpulimit_entry *place = region_place(number);
    uint32_t next = region_begin(&place->sequence);
    REGION_STORE(place->place, entry->place);
    REGION_STORE(place->address, entry->address);
    REGION_STORE(place->requested_bytes, entry->requested_bytes);
    REGION_STORE(place->committed_bytes, entry->committed_bytes);
    REGION_STORE(place->born_mono_ns, entry->born_mono_ns);
    REGION_STORE(place->thread_id, entry->thread_id);
    REGION_STORE(place->site, entry->site);
    REGION_STORE(place->owner, entry->owner);
    REGION_STORE(place->tag, entry->tag);
    REGION_STORE(place->stream, entry->stream);
    REGION_STORE(place->sequence, next);
    return true;
}

void region_drop_entry(uint32_t number)
{
    if (!region.header || number >= region.entries)
        return;
    struct gpulimit_entry *place = region_place(number);
    uint32_t next = region_begin(&place->sequence);
    REGION_STORE(place->place, 0);
    REGION_STORE(place->sequence, next);
}

void region_put_unlisted(uint64_t count)
{
    if (region.header)
        atomic_store_explicit(&region.header->entries_unlisted, count, memory_order_relaxed);
}
