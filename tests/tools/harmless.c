/* SPDX-License-Identifier: MIT
 *
 * A library that may be preloaded into anything, for the test of gpulimit-run: it stands where
 * libgpulimit.so would.
 */
int harmless_is_loaded(void);

int harmless_is_loaded(void)
{
    return 1;
}
