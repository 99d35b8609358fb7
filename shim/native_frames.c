/* SPDX-License-Identifier: MIT
 *
 * Walks the stack, by the C library's backtrace.
 *
 * It goes by the tables that compilers leave for exceptions. A walk along frame pointers takes a
 * twentieth of the time, but libraries are built without them: it would end, or go astray, at the
 * first one.
 */
#include "native_frames.h"

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

static bool native_frames_is_own(const void *address)
{
    uintptr_t before = (uintptr_t)address - 1;
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
        if (native_frames_is_own(stack[i]))
            own += *count == 0;
        else if (own == 0)
            continue; /* a sanitizer's, which stands before backtrace */
        else if (*count < most && stack[i])
            addresses[(*count)++] = (uintptr_t)stack[i];
    }
    return own;
}

unsigned native_frames(uint64_t *addresses, unsigned most)
{
    int saved_errno = errno;
    unsigned count = 0;
    if (native_frames_busy)
        return 0; /* a malloc of the program's own, called as libgcc_s is loaded */
    native_frames_busy = true;
    if (most > NATIVE_FRAMES_MOST)
        most = NATIVE_FRAMES_MOST;
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
