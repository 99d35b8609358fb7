/* SPDX-License-Identifier: MIT
 *
 * The counting of pace.h.
 */
#include "pace.h"

bool pace_take(struct pace *pace, uint64_t bytes, uint64_t mono_ns, uint64_t time_s,
               struct pace_turn *turn)
{
    pace->count++;
    if (bytes > pace->largest_bytes)
        pace->largest_bytes = bytes;
    /* Another thread may have read its clock later, and got here earlier. */
    if (pace->has_told && mono_ns < pace->told_mono_ns + PACE_NS)
        return false;
    *turn = (struct pace_turn){.is_first = !pace->has_told,
                               .count = pace->count,
                               .largest_bytes = pace->largest_bytes,
                               .since_time_s = pace->told_time_s};
    *pace = (struct pace){.has_told = true, .told_mono_ns = mono_ns, .told_time_s = time_s};
    return true;
}
