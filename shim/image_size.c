/* SPDX-License-Identifier: MIT
 *
 * Fat binaries, and which form an image has. image_elf.c and image_ptx.c read the forms.
 */
#include "image_size.h"

#include <stddef.h>

#include "image_parts.h"

/* Points at a fat binary. As the compiler puts it into a program, and the runtime hands it on. */
struct image_wrapper {
    uint32_t magic, version;
    uint64_t data;
};

/* Entries follow. */
struct image_fat {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t entries_bytes;
};

/* One image, for one architecture; the payload follows. */
struct image_fat_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t payload_bytes;
    uint32_t unused[3];
    uint32_t architecture;
    uint64_t names;
    uint64_t flags;
};

_Static_assert(offsetof(struct image_fat_entry, architecture) == 28, "as nvcc writes it");
_Static_assert(offsetof(struct image_fat_entry, flags) == 40, "as nvcc writes it");

#define IMAGE_FAT_MAGIC     "\x50\xed\x55\xba"
#define IMAGE_WRAPPER_MAGIC "\xb1\x43\x62\x46"

enum { IMAGE_KIND_PTX = 1, IMAGE_KIND_ELF = 2 };

#define IMAGE_FLAG_LZ4  UINT64_C(0x2000)
#define IMAGE_FLAG_ZSTD UINT64_C(0x8000)
#define IMAGE_PACKED    (IMAGE_FLAG_LZ4 | IMAGE_FLAG_ZSTD)
#define IMAGE_VARIANTS  UINT64_C(0x300000) /* sm_90a, sm_100f: not what sm_90, sm_100 are */

/* Reads the entry at *offset, which then is the next one's. False if it does not fit. */
static bool image_fat_next(struct image_view entries, uint64_t *offset,
                           struct image_fat_entry *entry, struct image_view *payload)
{
    uint64_t start;
    if (!image_read(entries, *offset, entry, sizeof *entry) || entry->header_bytes < sizeof *entry)
        return false;
    start = *offset + entry->header_bytes;
    if (!image_has(entries, start, entry->payload_bytes))
        return false;
    *payload = (struct image_view){entries.at + start, entry->payload_bytes};
    *offset = start + entry->payload_bytes;
    return true;
}

/* Others are parts for a linker, which leaves out what nobody uses. */
static bool image_fat_is_loadable(const struct image_fat_entry *entry)
{
    return entry->kind == IMAGE_KIND_PTX || entry->kind == IMAGE_KIND_ELF;
}

static bool image_fat_is_readable(const struct image_fat_entry *entry)
{
    return image_fat_is_loadable(entry) && !(entry->flags & IMAGE_PACKED);
}

/* nvcc packs PTX, and leaves the cubin that it made of the same PTX as it is. */
static bool image_fat_has_twin(struct image_view entries, const struct image_fat_entry *packed)
{
    struct image_fat_entry entry;
    struct image_view payload;
    uint64_t offset = 0;
    while (image_fat_next(entries, &offset, &entry, &payload)) {
        if (image_fat_is_readable(&entry) && entry.architecture == packed->architecture &&
            (entry.flags & IMAGE_VARIANTS) == (packed->flags & IMAGE_VARIANTS))
            return true;
    }
    return false;
}

/* Which entry is loaded is for the driver to choose: the smallest. What cannot be read is 0. */
static uint64_t image_fat_smallest(struct image_view entries)
{
    struct image_fat_entry entry;
    struct image_view payload;
    uint64_t smallest = UINT64_MAX, offset = 0, bytes;
    while (offset < entries.length) {
        if (!image_fat_next(entries, &offset, &entry, &payload))
            return 0;
        if (image_fat_is_readable(&entry)) {
            (void)(entry.kind == IMAGE_KIND_PTX ? image_ptx_least(payload, &bytes)
                                                : image_elf_least(payload, &bytes));
            smallest = bytes < smallest ? bytes : smallest;
        } else if (!image_fat_is_loadable(&entry) || !image_fat_has_twin(entries, &entry)) {
            return 0;
        }
        if (smallest == 0)
            return 0;
    }
    return offset == 0 ? 0 : smallest;
}

bool image_fat_least(struct image_view image, uint64_t *bytes)
{
    struct image_fat fat;
    *bytes = 0;
    if (!image_begins(image, IMAGE_FAT_MAGIC, sizeof fat.magic))
        return false;
    if (image_read(image, 0, &fat, sizeof fat) && fat.version == 1 &&
        image_has(image, fat.header_bytes, fat.entries_bytes))
        *bytes =
            image_fat_smallest((struct image_view){image.at + fat.header_bytes, fat.entries_bytes});
    return true;
}

bool image_any_least(struct image_view image, uint64_t *bytes)
{
    return image_elf_least(image, bytes) || image_fat_least(image, bytes) ||
           image_ptx_least(image, bytes);
}

bool image_least_bytes(const void *image, uint64_t *bytes)
{
    struct image_view view = {image, IMAGE_LONGEST};
    struct image_wrapper wrapper;
    *bytes = 0;
    if (!image)
        return false;
    if (!image_begins(view, IMAGE_WRAPPER_MAGIC, sizeof wrapper.magic))
        return image_any_least(view, bytes);
    /* Version 2 is of code that was linked, and might be linked anew from its parts. */
    if (!image_read(view, 0, &wrapper, sizeof wrapper) || wrapper.version != 1 || !wrapper.data)
        return true;
    view.at = (const unsigned char *)(uintptr_t)wrapper.data;
    (void)image_fat_least(view, bytes);
    return true;
}
