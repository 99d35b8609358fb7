/* SPDX-License-Identifier: MIT
 *
 * NVTX ranges as tags: InitializeInjectionNvtx2, and the functions that it gives NVTX. Ranges of a
 * thread that are pushed and popped name its phases; what else NVTX knows (marks, ranges from start
 * to end, names of things) stays without a function and costs nothing. A profiler that asks for
 * NVTX comes first by NVTX's own rule, and then nothing here is called.
 */
#include "nvtx_api.h"

#include "nvtx_names.h"
#include "tags.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A domain's handle is the address of its owner's byte; the last owner is that of all the rest. */
static const char entry_nvtx_domains[TAGS_OWNERS];
static atomic_uint entry_nvtx_created;

static unsigned entry_nvtx_owner(const void *domain)
{
    uintptr_t owner = (uintptr_t)domain - (uintptr_t)entry_nvtx_domains;
    return owner < TAGS_OWNERS ? (unsigned)owner : TAGS_FIRST_NVTX;
}

static int entry_nvtx_push_ex(const void *domain, const struct nvtx_attributes *attributes)
{
    char narrow[GPULIMIT_TEXT_BYTES];
    const char *name = NULL;
    if (attributes && attributes->size >= sizeof *attributes) {
        if (attributes->message_type == NVTX_MESSAGE_ASCII) {
            name = attributes->message.ascii;
        } else if (attributes->message_type == NVTX_MESSAGE_REGISTERED) {
            name = nvtx_registered(attributes->message.registered);
        } else if (attributes->message_type == NVTX_MESSAGE_WIDE) {
            nvtx_narrow(narrow, attributes->message.wide);
            name = narrow;
        }
    }
    return (int)tags_push(entry_nvtx_owner(domain), name);
}

static int entry_nvtx_push(const struct nvtx_attributes *attributes)
{
    return entry_nvtx_push_ex(NULL, attributes);
}

static int entry_nvtx_push_a(const char *name)
{
    return (int)tags_push(TAGS_FIRST_NVTX, name);
}

static int entry_nvtx_push_w(const wchar_t *wide)
{
    char name[GPULIMIT_TEXT_BYTES];
    nvtx_narrow(name, wide);
    return (int)tags_push(TAGS_FIRST_NVTX, name);
}

static int entry_nvtx_pop(void)
{
    return tags_pop(TAGS_FIRST_NVTX);
}

static int entry_nvtx_domain_pop(const void *domain)
{
    return tags_pop(entry_nvtx_owner(domain));
}

/* What a domain is called is of no use here. */
static const void *entry_nvtx_create(const void *name)
{
    unsigned number = atomic_fetch_add(&entry_nvtx_created, 1) + TAGS_FIRST_NVTX + 1;
    (void)name;
    return &entry_nvtx_domains[number < TAGS_OWNERS ? number : TAGS_OWNERS - 1];
}

static const void *entry_nvtx_register_a(const void *domain, const char *name)
{
    (void)domain;
    return nvtx_register(name);
}

static const void *entry_nvtx_register_w(const void *domain, const wchar_t *wide)
{
    char name[GPULIMIT_TEXT_BYTES];
    (void)domain;
    nvtx_narrow(name, wide);
    return nvtx_register(name);
}

struct entry_nvtx_row {
    enum nvtx_module module;
    unsigned place;
    nvtx_function function;
};

static const struct entry_nvtx_row entry_nvtx_rows[] = {
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_PUSH_EX, (nvtx_function)entry_nvtx_push},
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_PUSH_A, (nvtx_function)entry_nvtx_push_a},
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_PUSH_W, (nvtx_function)entry_nvtx_push_w},
    {NVTX_MODULE_CORE, NVTX_CORE_RANGE_POP, (nvtx_function)entry_nvtx_pop},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, (nvtx_function)entry_nvtx_push_ex},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_RANGE_POP, (nvtx_function)entry_nvtx_domain_pop},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_REGISTER_STRING_A, (nvtx_function)entry_nvtx_register_a},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_REGISTER_STRING_W, (nvtx_function)entry_nvtx_register_w},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_CREATE_A, (nvtx_function)entry_nvtx_create},
    {NVTX_MODULE_CORE2, NVTX_CORE2_DOMAIN_CREATE_W, (nvtx_function)entry_nvtx_create},
};

/* Puts a function where NVTX looks for it. An NVTX that is older may have fewer places. */
static bool entry_nvtx_attach(const struct nvtx_callbacks *callbacks,
                              const struct entry_nvtx_row *row)
{
    nvtx_function **table = NULL;
    unsigned size = 0;
    if (!callbacks->module_table(row->module, &table, &size) || !table || row->place >= size ||
        !table[row->place])
        return false;
    *table[row->place] = row->function;
    return true;
}

int InitializeInjectionNvtx2(nvtx_tables tables)
{
    const struct nvtx_callbacks *callbacks = tables(NVTX_TABLE_CALLBACKS);
    bool is_any = false;
    if (!callbacks || callbacks->struct_size < sizeof *callbacks)
        return 0;
    for (size_t i = 0; i < sizeof entry_nvtx_rows / sizeof entry_nvtx_rows[0]; i++)
        is_any |= entry_nvtx_attach(callbacks, &entry_nvtx_rows[i]);
    return is_any;
}

int InitializeInjectionNvtx2Preinject(nvtx_tables tables)
{
    return InitializeInjectionNvtx2(tables);
}
