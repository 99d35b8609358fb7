/* SPDX-License-Identifier: MIT
 *
 * Of image_size.h, cubins: ELF objects whose sections .nv.global and .nv.global.init are the
 * module's variables.
 */
#include <elf.h>

#include "image_parts.h"

#define IMAGE_ELF_MACHINE   190  /* EM_CUDA */
#define IMAGE_ELF_MANAGED   0x04 /* of st_other */
#define IMAGE_ELF_VARIABLES ".nv.global"

/* The section headers of a cubin whose header makes sense. */
struct image_elf {
    struct image_view image;
    uint64_t offset;
    unsigned count;
    struct image_view names;
};

static bool image_elf_section(const struct image_elf *elf, unsigned index, Elf64_Shdr *section)
{
    return index < elf->count &&
           image_read(elf->image, elf->offset + index * sizeof *section, section, sizeof *section);
}

static bool image_elf_open(struct image_view image, struct image_elf *elf)
{
    Elf64_Ehdr header;
    Elf64_Shdr names;
    if (!image_read(image, 0, &header, sizeof header))
        return false;
    /* A relocatable one is linked first, and the linker leaves out what nobody uses. */
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != IMAGE_ELF_MACHINE || header.e_type != ET_EXEC ||
        header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
        !image_has(image, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)))
        return false;
    *elf = (struct image_elf){image, header.e_shoff, header.e_shnum, {image.at, 0}};
    if (!image_elf_section(elf, header.e_shstrndx, &names) || names.sh_type != SHT_STRTAB ||
        !image_has(image, names.sh_offset, names.sh_size))
        return false;
    elf->names = (struct image_view){image.at + names.sh_offset, names.sh_size};
    return true;
}

static bool image_elf_is_variables(const struct image_elf *elf, const Elf64_Shdr *section)
{
    const size_t length = sizeof IMAGE_ELF_VARIABLES - 1;
    char name[sizeof IMAGE_ELF_VARIABLES];
    return (section->sh_flags & SHF_ALLOC) && section->sh_size > 0 &&
           image_read(elf->names, section->sh_name, name, sizeof name) &&
           memcmp(name, IMAGE_ELF_VARIABLES, length) == 0 &&
           (name[length] == '\0' || name[length] == '.');
}

/* Managed variables have their place in .nv.global, and a mark in the symbol table `symbols`. */
static uint64_t image_elf_managed(const struct image_elf *elf, const Elf64_Shdr *symbols)
{
    uint64_t sum = 0;
    Elf64_Sym symbol;
    Elf64_Shdr section;
    if (!image_has(elf->image, symbols->sh_offset, symbols->sh_size))
        return UINT64_MAX;
    for (uint64_t at = 0; at + sizeof symbol <= symbols->sh_size; at += sizeof symbol) {
        if (image_read(elf->image, symbols->sh_offset + at, &symbol, sizeof symbol) &&
            (symbol.st_other & IMAGE_ELF_MANAGED) &&
            image_elf_section(elf, symbol.st_shndx, &section) &&
            image_elf_is_variables(elf, &section))
            sum = image_add(sum, symbol.st_size);
    }
    return sum;
}

bool image_elf_least(struct image_view image, uint64_t *bytes)
{
    struct image_elf elf;
    Elf64_Shdr section;
    uint64_t variables = 0, managed = 0;
    *bytes = 0;
    if (!image_begins(image, ELFMAG, SELFMAG))
        return false;
    if (!image_elf_open(image, &elf))
        return true;
    for (unsigned i = 0; i < elf.count; i++) {
        if (image_elf_section(&elf, i, &section) && image_elf_is_variables(&elf, &section))
            variables = image_add(variables, section.sh_size);
    }
    for (unsigned i = 0; variables > 0 && i < elf.count; i++) {
        if (image_elf_section(&elf, i, &section) && section.sh_type == SHT_SYMTAB)
            managed = image_add(managed, image_elf_managed(&elf, &section));
    }
    *bytes = variables > managed ? variables - managed : 0;
    return true;
}
