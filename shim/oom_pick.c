/* SPDX-License-Identifier: MIT
 *
 * The choice of oom_pick.h.
 */
#include "oom_pick.h"

#include "pace.h"

static bool oom_pick_is_due(struct oom_pick *pick, enum oom_number number, uint64_t mono_ns)
{
    if (mono_ns < pick->due_mono_ns[number])
        return false;
    pick->due_mono_ns[number] = mono_ns + PACE_NS;
    return true;
}

enum oom_number oom_pick_take(struct oom_pick *pick, uint64_t bytes, uint64_t mono_ns)
{
    if (!pick->has_first) {
        pick->has_first = true;
        pick->largest_bytes = bytes;
        return OOM_FIRST;
    }
    if (bytes > pick->largest_bytes && oom_pick_is_due(pick, OOM_LARGEST, mono_ns)) {
        pick->largest_bytes = bytes;
        return OOM_LARGEST;
    }
    return oom_pick_is_due(pick, OOM_LATEST, mono_ns) ? OOM_LATEST : OOM_NONE;
}
