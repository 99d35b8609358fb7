/* SPDX-License-Identifier: MIT
 *
 * The part of NVTX's binary interface that a tool meets, and of that what this one answers: ranges
 * that are pushed and popped, in domains or not. From NVTX 3 (nvToolsExt.h, nvtxDetail/nvtxTypes.h;
 * github.com/NVIDIA/NVTX), whose headers few machines have. Included by entry_nvtx.c alone.
 *
 * NVTX lives in each program and library that uses it. At its first call it looks for a tool: it
 * opens the library that NVTX_INJECTION64_PATH names and calls InitializeInjectionNvtx2 there, with
 * a function that gives out tables. One of them leads to an array for each module of NVTX: of
 * pointers to the places where the tool puts its own functions. What a tool leaves alone costs the
 * program nothing.
 */
#ifndef SHIM_NVTX_API_H
#define SHIM_NVTX_API_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

enum { NVTX_TABLE_CALLBACKS = 1 };

enum nvtx_module {
    NVTX_MODULE_CORE = 1,
    NVTX_MODULE_CORE2 = 5,
};

/* Places in the array of a module. */
enum {
    NVTX_CORE_RANGE_PUSH_EX = 8,
    NVTX_CORE_RANGE_PUSH_A = 9,
    NVTX_CORE_RANGE_PUSH_W = 10,
    NVTX_CORE_RANGE_POP = 11,
};
enum {
    NVTX_CORE2_DOMAIN_RANGE_PUSH_EX = 4,
    NVTX_CORE2_DOMAIN_RANGE_POP = 5,
    NVTX_CORE2_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_CORE2_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_CORE2_DOMAIN_CREATE_A = 12,
    NVTX_CORE2_DOMAIN_CREATE_W = 13,
};

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
    size_t struct_size;
    /* Returns 0 for a module that it does not know. *size: places in *table, the unused place 0
     * among them. */
    int (*module_table)(enum nvtx_module module, nvtx_function ***table, unsigned *size);
};

typedef const void *(*nvtx_tables)(uint32_t table);

enum nvtx_message {
    NVTX_MESSAGE_NONE = 0,
    NVTX_MESSAGE_ASCII = 1,
    NVTX_MESSAGE_WIDE = 2,
    NVTX_MESSAGE_REGISTERED = 3,
};

/* What a program says of a range. */
struct nvtx_attributes {
    uint16_t version;
    uint16_t size; /* of what the caller knows of this structure */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type; /* enum nvtx_message */
    union {
        const char *ascii;
        const wchar_t *wide;
        const void *registered; /* as the tool has answered */
    } message;
};

_Static_assert(offsetof(struct nvtx_callbacks, module_table) == 8, "as NVTX has it");
_Static_assert(offsetof(struct nvtx_attributes, payload) == 24, "as NVTX has it");
_Static_assert(offsetof(struct nvtx_attributes, message_type) == 32, "as NVTX has it");
_Static_assert(offsetof(struct nvtx_attributes, message) == 40, "as NVTX has it");
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as NVTX has it");
_Static_assert(sizeof(wchar_t) == 4, "wide strings are UTF-32 here");

#pragma GCC visibility push(default)
/* Returns whether the tool takes part. Called once for each copy of NVTX in the process. */
int InitializeInjectionNvtx2(nvtx_tables tables);
int InitializeInjectionNvtx2Preinject(nvtx_tables tables);
#pragma GCC visibility pop

#endif
