/* SPDX-License-Identifier: MIT
 *
 * The pace of a stream: equal steps of the monotonic clock, until someone presses Ctrl-C.
 */
#include "ticks.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks_interrupted;
static uint64_t ticks_delay_ns;
static uint64_t ticks_next_ns;

static void ticks_interrupt(int signal)
{
    (void)signal; /* there is but one */
    ticks_interrupted = 1;
}

static uint64_t ticks_get_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ticks_start(uint64_t delay_ns)
{
    struct sigaction action = {.sa_handler =
                                   ticks_interrupt}; /* no SA_RESTART: it is to end the sleep */

    sigaction(SIGINT, &action, NULL);
    ticks_delay_ns = delay_ns;
    ticks_next_ns = ticks_get_time();
}

bool ticks_wait(void)
{
    uint64_t now_ns = ticks_get_time();
    struct timespec until;

    ticks_next_ns += ticks_delay_ns;
    if (ticks_next_ns < now_ns) {
        ticks_next_ns +=
            (now_ns - ticks_next_ns + ticks_delay_ns - 1) / ticks_delay_ns * ticks_delay_ns;
    }
    until.tv_sec = (time_t)(ticks_next_ns / 1000000000);
    until.tv_nsec = (long)(ticks_next_ns % 1000000000);
    /* Another signal, such as SIGWINCH, only interrupts the sleep. */
    while (!ticks_interrupted &&
           clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
    return !ticks_interrupted;
}

static struct winsize ticks_get_terminal(void)
{
    struct winsize size;

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
               ? size
               : (struct winsize){0};
}

size_t ticks_get_terminal_height(void)
{
    return ticks_get_terminal().ws_row;
}

size_t ticks_get_terminal_width(void)
{
    return ticks_get_terminal().ws_col;
}
