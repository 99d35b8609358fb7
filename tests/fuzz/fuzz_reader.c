/* SPDX-License-Identifier: MIT
 *
 * The reader over arbitrary bytes: whatever a file holds, it is refused with a reason or becomes a
 * ledger that keeps its promises and can be printed. A libFuzzer target (option fuzzer, with
 * clang); what stands in for the engine where there is none is fuzz_reader_main.c.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emit_json.h"
#include "emit_table.h"
#include "fuzz_record.h"
#include "gpulimit/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t fuzz_seen;

static void fuzz_check(bool is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "fuzz_reader: not so: %s\n", what);
        abort();
    }
}

static void fuzz_check_site(const struct gpulimit_ledger *ledger, uint32_t number)
{
    const struct gpulimit_site *site = gpulimit_reader_site(ledger, number);
    uint32_t count = site ? (uint32_t)site->native_count + site->python_count : 0;

    fuzz_check(count <= GPULIMIT_SITE_FRAMES, "frames are bounded");
    for (uint32_t i = 0; i < count; i++) {
        const struct gpulimit_module *module = gpulimit_reader_module(ledger, site->frames[i].file);

        fuzz_check(!module || memchr(module->path, '\0', sizeof(module->path)), "a path ends");
        fuzz_check(!module || module->build_id_bytes <= sizeof(module->build_id),
                   "a build-id has room");
        fuzz_check(strlen(gpulimit_reader_text(ledger, site->frames[i].file)) <=
                       GPULIMIT_TEXT_BYTES,
                   "a text ends");
    }
}

/* Reads them, for the sanitizers to watch. */
static void fuzz_check_samples(const struct gpulimit_ledger_device *device)
{
    fuzz_check(device->sample_count <= GPULIMIT_TIMELINE_SAMPLES, "samples are bounded");
    fuzz_check(device->sample_count == 0 || (device->samples && device->sample_interval_ns > 0),
               "samples are there");
    for (uint32_t i = 0; i < device->sample_count; i++) {
        fuzz_seen = device->samples[i].highest_bytes ^ device->samples[i].lowest_bytes ^
                    device->samples[i].limit_bytes ^ device->samples[i].denials;
    }
}

static void fuzz_check_history(const struct gpulimit_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->device_count; i++) {
        fuzz_check_samples(&ledger->devices[i]);
    }
    for (uint32_t i = 0; i < ledger->tally_count; i++) {
        fuzz_check(ledger->tallies[i].device < ledger->device_count, "a tally has a device");
        fuzz_check(ledger->tallies[i].site <= ledger->site_count, "a tally's site is known");
        fuzz_check_site(ledger, ledger->tallies[i].site);
    }
    for (uint32_t i = 0; i < ledger->event_count; i++) {
        const struct gpulimit_ledger_event *event = &ledger->events[i];

        fuzz_check(event->device < ledger->device_count, "an event has a device");
        fuzz_check(event->kind < 16 && event->what != GPULIMIT_EVENT_NONE, "an event is one");
        fuzz_check(event->site <= ledger->site_count, "an event's site is known");
        fuzz_check(event->number > (i > 0 ? ledger->events[i - 1].number : 0), "events are sorted");
    }
    for (uint32_t i = 0; i < ledger->mark_count; i++) {
        const struct gpulimit_ledger_mark *mark = &ledger->marks[i];

        fuzz_check(mark->device < ledger->device_count, "a mark has a device");
        fuzz_check(mark->number > (i > 0 ? ledger->marks[i - 1].number : 0), "marks are sorted");
        fuzz_check(strlen(gpulimit_reader_text(ledger, mark->text)) <= GPULIMIT_TEXT_BYTES,
                   "a mark's text ends");
    }
}

/* What reader.h promises of every ledger. */
static void fuzz_check_ledger(const struct gpulimit_ledger *ledger)
{
    size_t bytes = 0;

    fuzz_check(ledger->pid > 0, "a process has a pid");
    fuzz_check(ledger->device_count <= GPULIMIT_DEVICES, "devices are bounded");
    fuzz_check(ledger->count_mode <= GPULIMIT_COUNT_ALLOCATIONS, "count modes are known");
    fuzz_check(ledger->state <= GPULIMIT_STATE_STALE, "states are known");
    fuzz_check(strlen(ledger->notebook) < sizeof(ledger->notebook), "strings end");
    fuzz_check(strlen(ledger->group) < sizeof(ledger->group), "strings end");
    for (uint32_t i = 0; i < ledger->argument_count; i++) {
        bytes += strlen(ledger->arguments[i]) + 1;
    }
    fuzz_check(bytes <= sizeof(ledger->command), "arguments lie within the command");
    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        const struct gpulimit_ledger_entry *entry = &ledger->entries[i];

        fuzz_check(entry->device < ledger->device_count, "an entry has a device");
        fuzz_check(entry->kind > GPULIMIT_KIND_NONE && entry->kind < 16, "an entry has a kind");
        fuzz_check(entry->api < ledger->api_count, "an entry has an API");
        fuzz_check_site(ledger, entry->site);
        fuzz_check(gpulimit_reader_kind_name(entry->kind)[0] != '\0', "a kind has a name");
    }
    fuzz_check_history(ledger);
}

/* Shows it every way there is, for the sanitizers to watch. */
static void fuzz_print(struct gpulimit_ledger *ledger)
{
    static FILE *nowhere;
    struct snapshot snapshot = {
        .ledgers = &ledger, .ledger_count = 1, .time_ns = UINT64_C(1) << 60};
    const struct view_filter filter = {.has_ended = true};
    struct emit_style style = {.has_headings = true, .has_states = true, .has_stacks = true};
    struct record record;
    struct view view;

    if (!nowhere) {
        nowhere = fopen("/dev/null", "we");
        fuzz_check(nowhere != NULL, "/dev/null opens");
    }
    style.out = nowhere;
    view_open(&snapshot, &filter, &view);
    view_warn(&view, true, &snapshot.warnings);
    emit_json_view(
        &view, &snapshot.warnings,
        &(struct emit_json_style){.out = nowhere, .has_allocations = true, .is_stream = true});
    emit_table_processes(&view, &style);
    for (int key = GROUPS_BY_DEFAULT; key < GROUPS_KEYS; key++) {
        const struct groups_filter by = {.key = (enum groups_key)key,
                                         .is_list = key == GROUPS_BY_DEFAULT};
        struct groups groups;
        struct growth growth;

        groups_open(&view, &by, &groups);
        growth_open(&view, &groups, 0, &growth);
        emit_table_growth(&growth, by.key, &style);
        growth_close(&growth);
        emit_table_groups(&groups, &style);
        emit_table_allocations(&view, &groups, &style);
        groups_close(&groups);
    }
    record_from_ledger(ledger, NULL, &record);
    fuzz_check_record(&record);
    record_drop(&record);
    warnings_drop(&snapshot.warnings);
    view_close(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static unsigned int printed;
    char reason[GPULIMIT_READER_REASON_BYTES] = "";
    struct gpulimit_ledger *ledger = NULL;

    if (fd < 0) {
        fd = memfd_create("ledger", MFD_CLOEXEC);
        fuzz_check(fd >= 0, "memory for a file");
    }
    fuzz_check(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size,
               "the file is written");
    if (gpulimit_reader_read(fd, "ledger", GPULIMIT_READER_ENTRIES | GPULIMIT_READER_HISTORY,
                             reason, &ledger) == GPULIMIT_READER_OK) {
        fuzz_check_ledger(ledger);
        if (printed++ % 16 == 0) { /* it takes a hundred times as long as reading */
            fuzz_print(ledger);
        }
        gpulimit_reader_close(ledger);
    } else {
        fuzz_check(!ledger, "no ledger without success");
        fuzz_check(reason[0] != '\0' && memchr(reason, '\0', sizeof(reason)),
                   "a refusal has a reason");
    }
    return 0;
}
