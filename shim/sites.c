/* SPDX-License-Identifier: MIT
 *
 * Stacks by their hash, and what they are made of by what it says.
 */
#include "sites.h"

#include "region.h"

#include <string.h>
#include <sys/mman.h>

static uint64_t sites_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

uint64_t sites_hash(const struct sites_stack *stack)
{
    uint64_t hash = sites_mix(stack->native_count, stack->python_count);
    for (unsigned i = 0; i < stack->native_count; i++)
        hash = sites_mix(hash, stack->native[i]);
    for (unsigned i = 0; i < stack->python_count; i++) {
        const struct python_frame *frame = &stack->python[i];
        hash = sites_mix(hash, (uint64_t)(uintptr_t)frame->code);
        /* A code object's address may be another's later; those of its strings seldom are too. */
        hash = sites_mix(hash, (uint64_t)(uintptr_t)frame->function.data);
        hash = sites_mix(hash, (uint64_t)(uint32_t)frame->line);
    }
    return hash ? hash : 1;
}

uint32_t sites_find(const struct sites *sites, uint64_t hash)
{
    const uint64_t *number = table_find(&sites->by_stack, hash);
    return number ? (uint32_t)*number : 0;
}

/* Memory of which only what is written is taken; in huge pages it would be all at once. */
static void *sites_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    (void)madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static void sites_keep(struct sites *sites, enum gpulimit_section section, uint32_t number,
                       const void *record)
{
    if (!sites->kept)
        sites->kept = sites_map(sizeof *sites->kept);
    struct sites_kept *kept = sites->kept;
    if (!kept)
        return;
    if (section == GPULIMIT_SECTION_SITES && number <= SITES_MOST)
        memcpy(&kept->sites[number - 1], record, sizeof kept->sites[0]);
    else if (section == GPULIMIT_SECTION_TEXTS && number <= SITES_TEXTS_MOST)
        memcpy(&kept->texts[number - 1], record, sizeof kept->texts[0]);
    else if (section == GPULIMIT_SECTION_MODULES && number <= SITES_MODULES_MOST)
        memcpy(&kept->modules[number - 1], record, sizeof kept->modules[0]);
}

/* Numbers are the region's, or its own where there is no file. */
static uint32_t sites_number(struct sites *sites, uint32_t *count, enum gpulimit_section section,
                             const void *record)
{
    uint32_t number = region_append(section, record);
    ++*count;
    if (number == 0)
        number = *count;
    sites_keep(sites, section, number, record);
    return number;
}

/* Of a string, and the zeros behind it to a whole number of words. Never 0. */
static uint64_t sites_hash_text(const char *text, size_t bytes)
{
    uint64_t hash = 1, word;
    for (size_t i = 0; i < bytes; i += sizeof word) {
        size_t length = bytes - i < sizeof word ? bytes - i : sizeof word;
        word = 0;
        memcpy(&word, text + i, length);
        hash = sites_mix(hash, word);
    }
    return hash ? hash : 1;
}

uint32_t sites_find_text(const struct sites *sites, const struct sites_text *text)
{
    const uint64_t *known =
        table_find(&sites->by_text, sites_hash_text(text->text, sizeof text->text));
    return known ? (uint32_t)*known : 0;
}

uint32_t sites_add_text(struct sites *sites, const struct sites_text *text)
{
    uint64_t hash = sites_hash_text(text->text, sizeof text->text);
    const uint64_t *known = table_find(&sites->by_text, hash);
    if (known)
        return (uint32_t)*known;
    if (sites->texts == SITES_TEXTS_MOST || !table_set(&sites->by_text, hash, 0))
        return 0;
    uint32_t number = sites_number(sites, &sites->texts, GPULIMIT_SECTION_TEXTS, text->text);
    table_set(&sites->by_text, hash, number);
    return number;
}

uint32_t sites_add_text_of(struct sites *sites, const struct sites_text *text, uint32_t *count,
                           uint32_t most)
{
    uint32_t known = sites_find_text(sites, text);
    if (known > 0 || *count == most)
        return known;
    ++*count;
    return sites_add_text(sites, text);
}

/* By where it lies and which it is: another may have been loaded to the same place. */
uint32_t sites_add_module(struct sites *sites, const struct gpulimit_module *module)
{
    uint64_t key = sites_mix(module->start, module->end), id;
    for (size_t i = 0; i < sizeof module->build_id; i += sizeof id) {
        memcpy(&id, module->build_id + i, sizeof id);
        key = sites_mix(key, id);
    }
    const uint64_t *known = table_find(&sites->by_module, key ? key : 1);
    if (known)
        return (uint32_t)*known;
    if (sites->modules == SITES_MODULES_MOST || !table_set(&sites->by_module, key ? key : 1, 0))
        return 0;
    uint32_t number = sites_number(sites, &sites->modules, GPULIMIT_SECTION_MODULES, module);
    table_set(&sites->by_module, key ? key : 1, number);
    return number;
}

/* One mapping: names are pointed at. */
static void sites_call(struct sites *sites, uint32_t number, const char *name)
{
    if (!sites->called)
        sites->called = sites_map((SITES_MOST + 1) * sizeof *sites->called);
    if (!sites->called || number > SITES_MOST)
        return;
    struct sites_called *called = &sites->called[number];
    memcpy(called->name, name, strnlen(name, SITE_NAME_BYTES - 1));
    uint64_t hash = sites_hash_text(called->name, sizeof called->name);
    const uint64_t *known = table_find(&sites->by_name, hash);
    called->first = known ? (uint32_t)*known : number;
    if (!known)
        table_set(&sites->by_name, hash, number); /* without memory: each stands for itself */
}

bool sites_are_full(const struct sites *sites)
{
    return sites->sites == SITES_MOST;
}

uint32_t sites_add(struct sites *sites, uint64_t hash, const struct gpulimit_site *site,
                   const char *name)
{
    uint32_t number = sites_find(sites, hash);
    if (number != 0 || sites_are_full(sites) || !table_set(&sites->by_stack, hash, 0))
        return number;
    number = sites_number(sites, &sites->sites, GPULIMIT_SECTION_SITES, site);
    table_set(&sites->by_stack, hash, number);
    sites_call(sites, number, name);
    return number;
}

const struct gpulimit_site *sites_kept_site(const struct sites_kept *kept, uint32_t number)
{
    return kept && number > 0 && number <= SITES_MOST ? &kept->sites[number - 1] : NULL;
}

const char *sites_kept_text(const struct sites_kept *kept, uint32_t number)
{
    return kept && number > 0 && number <= SITES_TEXTS_MOST ? kept->texts[number - 1].text : NULL;
}

const struct gpulimit_module *sites_kept_module(const struct sites_kept *kept, uint32_t number)
{
    return kept && number > 0 && number <= SITES_MODULES_MOST ? &kept->modules[number - 1] : NULL;
}

void sites_clear(struct sites *sites)
{
    table_clear(&sites->by_stack);
    table_clear(&sites->by_text);
    table_clear(&sites->by_module);
    table_clear(&sites->by_name);
    if (sites->kept)
        munmap(sites->kept, sizeof *sites->kept);
    if (sites->called)
        munmap(sites->called, (SITES_MOST + 1) * sizeof *sites->called);
    *sites = (struct sites){0};
}
