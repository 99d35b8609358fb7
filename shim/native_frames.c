/* SPDX-License-Identifier: MIT
 *
 * Walks the stack by the tables that compilers leave for exceptions: fast where that can be, else
 * by the C library's backtrace, which takes six times as long. A walk along frame pointers would
 * take a twentieth, but libraries are built without them: it would end, or go astray, at the first
 * one.
 */
#include "native_frames.h"

#include "unwind.h"

#include <errno.h>
#include <execinfo.h>

/* Of ours, between the program and the call of backtrace. */
enum { NATIVE_FRAMES_OWN = 4, NATIVE_FRAMES_OWN_MOST = 16 };

/* The two ends of this object, as the linker laid it. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static _Thread_local bool native_frames_busy __attribute__((tls_model("initial-exec")));

/* The most that were met so far: every frame that is walked in vain costs. */
static unsigned native_frames_own = NATIVE_FRAMES_OWN;

static bool native_frames_is_own(uint64_t address)
{
    uint64_t before = address - 1;
    return before >= (uintptr_t)__ehdr_start && before < (uintptr_t)_end;
}

/* Walks with room for so many frames of ours. Returns how many stood innermost. */
static unsigned native_frames_walk(uint64_t *addresses, unsigned most, unsigned room,
                                   unsigned *count)
{
    void *stack[NATIVE_FRAMES_MOST + NATIVE_FRAMES_OWN_MOST];
    int depth = backtrace(stack, (int)(most + room));
    unsigned own = 0;
    *count = 0;
    for (int i = 0; i < depth; i++) {
        if (native_frames_is_own((uintptr_t)stack[i]))
            own += *count == 0;
        else if (own == 0)
            continue; /* a sanitizer's, which stands before backtrace */
        else if (*count < most && stack[i])
            addresses[(*count)++] = (uintptr_t)stack[i];
    }
    return own;
}

static unsigned native_frames_slowly(uint64_t *addresses, unsigned most)
{
    int saved_errno = errno;
    unsigned count = 0;
    if (native_frames_busy)
        return 0; /* a malloc of the program's own, called as libgcc_s is loaded */
    native_frames_busy = true;
    unsigned room = __atomic_load_n(&native_frames_own, __ATOMIC_RELAXED);
    unsigned own = native_frames_walk(addresses, most, room, &count);
    if (own > room) {
        own = native_frames_walk(addresses, most, NATIVE_FRAMES_OWN_MOST, &count);
        room = own < NATIVE_FRAMES_OWN_MOST ? own : NATIVE_FRAMES_OWN_MOST;
        __atomic_store_n(&native_frames_own, room, __ATOMIC_RELAXED);
    }
    native_frames_busy = false;
    errno = saved_errno;
    return count;
}

struct native_frames_taken {
    uint64_t *addresses;
    unsigned most, count;
};

static bool native_frames_take(void *argument, uint64_t address)
{
    struct native_frames_taken *taken = argument;
    if (!native_frames_is_own(address))
        taken->addresses[taken->count++] = address;
    return taken->count < taken->most;
}

unsigned native_frames(uint64_t *addresses, unsigned most)
{
    if (most > NATIVE_FRAMES_MOST)
        most = NATIVE_FRAMES_MOST;
    struct native_frames_taken taken = {.addresses = addresses, .most = most};
    if (most == 0 || unwind(native_frames_take, &taken))
        return taken.count;
    return native_frames_slowly(addresses, most);
}
