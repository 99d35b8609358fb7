/* SPDX-License-Identifier: MIT
 *
 * Which loaded object an address lies in: the second half of native_frames.h. By the loader, and
 * for names that the loader does not know in full, the main program's among them, by the kernel.
 */
#include "native_frames.h"

#include "finder.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

struct native_search {
    uint64_t address;
    struct native_module *module;
};

/* Adds to a path; of one that is too long the end is kept. */
static void native_path_add(char path[NATIVE_PATH_BYTES], size_t *length, char byte)
{
    if (*length == NATIVE_PATH_BYTES - 1)
        memmove(path, path + 1, --*length);
    path[(*length)++] = byte;
    path[*length] = '\0';
}

struct native_line {
    enum { NATIVE_LINE_START, NATIVE_LINE_FIELDS, NATIVE_LINE_PATH } part;
    uint64_t start;
    size_t length;
};

/* Reads one byte of /proc/self/maps. Returns whether it ended the line of the module's start, which
 * has the path. */
static bool native_line_add(struct native_line *line, char byte, struct native_module *module)
{
    if (byte == '\n') {
        bool is_it = line->part == NATIVE_LINE_PATH && line->start == module->start;
        *line = (struct native_line){NATIVE_LINE_START, 0, 0};
        return is_it;
    }
    if (line->part == NATIVE_LINE_START) {
        if (byte == '-')
            line->part = NATIVE_LINE_FIELDS;
        else
            line->start = line->start << 4 | (uint64_t)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
    } else if (line->part == NATIVE_LINE_FIELDS && (byte == '/' || byte == '[')) {
        line->part = NATIVE_LINE_PATH;
    }
    if (line->part == NATIVE_LINE_PATH && line->start == module->start)
        native_path_add(module->path, &line->length, byte);
    return false;
}

/* Replaces a relative name, or none, by the path that the kernel has mapped there; leaves it if
 * there is none. */
static void native_path_by_kernel(struct native_module *module)
{
    struct native_line line = {NATIVE_LINE_START, 0, 0};
    char bytes[1024];
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t count = 0;
    bool is_done = maps < 0;
    while (!is_done && (count = read(maps, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < count && !is_done; i++)
            is_done = native_line_add(&line, bytes[i], module);
    }
    if (maps >= 0)
        close(maps);
}

static size_t native_align(size_t bytes, size_t align)
{
    return (bytes + align - 1) & ~(align - 1);
}

/* Takes the build id out of a run of notes, as the linker wrote it: any other is none. */
static void native_read_notes(const char *notes, size_t bytes, size_t align,
                              struct native_module *module)
{
    ElfW(Nhdr) note;
    while (bytes >= sizeof note) {
        memcpy(&note, notes, sizeof note);
        size_t name = sizeof note, id = native_align(name + note.n_namesz, align);
        size_t next = native_align(id + note.n_descsz, align);
        if (note.n_namesz > bytes || note.n_descsz > bytes || id + note.n_descsz > bytes)
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp(notes + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
            note.n_descsz <= NATIVE_BUILD_ID_BYTES) {
            memcpy(module->build_id, notes + id, note.n_descsz);
            module->build_id_bytes = note.n_descsz;
            return;
        }
        if (next > bytes)
            return;
        notes += next;
        bytes -= next;
    }
}

/* Whether a part of the file has been mapped: a tool may have left notes that were not. */
static bool native_is_mapped(const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && part->p_vaddr >= header->p_vaddr &&
            part->p_filesz <= header->p_filesz &&
            part->p_vaddr - header->p_vaddr <= header->p_filesz - part->p_filesz)
            return true;
    }
    return false;
}

static void native_read_module(const struct dl_phdr_info *info, struct native_module *module)
{
    for (unsigned i = 0; i < info->dlpi_phnum && module->build_id_bytes == 0; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_NOTE && native_is_mapped(info, header))
            native_read_notes((const char *)(info->dlpi_addr + header->p_vaddr), header->p_filesz,
                              header->p_align == 8 ? 8 : 4, module);
    }
    size_t length = 0;
    for (const char *byte = info->dlpi_name; byte && *byte; byte++)
        native_path_add(module->path, &length, *byte);
}

static int native_visit(struct dl_phdr_info *info, size_t size, void *argument)
{
    const struct native_search *search = argument;
    uint64_t first = UINT64_MAX, last = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD)
            continue;
        if (header->p_vaddr < first)
            first = header->p_vaddr;
        if (header->p_vaddr + header->p_memsz > last)
            last = header->p_vaddr + header->p_memsz;
    }
    uint64_t start = (info->dlpi_addr + first) & ~(page - 1);
    uint64_t end = (info->dlpi_addr + last + page - 1) & ~(page - 1);
    if (first > last || search->address < start || search->address >= end)
        return 0;
    *search->module = (struct native_module){.start = start, .end = end, .bias = info->dlpi_addr};
    native_read_module(info, search->module);
    return 1;
}

/* Asks for one object, and reads the rest from its own headers, as they were mapped. Returns false
 * if that cannot be. */
static bool native_find(struct native_search *search, bool *is_found)
{
    enum { PAGE = 4096 };
    struct finder_object object;
    *is_found = finder_find(search->address, &object);
    if (!*is_found)
        return finder_is_there();
    const ElfW(Ehdr) *header = object.start;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phoff > PAGE ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > PAGE)
        return false;
    struct dl_phdr_info info = {
        .dlpi_addr = object.map->l_addr,
        .dlpi_name = object.map->l_name,
        .dlpi_phdr = (const void *)((const char *)object.start + header->e_phoff),
        .dlpi_phnum = header->e_phnum,
    };
    *is_found = native_visit(&info, sizeof info, search) != 0;
    return true;
}

bool native_module_of(uint64_t address, struct native_module *module)
{
    int saved_errno = errno;
    struct native_search search = {.address = address, .module = module};
    bool is_found;
    if (!native_find(&search, &is_found))
        is_found = dl_iterate_phdr(native_visit, &search) != 0;
    if (is_found && module->path[0] != '/')
        native_path_by_kernel(module);
    errno = saved_errno;
    return is_found;
}
