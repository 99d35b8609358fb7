/* SPDX-License-Identifier: MIT
 *
 * The report of a run in memory: room for it.
 */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

const char *record_keep(struct record *record, const char *text)
{
    record->texts = memory_grow(record->texts, record->text_count, sizeof(*record->texts));
    record->texts[record->text_count] = memory_check(strdup(text));
    return record->texts[record->text_count++];
}

void record_add_argument(struct record *record, const char *argument)
{
    record->arguments = memory_grow((void *)(uintptr_t)record->arguments,
                                    record->head.command_count, sizeof(*record->arguments));
    record->arguments[record->head.command_count++] = record_keep(record, argument);
    record->head.command = record->arguments;
}

struct record_device *record_add_device(struct record *record)
{
    record->devices = memory_grow(record->devices, record->device_count, sizeof(*record->devices));
    record->devices[record->device_count] = (struct record_device){0};
    return &record->devices[record->device_count++];
}

struct record_mark *record_add_mark(struct record_device *device)
{
    device->marks = memory_grow(device->marks, device->mark_count, sizeof(*device->marks));
    device->marks[device->mark_count] = (struct record_mark){0};
    return &device->marks[device->mark_count++];
}

struct gpulimit_ledger_sample *record_add_sample(struct record_device *device)
{
    device->samples = memory_grow(device->samples, device->sample_count, sizeof(*device->samples));
    device->samples[device->sample_count] = (struct gpulimit_ledger_sample){0};
    return &device->samples[device->sample_count++];
}

static void record_drop_device(struct record_device *device)
{
    free(device->marks);
    free(device->samples);
}

void record_filter(struct record *record, const struct view_filter *filter)
{
    size_t kept = 0;

    for (size_t i = 0; i < record->device_count; i++) {
        struct gpulimit_ledger_device named = {.gpu_index = record->devices[i].figures.gpu_index};

        strncpy(named.gpu_uuid, record->devices[i].figures.gpu_uuid, sizeof(named.gpu_uuid) - 1);
        if (view_has_gpu(filter, &named)) {
            record->devices[kept++] = record->devices[i];
        } else {
            record_drop_device(&record->devices[i]);
        }
    }
    record->device_count = kept;
}

void record_drop(struct record *record)
{
    for (size_t i = 0; i < record->device_count; i++) {
        record_drop_device(&record->devices[i]);
    }
    for (size_t i = 0; i < record->text_count; i++) {
        free(record->texts[i]);
    }
    free(record->devices);
    free(record->texts);
    free((void *)(uintptr_t)record->arguments);
    *record = (struct record){0};
}
