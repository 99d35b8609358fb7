/* SPDX-License-Identifier: MIT
 *
 * The questions of truth_card.h.
 */
#include "truth_card.h"

#include "budget.h"
#include "real.h"
#include "start.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CARD_UUID_BYTES = 48 };

static _Atomic(nvmlDevice_t) card_handles[BUDGET_DEVICES];
static atomic_bool card_is_ready;

static bool card_open(void)
{
    if (atomic_load_explicit(&card_is_ready, memory_order_acquire))
        return true;
    /* Counted by NVML, and never undone: it is needed as long as the process has contexts. Threads
     * that come at once count twice. */
    if (!real_open_nvml() || real.nvmlInit_v2() != NVML_SUCCESS)
        return false;
    atomic_store_explicit(&card_is_ready, true, memory_order_release);
    return true;
}

static void card_copy_uuid(char uuid[CARD_UUID_BYTES], unsigned device)
{
    memset(uuid, 0, CARD_UUID_BYTES);
    strncpy(uuid, start_uuid(device), CARD_UUID_BYTES - 1);
}

/* NVML's handle of a device, or NULL. */
static nvmlDevice_t card_of(unsigned device)
{
    char uuid[CARD_UUID_BYTES];
    nvmlDevice_t handle = atomic_load_explicit(&card_handles[device], memory_order_relaxed);
    if (handle || !card_open())
        return handle;
    card_copy_uuid(uuid, device);
    if (real.nvmlDeviceGetHandleByUUID(uuid, &handle) != NVML_SUCCESS) {
        memcpy(uuid, "MIG", 3); /* a part of a card has its own */
        if (real.nvmlDeviceGetHandleByUUID(uuid, &handle) != NVML_SUCCESS)
            return NULL;
    }
    atomic_store_explicit(&card_handles[device], handle, memory_order_relaxed);
    return handle;
}

/* _v3 comes last but one: early 535 drivers wrote longer records with it than they said. */
static nvmlReturn_t card_list(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    if (real_has(nvmlDeviceGetComputeRunningProcesses_v2))
        return real.nvmlDeviceGetComputeRunningProcesses_v2(handle, count, infos);
    if (real_has(nvmlDeviceGetComputeRunningProcesses_v3))
        return real.nvmlDeviceGetComputeRunningProcesses_v3(handle, count, infos);
    /* The first version's records are shorter: they are read in place, from the end. */
    nvmlProcessInfo_v1_t *old = (nvmlProcessInfo_v1_t *)infos;
    nvmlReturn_t result = real.nvmlDeviceGetComputeRunningProcesses(handle, count, old);
    for (unsigned i = result == NVML_SUCCESS ? *count : 0; i-- > 0;) {
        nvmlProcessInfo_v1_t info = old[i];
        infos[i] = (nvmlProcessInfo_v2_t){.pid = info.pid, .usedGpuMemory = info.usedGpuMemory};
    }
    return result;
}

static bool card_find(const nvmlProcessInfo_v2_t *infos, unsigned count, uint64_t *bytes)
{
    bool is_listed = false;
    unsigned pid = (unsigned)getpid();
    *bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        /* All ones where the driver does not know, in some virtual machines. */
        if (infos[i].pid == pid && infos[i].usedGpuMemory != UINT64_MAX) {
            *bytes += infos[i].usedGpuMemory;
            is_listed = true;
        }
    }
    return is_listed;
}

bool truth_card_process(unsigned device, uint64_t *bytes)
{
    enum { FEW = 64, MORE = 64 };
    nvmlProcessInfo_v2_t few[FEW];
    unsigned count = FEW;
    nvmlDevice_t handle = card_of(device);
    if (!handle)
        return false;
    nvmlReturn_t result = card_list(handle, &count, few);
    if (result == NVML_SUCCESS)
        return card_find(few, count, bytes);
    if (result != NVML_ERROR_INSUFFICIENT_SIZE)
        return false;
    count += MORE; /* some may come meanwhile */
    nvmlProcessInfo_v2_t *many = calloc(count, sizeof *many);
    bool is_listed =
        many && card_list(handle, &count, many) == NVML_SUCCESS && card_find(many, count, bytes);
    free(many);
    return is_listed;
}

bool truth_card_used(unsigned device, uint64_t *bytes)
{
    nvmlMemory_t memory;
    uint64_t free_bytes;
    nvmlDevice_t handle = card_of(device);
    if (handle && real.nvmlDeviceGetMemoryInfo(handle, &memory) == NVML_SUCCESS) {
        *bytes = memory.used;
        return true;
    }
    if (!start_driver()->card_free(device, &free_bytes))
        return false;
    *bytes = 0 - free_bytes;
    return true;
}

bool truth_card_free(unsigned device, uint64_t *free_bytes)
{
    nvmlMemory_t memory;
    nvmlDevice_t handle = atomic_load_explicit(&card_handles[device], memory_order_relaxed);
    if (!handle || real.nvmlDeviceGetMemoryInfo(handle, &memory) != NVML_SUCCESS)
        return false;
    *free_bytes = memory.free;
    return true;
}

/* Threads of this process that wait for a turn, and whether this one has had one: a thread that
 * makes one context after another would be back before those who wait look again. */
static atomic_uint card_waiting;
static _Thread_local bool card_has_had_turn __attribute__((tls_model("initial-exec")));

/* A name in the abstract namespace is nobody's file: it needs no folder, no permission and no
 * cleaning up, and goes with its holder. */
int truth_card_take_turn(unsigned device)
{
    enum { TRIES = 2000, PREFIX_BYTES = 9 };
    static const struct timespec nap = {.tv_nsec = 1000000}, courtesy = {.tv_nsec = 3000000};
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0gpulimit "};
    int turn = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (turn < 0)
        return -1;
    card_copy_uuid(name.sun_path + 1 + PREFIX_BYTES, device);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + PREFIX_BYTES +
                                  strlen(name.sun_path + 1 + PREFIX_BYTES));
    if (card_has_had_turn && atomic_load_explicit(&card_waiting, memory_order_relaxed) > 0)
        nanosleep(&courtesy, NULL);
    atomic_fetch_add_explicit(&card_waiting, 1, memory_order_relaxed);
    int result = -1;
    for (unsigned i = 0; i < TRIES && result != 0; i++) {
        result = bind(turn, (const struct sockaddr *)&name, bytes);
        if (result != 0 && errno != EADDRINUSE)
            break;
        if (result != 0)
            nanosleep(&nap, NULL);
    }
    atomic_fetch_sub_explicit(&card_waiting, 1, memory_order_relaxed);
    if (result == 0) {
        card_has_had_turn = true;
        return turn;
    }
    close(turn);
    return -1;
}

void truth_card_give_turn(int turn)
{
    if (turn >= 0)
        close(turn);
}

void truth_card_forget(void)
{
    atomic_store_explicit(&card_waiting, 0, memory_order_relaxed);
}
