/* SPDX-License-Identifier: MIT
 *
 * Ledger files for tests of the reader and of the tools, written from region.h alone.
 */
#include "ledger_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *const fixture_apis[] = {"cuMemAlloc_v2", "cuMemAllocAsync"};

enum { FIXTURE_APIS = sizeof(fixture_apis) / sizeof(fixture_apis[0]) };

/* A test that cannot set itself up has failed. */
static void fixture_check(int is_ok, const char *what)
{
    if (!is_ok) {
        perror(what);
        abort();
    }
}

static uint64_t fixture_get_time(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct gpulimit_extent *fixture_add_extent(struct fixture *fixture, uint32_t section,
                                                  uint32_t count, size_t record_bytes)
{
    struct gpulimit_extent *extent = &fixture->header->extents[fixture->header->extents_used];

    fixture_check(fixture->header->extents_used < GPULIMIT_EXTENTS &&
                      fixture->size + count * record_bytes <= FIXTURE_BYTES_MAX,
                  "fixture: too large");
    *extent = (struct gpulimit_extent){.section = section, .count = count, .offset = fixture->size};
    fixture->header->extents_used++;
    fixture->size += count * record_bytes;
    return extent;
}

void fixture_open(struct fixture *fixture, unsigned int age_seconds)
{
    uint64_t age_ns = UINT64_C(1000000000) * age_seconds;
    const struct gpulimit_extent *apis;
    struct gpulimit_header *header;

    *fixture = (struct fixture){.image = aligned_alloc(64, FIXTURE_BYTES_MAX)};
    fixture_check(fixture->image != NULL, "fixture");
    memset(fixture->image, 0, FIXTURE_BYTES_MAX);
    header = (void *)fixture->image;
    fixture->header = header;
    fixture->devices = (void *)(fixture->image + GPULIMIT_DEVICES_OFFSET);
    fixture->size = GPULIMIT_EXTENTS_OFFSET;
    memcpy(header->magic, GPULIMIT_REGION_MAGIC, sizeof(header->magic));
    header->version = GPULIMIT_REGION_VERSION;
    header->header_bytes = sizeof(struct gpulimit_header);
    header->device_bytes = sizeof(struct gpulimit_device);
    header->entry_bytes = sizeof(struct gpulimit_entry);
    header->devices_offset = GPULIMIT_DEVICES_OFFSET;
    header->kinds = GPULIMIT_KINDS;
    header->pid = 4121;
    header->uid = getuid();
    header->created_time_ns = fixture_get_time(CLOCK_REALTIME) - age_ns;
    header->created_mono_ns = 1000000000; /* any: only differences to it mean something */
    strcpy(header->library_version, "0.1.0");
    fixture_set_command(fixture, "python\0train.py", sizeof("python\0train.py"));
    apis = fixture_add_extent(fixture, GPULIMIT_SECTION_APIS, FIXTURE_APIS, GPULIMIT_API_BYTES);
    for (size_t i = 0; i < FIXTURE_APIS; i++) {
        strcpy((char *)fixture->image + apis->offset + i * GPULIMIT_API_BYTES, fixture_apis[i]);
    }
    fixture->size = (fixture->size + 63) / 64 * 64;
}

void fixture_close(struct fixture *fixture)
{
    free(fixture->image);
    *fixture = (struct fixture){0};
}

void fixture_set_identity(struct fixture *fixture)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    char stat_text[1024];
    struct stat namespace;
    char *field;

    fixture_check(file && fscanf(file, "%39s", fixture->header->boot_id) == 1, "boot_id");
    fclose(file);
    file = fopen("/proc/self/stat", "re");
    fixture_check(file && fgets(stat_text, sizeof(stat_text), file), "/proc/self/stat");
    fclose(file);
    fixture_check(stat("/proc/self/ns/pid", &namespace) == 0, "/proc/self/ns/pid");
    field = strrchr(stat_text, ')');
    for (int number = 2; number < 22; number++) {
        field = strchr(field + 1, ' ');
    }
    fixture->header->start_ticks = strtoull(field, NULL, 10);
    fixture->header->pid_namespace = namespace.st_ino;
    fixture->header->pid = getpid();
}

void fixture_set_command(struct fixture *fixture, const char *arguments, size_t bytes)
{
    memset(fixture->header->command, 0, sizeof(fixture->header->command));
    memcpy(fixture->header->command, arguments, bytes);
    fixture->header->command_bytes = (uint32_t)bytes;
}

struct gpulimit_device *fixture_add_device(struct fixture *fixture, unsigned int number)
{
    struct gpulimit_device *device = &fixture->devices[number];

    device->in_use = 1;
    device->gpu_index = number;
    device->total_bytes = 8192 * FIXTURE_MIB;
    snprintf(device->gpu_uuid, sizeof(device->gpu_uuid), "GPU-%08x-1111-2222-3333-444444444444",
             0xabc0u + number);
    device->limit_bytes = 1024 * FIXTURE_MIB;
    device->charged_bytes = 64 * FIXTURE_MIB;
    device->requested_bytes = 63 * FIXTURE_MIB;
    device->committed_bytes = 64 * FIXTURE_MIB;
    device->peak_bytes = 128 * FIXTURE_MIB;
    device->live_allocations = 1;
    device->allocations_total = 3;
    device->frees_total = 2;
    device->by_kind[GPULIMIT_KIND_LINEAR].bytes = 64 * FIXTURE_MIB;
    device->by_kind[GPULIMIT_KIND_LINEAR].count = 1;
    return device;
}

struct gpulimit_entry *fixture_add_entries(struct fixture *fixture, uint32_t count)
{
    const struct gpulimit_extent *extent =
        fixture_add_extent(fixture, GPULIMIT_SECTION_ENTRIES, count, sizeof(struct gpulimit_entry));

    return (void *)(fixture->image + extent->offset);
}

/* By the writer's monotonic clock. */
static uint64_t fixture_get_moment(const struct fixture *fixture, unsigned int age_seconds)
{
    uint64_t since_creation_ns = fixture_get_time(CLOCK_REALTIME) -
                                 fixture->header->created_time_ns -
                                 UINT64_C(1000000000) * age_seconds;

    return fixture->header->created_mono_ns + since_creation_ns;
}

void fixture_fill_entry(const struct fixture *fixture, struct gpulimit_entry *entry, uint32_t place,
                        unsigned int size_mib, unsigned int age_seconds)
{
    static uint64_t address = UINT64_C(0x7f0000000000);

    entry->sequence = 2;
    entry->place = place;
    entry->address = address += FIXTURE_MIB << 10;
    entry->requested_bytes = size_mib * FIXTURE_MIB;
    entry->committed_bytes = (size_mib + 1) / 2 * 2 * FIXTURE_MIB;
    entry->born_mono_ns = fixture_get_moment(fixture, age_seconds);
    entry->thread_id = 4121;
}

void fixture_add_sites(struct fixture *fixture)
{
    const struct gpulimit_extent *extent = fixture_add_extent(
        fixture, GPULIMIT_SECTION_MODULES, FIXTURE_MODULES, sizeof(struct gpulimit_module));

    fixture->modules = (void *)(fixture->image + extent->offset);
    extent =
        fixture_add_extent(fixture, GPULIMIT_SECTION_TEXTS, FIXTURE_TEXTS, GPULIMIT_TEXT_BYTES);
    fixture->texts = (void *)(fixture->image + extent->offset);
    extent = fixture_add_extent(fixture, GPULIMIT_SECTION_SITES, FIXTURE_SITES,
                                sizeof(struct gpulimit_site));
    fixture->sites = (void *)(fixture->image + extent->offset);
}

uint32_t fixture_put_module(struct fixture *fixture, const char *path)
{
    uint32_t place = 0;

    while (fixture->modules[place].path[0] != '\0') {
        fixture_check(++place < FIXTURE_MODULES, "fixture: too many modules");
    }
    strcpy(fixture->modules[place].path, path);
    return place + 1;
}

uint32_t fixture_put_text(struct fixture *fixture, const char *text)
{
    uint32_t place = 0;

    while (fixture->texts[place][0] != '\0' && strcmp(fixture->texts[place], text) != 0) {
        fixture_check(++place < FIXTURE_TEXTS, "fixture: too many texts");
    }
    strcpy(fixture->texts[place], text);
    return place + 1;
}

uint32_t fixture_put_site(struct fixture *fixture)
{
    uint32_t place = 0;

    while (fixture->sites[place].native_count + fixture->sites[place].python_count > 0) {
        fixture_check(++place < FIXTURE_SITES, "fixture: too many sites");
    }
    return place + 1;
}

static struct gpulimit_frame *fixture_get_next_frame(struct gpulimit_site *site)
{
    fixture_check(site->native_count + site->python_count < (int)GPULIMIT_SITE_FRAMES,
                  "fixture: too many frames");
    return &site->frames[site->native_count + site->python_count];
}

void fixture_put_native(struct fixture *fixture, uint32_t site, uint32_t module, uint64_t address)
{
    struct gpulimit_site *record = &fixture->sites[site - 1];

    *fixture_get_next_frame(record) =
        (struct gpulimit_frame){.kind = GPULIMIT_FRAME_NATIVE, .file = module, .place = address};
    record->native_count++;
}

void fixture_put_python(struct fixture *fixture, uint32_t site, const char *file,
                        const char *function, uint32_t line)
{
    struct gpulimit_site *record = &fixture->sites[site - 1];

    *fixture_get_next_frame(record) = (struct gpulimit_frame){
        .kind = GPULIMIT_FRAME_PYTHON,
        .file = fixture_put_text(fixture, file),
        .place = (uint64_t)fixture_put_text(fixture, function) << 32 | line};
    record->python_count++;
}

struct gpulimit_tally *fixture_add_tally(struct fixture *fixture, uint32_t device, uint32_t site,
                                         uint64_t bytes, uint64_t allocations, uint64_t frees)
{
    struct gpulimit_tally *tally;

    if (!fixture->tallies) {
        const struct gpulimit_extent *extent =
            fixture_add_extent(fixture, GPULIMIT_SECTION_TALLIES, FIXTURE_TALLIES, sizeof(*tally));

        fixture->tallies = (void *)(fixture->image + extent->offset);
    }
    fixture_check(fixture->tally_count < FIXTURE_TALLIES, "fixture: too many tallies");
    tally = &fixture->tallies[fixture->tally_count++];
    tally->sequence = 2;
    tally->device = device;
    tally->site = site;
    tally->bytes = bytes;
    tally->allocations_total = allocations;
    tally->frees_total = frees;
    return tally;
}

struct gpulimit_timeline *fixture_add_timeline(struct fixture *fixture, uint32_t device,
                                               uint32_t count, uint64_t interval_ns)
{
    const struct gpulimit_extent *extent = fixture_add_extent(fixture, GPULIMIT_SECTION_TIMELINES,
                                                              1, sizeof(struct gpulimit_timeline));
    struct gpulimit_timeline *timeline = (void *)(fixture->image + extent->offset);

    timeline->sequence = 2;
    timeline->device = device;
    timeline->count = count;
    timeline->interval_ns = interval_ns;
    timeline->start_mono_ns = fixture->header->created_mono_ns;
    for (uint32_t i = 0; i < count && i < GPULIMIT_TIMELINE_SAMPLES; i++) {
        timeline->samples[i].highest_bytes = (i + 1) * FIXTURE_MIB;
        timeline->samples[i].lowest_bytes = i * FIXTURE_MIB;
        timeline->samples[i].limit_bytes = 1024 * FIXTURE_MIB;
    }
    return timeline;
}

struct gpulimit_event *fixture_add_event(struct fixture *fixture, enum gpulimit_event_what what,
                                         uint32_t place, uint64_t bytes, unsigned int age_seconds)
{
    struct gpulimit_event *event;

    if (!fixture->events) {
        const struct gpulimit_extent *extent =
            fixture_add_extent(fixture, GPULIMIT_SECTION_EVENTS, FIXTURE_EVENTS, sizeof(*event));

        fixture->events = (void *)(fixture->image + extent->offset);
    }
    event = &fixture->events[fixture->event_count++ % FIXTURE_EVENTS];
    *event = (struct gpulimit_event){.number = fixture->event_count,
                                     .mono_ns = fixture_get_moment(fixture, age_seconds),
                                     .place = place,
                                     .what = what,
                                     .thread_id = 4121,
                                     .bytes = bytes};
    return event;
}

struct gpulimit_mark *fixture_add_mark(struct fixture *fixture, uint32_t device, const char *text,
                                       uint64_t charged_bytes, unsigned int age_seconds)
{
    struct gpulimit_mark *mark;

    if (!fixture->marks) {
        const struct gpulimit_extent *extent =
            fixture_add_extent(fixture, GPULIMIT_SECTION_MARKS, FIXTURE_MARKS, sizeof(*mark));

        fixture->marks = (void *)(fixture->image + extent->offset);
    }
    mark = &fixture->marks[fixture->mark_count++ % FIXTURE_MARKS];
    *mark = (struct gpulimit_mark){.number = fixture->mark_count,
                                   .mono_ns = fixture_get_moment(fixture, age_seconds),
                                   .text = fixture_put_text(fixture, text),
                                   .device = device,
                                   .charged_bytes = charged_bytes};
    return mark;
}

char fixture_path[] = "/tmp/test_ledger.XXXXXX";

int fixture_make_path(void **state)
{
    int fd = mkstemp(fixture_path);

    (void)state;
    close(fd);
    return fd < 0;
}

int fixture_remove_path(void **state)
{
    (void)state;
    return unlink(fixture_path);
}

void fixture_write(const struct fixture *fixture, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    fixture_check(fd >= 0 && write(fd, fixture->image, fixture->size) == (ssize_t)fixture->size,
                  path);
    close(fd);
}

int fixture_lock(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int fd = open(path, O_RDWR | O_CLOEXEC);

    fixture_check(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0, path);
    return fd;
}

void *fixture_map(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *page = mmap(NULL, FIXTURE_PAGE, PROT_READ, MAP_SHARED, fd, 0);

    fixture_check(fd >= 0 && page != MAP_FAILED, path);
    close(fd);
    return page;
}
