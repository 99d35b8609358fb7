/* SPDX-License-Identifier: MIT
 *
 * The look-ups of loaded.h.
 */
#include "loaded.h"

#include <stddef.h>
#include <sys/auxv.h>

struct loaded_search {
    const char *soname;
    struct loaded_object *object;
};

struct loaded_visitor {
    bool (*visit)(const struct loaded_object *object, void *argument);
    void *argument;
};

/* glibc relocates the pointers of a dynamic section in place, on most architectures; the vDSO's
 * stay offsets. */
static const void *loaded_pointer(ElfW(Addr) base, ElfW(Addr) value)
{
    return (const void *)(value < base ? base + value : value);
}

/* Reads an object's dynamic section. Returns whether the object has symbols, and that name; NULL is
 * any. */
static bool loaded_read(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char *soname,
                        struct loaded_object *object)
{
    struct loaded_object found = {.base = base, .dynamic = dynamic};
    ElfW(Addr) name = 0;
    bool has_name = false;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *pointer = loaded_pointer(base, dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_SYMTAB) {
            found.symbols = pointer;
        } else if (dynamic->d_tag == DT_STRTAB) {
            found.strings = pointer;
        } else if (dynamic->d_tag == DT_GNU_HASH) {
            found.gnu_hash = pointer;
        } else if (dynamic->d_tag == DT_HASH) {
            found.sysv_hash = pointer;
        } else if (dynamic->d_tag == DT_SONAME) {
            name = dynamic->d_un.d_val;
            has_name = true;
        } else if (dynamic->d_tag == DT_VERDEF) {
            found.has_versions = true;
        }
    }
    if (!found.strings || !found.symbols)
        return false;
    if (has_name)
        found.soname = found.strings + name;
    if (soname && !(has_name && loaded_is_name(found.soname, soname)))
        return false;
    *object = found;
    return true;
}

/* The loader's list of objects, which it shows to debuggers by the program's own dynamic section.
 * Not by _r_debug: to refer to that is to need the loader by name. */
static const struct link_map *loaded_list(void)
{
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    const ElfW(Dyn) *dynamic = NULL;
    ElfW(Addr) base = 0;
    for (unsigned long i = 0; headers && i < getauxval(AT_PHNUM); i++) {
        if (headers[i].p_type == PT_PHDR)
            base = (ElfW(Addr))headers - headers[i].p_vaddr;
        else if (headers[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(base + headers[i].p_vaddr);
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_DEBUG && dynamic->d_un.d_ptr)
            return ((const struct r_debug *)dynamic->d_un.d_ptr)->r_map;
    }
    return NULL;
}

bool loaded_find_early(const char *soname, struct loaded_object *object)
{
    for (const struct link_map *map = loaded_list(); map; map = map->l_next) {
        if (map->l_ld && loaded_read(map->l_addr, map->l_ld, soname, object))
            return true;
    }
    return loaded_find_object(soname, object); /* a program started as an argument of the loader */
}

static int loaded_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
    const struct loaded_search *search = argument;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC)
            return loaded_read(info->dlpi_addr, (const void *)(info->dlpi_addr + header->p_vaddr),
                               search->soname, search->object);
    }
    return 0;
}

bool loaded_find_object(const char *soname, struct loaded_object *object)
{
    struct loaded_search search = {.soname = soname, .object = object};
    return dl_iterate_phdr(loaded_visit, &search) != 0;
}

static int loaded_visit_any(struct dl_phdr_info *info, size_t size, void *argument)
{
    const struct loaded_visitor *visitor = argument;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        struct loaded_object object;
        if (header->p_type == PT_DYNAMIC)
            return loaded_read(info->dlpi_addr, (const void *)(info->dlpi_addr + header->p_vaddr),
                               NULL, &object) &&
                   visitor->visit(&object, visitor->argument);
    }
    return 0;
}

void loaded_each(bool (*visit)(const struct loaded_object *object, void *argument), void *argument)
{
    struct loaded_visitor visitor = {.visit = visit, .argument = argument};
    dl_iterate_phdr(loaded_visit_any, &visitor);
}

struct loaded_place_search {
    uint64_t address;
    struct loaded_place *place;
};

static int loaded_visit_place(struct dl_phdr_info *info, size_t size, void *argument)
{
    const struct loaded_place_search *search = argument;
    struct loaded_place found = {.base = info->dlpi_addr, .name = info->dlpi_name};
    uint64_t offset = search->address - info->dlpi_addr;
    bool is_it = false;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_DYNAMIC)
            found.dynamic = (const void *)(info->dlpi_addr + header->p_vaddr);
        else if (header->p_type == PT_LOAD)
            is_it |= offset >= header->p_vaddr && offset - header->p_vaddr < header->p_memsz;
    }
    if (is_it)
        *search->place = found;
    return is_it;
}

bool loaded_find_place(uint64_t address, struct loaded_place *place)
{
    struct loaded_place_search search = {.address = address, .place = place};
    place->dynamic = NULL;
    dl_iterate_phdr(loaded_visit_place, &search);
    return place->dynamic != NULL;
}

bool loaded_read_place(const struct loaded_place *place, struct loaded_object *object)
{
    return loaded_read(place->base, place->dynamic, NULL, object);
}

bool loaded_needs(const struct loaded_object *object, const char *soname)
{
    for (const ElfW(Dyn) *at = object->dynamic; at->d_tag != DT_NULL; at++) {
        if (at->d_tag == DT_NEEDED && loaded_is_name(object->strings + at->d_un.d_val, soname))
            return true;
    }
    return false;
}

static int loaded_visit_counts(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct loaded_counts *counts = argument;
    (void)size;
    *counts = (struct loaded_counts){.added = info->dlpi_adds, .removed = info->dlpi_subs};
    return 1;
}

struct loaded_counts loaded_count(void)
{
    struct loaded_counts counts = {0};
    dl_iterate_phdr(loaded_visit_counts, &counts);
    return counts;
}

static bool loaded_is_it(const struct loaded_object *object, uint32_t index, const char *name,
                         unsigned type)
{
    const ElfW(Sym) *symbol = &object->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == type &&
           loaded_is_name(object->strings + symbol->st_name, name);
}

/* Returns the symbol's index, 0 if there is none: both hash tables as the ELF and GNU
 * specifications lay them. */
static uint32_t loaded_find_gnu(const struct loaded_object *object, const char *name, unsigned type)
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
        if ((entry | 1) == (hash | 1) && loaded_is_it(object, index, name, type))
            return index;
        if (entry & 1)
            return 0;
    }
}

static uint32_t loaded_find_sysv(const struct loaded_object *object, const char *name,
                                 unsigned type)
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
    while (index != 0 && !loaded_is_it(object, index, name, type))
        index = chain[index];
    return index;
}

/* Returns its address, 0 if there is none. */
static ElfW(Addr)
    loaded_find_typed(const struct loaded_object *object, const char *name, unsigned type)
{
    uint32_t index = 0;
    if (object->gnu_hash)
        index = loaded_find_gnu(object, name, type);
    else if (object->sysv_hash)
        index = loaded_find_sysv(object, name, type);
    return index ? object->base + object->symbols[index].st_value : 0;
}

void (*loaded_find_symbol(const struct loaded_object *object, const char *name))(void)
{
    return (void (*)(void))loaded_find_typed(object, name, STT_FUNC);
}

const void *loaded_find_data(const struct loaded_object *object, const char *name)
{
    return (const void *)loaded_find_typed(object, name, STT_OBJECT);
}
