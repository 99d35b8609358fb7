// SPDX-License-Identifier: MIT
//
// The shared file and its locks; see state.h. Only locks that the kernel releases are used, so no
// kill can leave it stuck.

#include "state.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATE_SLOTS 256u
#define STATE_MAGIC 0x32304d4953555047u /* changes with the layout */
#define STATE_NONE  UINT_MAX

struct state_slot {
    _Atomic uint32_t pid; /* 0: never used */
    uint32_t reserved;
    _Atomic uint64_t used_bytes[CONFIG_DEVICES_MAX];
    _Atomic uint64_t hidden_bytes[CONFIG_DEVICES_MAX]; /* of those */
    _Atomic uint32_t contexts[CONFIG_DEVICES_MAX];
};

struct state_file {
    _Alignas(64) _Atomic uint64_t magic;
    _Alignas(64) struct state_slot slots[STATE_SLOTS];
};

static struct {
    int fd;
    unsigned own; /* slot of this process */
    struct state_file *file;
    uint64_t peak_bytes[CONFIG_DEVICES_MAX]; /* of this process */
} state = {.fd = -1, .own = STATE_NONE};

static bool state_lock_byte(off_t byte, short type, bool wait)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    while (fcntl(state.fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0)
        if (errno != EINTR)
            return false;
    return true;
}

static void state_lock_growth(void)
{
    state_lock_byte(0, F_WRLCK, true);
}

static void state_unlock_growth(void)
{
    state_lock_byte(0, F_UNLCK, false);
}

static bool state_is_alive(unsigned slot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + slot, .l_len = 1};

    if (slot == state.own)
        return true;
    return fcntl(state.fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* In a forked child. The mapping is not there: it is marked MADV_DONTFORK. */
static void state_leave_to_parent(void)
{
    if (!state.file)
        return;
    close(state.fd);
    state.fd = -1;
    state.own = STATE_NONE;
    state.file = NULL;
    memset(state.peak_bytes, 0, sizeof state.peak_bytes);
}

static bool state_watch_forks(void)
{
    static bool watching;

    if (!watching)
        watching = pthread_atfork(NULL, NULL, state_leave_to_parent) == 0;
    return watching;
}

bool state_open(void)
{
    char path[PATH_MAX];

    if (state.file)
        return true;
    if (!state_watch_forks())
        return false;
    config_state_path(path, sizeof path);
    state.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (state.fd < 0)
        return false;
    /* Two creators at once do the same twice: the file only grows, and a fresh one reads as zeros.
     */
    errno = posix_fallocate(state.fd, 0, sizeof(struct state_file));
    void *map = errno ? MAP_FAILED
                      : mmap(NULL, sizeof(struct state_file), PROT_READ | PROT_WRITE, MAP_SHARED,
                             state.fd, 0);
    if (map != MAP_FAILED) {
        struct state_file *file = map;
        uint64_t magic = 0;

        if (atomic_compare_exchange_strong(&file->magic, &magic, STATE_MAGIC) ||
            magic == STATE_MAGIC) {
            /* A mapping holds the open file description, and so its locks: were it inherited, a
             * killed parent's slot would live on in its children. */
            madvise(file, sizeof(struct state_file), MADV_DONTFORK);
            state.file = file;
            return true;
        }
        munmap(map, sizeof(struct state_file));
        errno = EPROTO;
    }
    int error = errno;
    close(state.fd);
    state.fd = -1;
    errno = error;
    return false;
}

static void state_clear_slot(struct state_slot *slot)
{
    for (unsigned device = 0; device < CONFIG_DEVICES_MAX; device++) {
        atomic_store(&slot->used_bytes[device], 0);
        atomic_store(&slot->hidden_bytes[device], 0);
        atomic_store(&slot->contexts[device], 0);
    }
}

bool state_claim(void)
{
    state_lock_growth();
    for (unsigned slot = 0; slot < STATE_SLOTS && state.own == STATE_NONE; slot++) {
        if (state_is_alive(slot))
            continue;
        /* Before the lock, with which what a dead process held would count again. */
        state_clear_slot(&state.file->slots[slot]);
        if (!state_lock_byte(1 + slot, F_WRLCK, false))
            continue;
        atomic_store(&state.file->slots[slot].pid, (uint32_t)getpid());
        state.own = slot;
    }
    state_unlock_growth();
    return state.own != STATE_NONE;
}

/* The growth lock is held. With exact = false, dead processes' slots count as well: too much, but
 * free. */
static uint64_t state_sum(unsigned device, bool exact)
{
    uint64_t sum = 0;

    for (unsigned slot = 0; slot < STATE_SLOTS; slot++) {
        uint64_t bytes = atomic_load(&state.file->slots[slot].used_bytes[device]);

        if (bytes && (!exact || state_is_alive(slot)))
            sum += bytes;
    }
    return sum;
}

bool state_grow(unsigned device, uint64_t bytes, uint64_t total_bytes)
{
    if (bytes > total_bytes)
        return false;
    state_lock_growth();
    bool fits = state_sum(device, false) <= total_bytes - bytes ||
                state_sum(device, true) <= total_bytes - bytes;
    if (fits)
        atomic_fetch_add(&state.file->slots[state.own].used_bytes[device], bytes);
    if (state_own_bytes(device) > state.peak_bytes[device])
        state.peak_bytes[device] = state_own_bytes(device);
    state_unlock_growth();
    return fits;
}

void state_shrink(unsigned device, uint64_t bytes)
{
    atomic_fetch_sub(&state.file->slots[state.own].used_bytes[device], bytes);
}

void state_hide(unsigned device, int64_t change)
{
    atomic_fetch_add(&state.file->slots[state.own].hidden_bytes[device], (uint64_t)change);
}

void state_count_contexts(unsigned device, int change)
{
    atomic_fetch_add(&state.file->slots[state.own].contexts[device], (uint32_t)change);
}

uint64_t state_own_bytes(unsigned device)
{
    return state.own == STATE_NONE ? 0
                                   : atomic_load(&state.file->slots[state.own].used_bytes[device]);
}

uint64_t state_take_peak(unsigned device)
{
    uint64_t peak = state.peak_bytes[device];

    state.peak_bytes[device] = state_own_bytes(device);
    return peak;
}

uint64_t state_used_bytes(unsigned device)
{
    return state_sum(device, true);
}

unsigned state_list(unsigned device, struct state_process *processes, unsigned most)
{
    unsigned count = 0;

    for (unsigned slot = 0; slot < STATE_SLOTS; slot++) {
        struct state_slot *it = &state.file->slots[slot];

        if (!atomic_load(&it->contexts[device]) || !state_is_alive(slot))
            continue;
        if (count < most) {
            processes[count].pid = (pid_t)atomic_load(&it->pid);
            uint64_t used = atomic_load(&it->used_bytes[device]);
            uint64_t hidden = atomic_load(&it->hidden_bytes[device]);

            /* One after the other, so that they may not match for a moment. */
            processes[count].used_bytes = used > hidden ? used - hidden : 0;
        }
        count++;
    }
    return count;
}
