/* SPDX-License-Identifier: MIT
 *
 * The sections of a ledger file that say where allocations were asked for: modules, texts, sites.
 * Their records are written once, before anything names them, so one copy of each is good. They are
 * detail: what is wrong in one makes it unknown, and the ledger no worse.
 */
#include <stdlib.h>
#include <string.h>

#include "reader_parts.h"

const struct gpulimit_site *gpulimit_reader_site(const struct gpulimit_ledger *ledger,
                                                 uint32_t number)
{
    const struct gpulimit_site *site;

    if (number == 0 || number > ledger->site_count) {
        return NULL;
    }
    site = &ledger->sites[number - 1];
    return site->native_count + site->python_count > 0 ? site : NULL;
}

const struct gpulimit_module *gpulimit_reader_module(const struct gpulimit_ledger *ledger,
                                                     uint32_t number)
{
    bool has_path =
        number > 0 && number <= ledger->module_count && ledger->modules[number - 1].path[0] != '\0';

    return has_path ? &ledger->modules[number - 1] : NULL;
}

const char *gpulimit_reader_text(const struct gpulimit_ledger *ledger, uint32_t number)
{
    return number > 0 && number <= ledger->text_count ? ledger->texts[number - 1] : "";
}

/* Copies the records of one section's extents, at most `most` of them, each to the start of
 * `room_bytes` of its own. */
static enum gpulimit_reader_status reader_read_section(struct reader *reader, uint32_t section,
                                                       size_t record_bytes, size_t room_bytes,
                                                       uint32_t most, void **records,
                                                       uint32_t *count)
{
    for (uint32_t number = 0; number < reader->header.extents_used; number++) {
        const struct gpulimit_extent *extent = &reader->header.extents[number];
        uint32_t wanted = extent->count < most - *count ? extent->count : most - *count;
        char *grown;

        if (extent->section != section || wanted == 0) {
            continue;
        }
        grown = reallocarray(*records, *count + wanted, room_bytes);
        if (!grown) {
            return reader_fail(reader, GPULIMIT_READER_FAILED, "cannot be read: out of memory");
        }
        *records = grown;
        grown += *count * room_bytes;
        memset(grown, 0, wanted * room_bytes);
        for (uint32_t record = 0; record < wanted; record++) {
            enum records_outcome outcome =
                records_copy(reader->fd, extent->offset + (uint64_t)record * record_bytes,
                             record_bytes, grown + record * room_bytes);

            if (outcome != RECORDS_SETTLED) {
                return reader_fail_copy(reader, outcome);
            }
        }
        *count += wanted;
    }
    return GPULIMIT_READER_OK;
}

static void reader_mend_modules(struct gpulimit_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->module_count; i++) {
        struct gpulimit_module *module = &ledger->modules[i];

        module->path[sizeof(module->path) - 1] = '\0';
        if (module->build_id_bytes > sizeof(module->build_id)) {
            module->build_id_bytes = 0;
        }
    }
}

static void reader_mend_sites(struct gpulimit_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->site_count; i++) {
        struct gpulimit_site *site = &ledger->sites[i];

        if ((uint32_t)site->native_count + site->python_count > GPULIMIT_SITE_FRAMES) {
            *site = (struct gpulimit_site){0};
        }
    }
}

enum gpulimit_reader_status reader_read_sites(struct reader *reader, struct gpulimit_ledger *ledger)
{
    void *sites = NULL;
    void *modules = NULL;
    void *texts = NULL;
    enum gpulimit_reader_status status;

    status = reader_read_section(reader, GPULIMIT_SECTION_SITES, sizeof(struct gpulimit_site),
                                 sizeof(struct gpulimit_site), GPULIMIT_READER_SITES_MAX, &sites,
                                 &ledger->site_count);
    ledger->sites = sites;
    if (status == GPULIMIT_READER_OK) {
        status = reader_read_section(reader, GPULIMIT_SECTION_MODULES,
                                     sizeof(struct gpulimit_module), sizeof(struct gpulimit_module),
                                     GPULIMIT_READER_MODULES_MAX, &modules, &ledger->module_count);
        ledger->modules = modules;
    }
    if (status == GPULIMIT_READER_OK) {
        status = reader_read_section(reader, GPULIMIT_SECTION_TEXTS, GPULIMIT_TEXT_BYTES,
                                     sizeof(*ledger->texts), GPULIMIT_READER_TEXTS_MAX, &texts,
                                     &ledger->text_count);
        ledger->texts = texts;
    }
    reader_mend_modules(ledger);
    reader_mend_sites(ledger);
    return status;
}
