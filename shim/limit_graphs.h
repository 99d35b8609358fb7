/* SPDX-License-Identifier: MIT
 *
 * Memory of CUDA graphs: the part of the gate that a launch passes. See limit.h for threads and
 * forks. Graphs are named by their CUgraphExec handle.
 *
 * A graph takes its memory when it is uploaded or first launched, and a launch that the device
 * cannot serve leaves the whole card taken for good (measured, driver 580.159). So what it needs,
 * known from its nodes, is reserved before the driver is asked; afterwards the device's graph
 * reserve says what it cost. With GPU_LIMIT_COUNT=allocations the need is checked, but only then:
 * nobody asks for such memory, so nothing stays charged.
 */
#ifndef SHIM_LIMIT_GRAPHS_H
#define SHIM_LIMIT_GRAPHS_H

#include "graphs.h"
#include "limit.h"

/* The driver has made a graph executable that needs memory, or changed what it needs. */
void limit_graph_instantiated(uint64_t exec, const struct graphs_need *need);

/* Whether a graph needs memory that it may not have. If so, limit_reserve for GPULIMIT_KIND_GRAPH
 * comes next, then the launch, then limit_graph_commit or limit_cancel. For a program without
 * graphs that need memory it is one load. */
bool limit_graph_needs(uint64_t exec, struct graphs_need *need);

/* The driver has given it: ticket->reading is of the device's graph reserve. */
void limit_graph_commit(struct ticket *ticket, uint64_t exec);

/* The driver has destroyed it. Its memory stays in the reserve. */
void limit_graph_destroyed(uint64_t exec);

/* Whether a device has graph memory, as far as we know. */
bool limit_graph_holds(unsigned device);

/* What the device's graph reserve is now. has_trimmed: graphs may have lost what they had, though
 * the reserve may be as large as before by others. */
void limit_graph_update(unsigned device, const struct pool_reading *reading, bool has_trimmed);

#endif
