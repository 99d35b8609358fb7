/* SPDX-License-Identifier: MIT
 *
 * Registered names lie in one mapping, of which only what is written takes memory; a handle is the
 * address there.
 */
#include "nvtx_names.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

typedef char nvtx_name[GPULIMIT_TEXT_BYTES];

static nvtx_name *_Atomic nvtx_names;
static atomic_uint nvtx_names_count;

static unsigned nvtx_encode(unsigned char *bytes, uint32_t point)
{
    if (point < 0x80) {
        bytes[0] = (unsigned char)point;
        return 1;
    }
    unsigned more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3; /* bytes after the first */
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    for (unsigned i = more; i > 0; i--, point >>= 6)
        bytes[i] = (unsigned char)(0x80 | (point & 0x3f));
    bytes[0] = (unsigned char)(first[more] | point);
    return more + 1;
}

void nvtx_narrow(char name[GPULIMIT_TEXT_BYTES], const wchar_t *wide)
{
    size_t length = 0;
    for (; wide && *wide != L'\0'; wide++) {
        unsigned char bytes[4];
        uint32_t point = (uint32_t)*wide;
        /* Neither surrogates nor what lies beyond Unicode can be written. */
        if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
            point = '?';
        unsigned count = nvtx_encode(bytes, point);
        if (length + count >= GPULIMIT_TEXT_BYTES)
            break;
        memcpy(name + length, bytes, count);
        length += count;
    }
    name[length] = '\0';
}

/* Whoever maps second gives his back. */
static nvtx_name *nvtx_names_get(void)
{
    nvtx_name *names = atomic_load_explicit(&nvtx_names, memory_order_acquire);
    size_t bytes = NVTX_NAMES_MOST * sizeof(nvtx_name);
    if (names)
        return names;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong(&nvtx_names, &names, memory))
        return memory;
    munmap(memory, bytes);
    return names;
}

const void *nvtx_register(const char *name)
{
    int saved = errno;
    nvtx_name *names = nvtx_names_get();
    errno = saved;
    if (!names || !name || atomic_load(&nvtx_names_count) >= NVTX_NAMES_MOST)
        return NULL;
    unsigned number = atomic_fetch_add(&nvtx_names_count, 1);
    if (number >= NVTX_NAMES_MOST)
        return NULL;
    memcpy(names[number], name, strnlen(name, sizeof(nvtx_name) - 1));
    return names[number];
}

const char *nvtx_registered(const void *handle)
{
    const char *names = (const char *)atomic_load_explicit(&nvtx_names, memory_order_acquire);
    uintptr_t distance = (uintptr_t)handle - (uintptr_t)names;
    bool is_one = names && distance < NVTX_NAMES_MOST * sizeof(nvtx_name) &&
                  distance % sizeof(nvtx_name) == 0;
    return is_one ? names + distance : NULL;
}
