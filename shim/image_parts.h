/* SPDX-License-Identifier: MIT
 *
 * What the readers of code images (image_size.h) share: a view of bytes that are not to be trusted,
 * and one function for each form.
 */
#ifndef SHIM_IMAGE_PARTS_H
#define SHIM_IMAGE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Nothing beyond the length is read. Where the length is not known it is IMAGE_LONGEST, and what a
 * form says of itself is the bound: text ends at a NUL. */
struct image_view {
    const unsigned char *at;
    uint64_t length;
};

#define IMAGE_LONGEST (UINT64_C(1) << 31)

/* Each: false if the image is not of this form; 0 bytes where nothing can be known. */
bool image_elf_least(struct image_view image, uint64_t *bytes);
bool image_ptx_least(struct image_view image, uint64_t *bytes);
bool image_fat_least(struct image_view image, uint64_t *bytes);

/* Any of these three. */
bool image_any_least(struct image_view image, uint64_t *bytes);

static inline bool image_has(struct image_view image, uint64_t offset, uint64_t bytes)
{
    return offset <= image.length && bytes <= image.length - offset;
}

/* Images have no alignment. */
static inline bool image_read(struct image_view image, uint64_t offset, void *to, size_t bytes)
{
    if (!image_has(image, offset, bytes))
        return false;
    memcpy(to, image.at + offset, bytes);
    return true;
}

/* Byte by byte: a short text ends before all of a magic number is read. */
static inline bool image_begins(struct image_view image, const char *magic, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (i >= image.length || image.at[i] != (unsigned char)magic[i])
            return false;
    }
    return true;
}

static inline uint64_t image_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t image_multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

#endif
