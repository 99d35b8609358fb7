/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that remembers what happened: events, marks, timelines. See limit.h for
 * threads and forks.
 */
#ifndef SHIM_LIMIT_HISTORY_H
#define SHIM_LIMIT_HISTORY_H

/* The program says where it is: what each device in use holds is noted under that name. Before the
 * first CUDA call there is nothing to note. errno is left as it was. */
void limit_mark(const char *text);

#endif
