/* SPDX-License-Identifier: MIT
 *
 * Memory pools: their life, their reserve, and when it goes back. Called under the driver's lock.
 */
#ifndef SIMGPU_POOL_H
#define SIMGPU_POOL_H

#include "arena.h"
#include "handle.h"
#include "memory.h"

#define POOL_CHUNK (32 * DRIVER_MIB)

struct pool_chunk;

struct CUmemPoolHandle_st {
    struct handle handle;
    CUmemLocation location;
    CUmemAllocationType type;
    unsigned gpu;
    bool is_shareable; /* may be exported */
    bool is_exported;  /* a driver quirk: keeps its memory from then on until it is destroyed */
    bool is_imported;  /* for pointers out of another one alone */
    uint64_t kept_bytes;
    bool is_default;
    bool is_destroyed; /* by the program; goes when the last free of an allocation is over */
    CUstream ends_on;  /* where that free waits to be synchronised */
    uint64_t live;     /* allocations */
    uint64_t max_bytes;
    uint64_t threshold_bytes;
    uint64_t reserved_bytes, reserved_high_bytes;
    uint64_t used_bytes, used_high_bytes;
    int reuse[3];             /* the reuse attributes; nothing depends on them here */
    CUmemAccess_flags access; /* of other devices; they share one setting here */
    uint64_t start;           /* of its addresses; 0 until it is first used */
    struct pool_chunk *chunk; /* of POOL_CHUNK bytes each */
    uint64_t chunks;          /* up to the last backed one */
    uint64_t chunk_room;
    struct arena rest; /* what is backed and free */
    TAILQ_ENTRY(CUmemPoolHandle_st) of_process;
};

/* Which pool a location uses for a type of memory. */
struct pool_choice {
    CUmemLocation location;
    CUmemAllocationType type;
    CUmemoryPool by_default, current;
    LIST_ENTRY(pool_choice) of_process;
};

CUresult pool_start(void); /* makes the devices' default pools */
struct pool_choice *pool_choose(CUmemLocation location,
                                CUmemAllocationType type); /* NULL: no memory */
bool pool_is_usable(const void *handle);                   /* a pool, and not an imported one */
bool pool_is_paid(const struct CUmemPoolHandle_st *pool);  /* out of a device's memory */

CUmemoryPool pool_create(CUmemLocation location, unsigned gpu, uint64_t max_bytes);
void pool_destroy(CUmemoryPool pool);
CUmemoryPool pool_default(CUdevice ordinal);
CUmemoryPool pool_of_device(CUdevice ordinal); /* the current one */
void pool_set_of_device(CUdevice ordinal, CUmemoryPool pool);

/* NULL: the device is full, or the pool's maximum reached. */
struct memory *pool_allocate(CUmemoryPool pool, uint64_t bytes);

/* stream: NULL for cuMemFree, which synchronises and gives back at once; a driver quirk, USED then
 * stays. */
void pool_free(struct memory *memory, CUstream stream);

void pool_trim(CUmemoryPool pool, uint64_t bytes_to_keep);
void pool_trim_all(unsigned gpu); /* all that is idle, of every pool */
void pool_synchronize(CUstream stream);
void pool_forget_stream(CUstream stream);

#endif
