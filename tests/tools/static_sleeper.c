/* SPDX-License-Identifier: MIT
 *
 * Linked statically with libc, it sleeps until it is killed.
 */
#include <unistd.h>

int main(void)
{
    for (;;) {
        pause();
    }
}
