/* SPDX-License-Identifier: MIT
 *
 * The pace of a stream: equal steps of the monotonic clock, until someone presses Ctrl-C.
 */
#ifndef GPULIMIT_TOOLS_TICKS_H
#define GPULIMIT_TOOLS_TICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first tick is now. Takes over SIGINT for the rest of the program. */
void ticks_start(uint64_t delay_ns);

/* Sleeps until the next tick; a tick that has passed already is left out. False once SIGINT came.
 */
bool ticks_wait(void);

/* Lines of the terminal on stdout; 0 if it is none. */
size_t ticks_get_terminal_height(void);

/* Its columns, likewise. */
size_t ticks_get_terminal_width(void);

#endif
