/* SPDX-License-Identifier: MIT
 *
 * A lock around the walks of the loader's list (loaded_each, loaded_count). That list has a lock of
 * its own, which a fork leaves to the child as it is (measured, glibc 2.36): held, if another
 * thread was in it, and then the child hangs at its next dlopen. So forks wait until nobody of ours
 * is in there.
 *
 * Any thread, after fork. Nothing else is locked under it. Not inside dlsym: it can allocate.
 */
#ifndef SHIM_LISTING_H
#define SHIM_LISTING_H

void listing_lock(void);
void listing_unlock(void);

#endif
