/* SPDX-License-Identifier: MIT
 *
 * The two look-ups of loaded.h.
 */
#include "loaded.h"

#include <string.h>

struct loaded_search {
    const char *soname;
    struct loaded_object *object;
};

/* glibc relocates the pointers of a dynamic section in place, on most architectures; the vDSO's
 * stay offsets. */
static const void *loaded_pointer(ElfW(Addr) base, ElfW(Addr) value)
{
    return (const void *)(value < base ? base + value : value);
}

static int loaded_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct loaded_search *search = argument;
    const ElfW(Dyn) *dynamic = NULL;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    }
    if (!dynamic)
        return 0;
    struct loaded_object found = {.base = info->dlpi_addr};
    ElfW(Addr) soname = 0;
    bool has_soname = false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *pointer = loaded_pointer(info->dlpi_addr, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_SYMTAB) {
            found.symbols = pointer;
        } else if (dynamic->d_tag == DT_STRTAB) {
            found.strings = pointer;
        } else if (dynamic->d_tag == DT_GNU_HASH) {
            found.gnu_hash = pointer;
        } else if (dynamic->d_tag == DT_HASH) {
            found.sysv_hash = pointer;
        } else if (dynamic->d_tag == DT_SONAME) {
            soname = dynamic->d_un.d_val;
            has_soname = true;
        }
    }
    if (!has_soname || !found.strings || !found.symbols ||
        strcmp(found.strings + soname, search->soname) != 0)
        return 0;
    *search->object = found;
    return 1;
}

bool loaded_find_object(const char *soname, struct loaded_object *object)
{
    struct loaded_search search = {.soname = soname, .object = object};
    return dl_iterate_phdr(loaded_visit, &search) != 0;
}

static bool loaded_is_it(const struct loaded_object *object, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &object->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
           strcmp(object->strings + symbol->st_name, name) == 0;
}

/* Returns the symbol's index, 0 if there is none: both hash tables as the ELF and GNU
 * specifications lay them. */
static uint32_t loaded_find_gnu(const struct loaded_object *object, const char *name)
{
    uint32_t hash = 5381;
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        hash = hash * 33 + *at;
    const uint32_t *table = object->gnu_hash;
    uint32_t buckets_count = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *buckets = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = buckets + buckets_count;
    uint32_t index = buckets_count ? buckets[hash % buckets_count] : 0;
    if (index < first)
        return 0;
    for (;; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && loaded_is_it(object, index, name))
            return index;
        if (entry & 1)
            return 0;
    }
}

static uint32_t loaded_find_sysv(const struct loaded_object *object, const char *name)
{
    uint32_t hash = 0;
    for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
        hash = (hash << 4) + *at;
        uint32_t high = hash & 0xf0000000u;
        hash ^= high >> 24;
        hash &= ~high;
    }
    const uint32_t *table = object->sysv_hash;
    uint32_t buckets_count = table[0];
    const uint32_t *chain = table + 2 + buckets_count;
    uint32_t index = buckets_count ? table[2 + hash % buckets_count] : 0;
    while (index != 0 && !loaded_is_it(object, index, name))
        index = chain[index];
    return index;
}

void (*loaded_find_symbol(const struct loaded_object *object, const char *name))(void)
{
    uint32_t index = 0;
    if (object->gnu_hash)
        index = loaded_find_gnu(object, name);
    else if (object->sysv_hash)
        index = loaded_find_sysv(object, name);
    if (index == 0)
        return NULL;
    return (void (*)(void))(object->base + object->symbols[index].st_value);
}
