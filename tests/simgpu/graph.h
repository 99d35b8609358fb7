/* SPDX-License-Identifier: MIT
 *
 * Graphs and their nodes, and executable graphs. Nodes that are not about memory are there to be
 * counted and depended on; nothing runs. Called under the driver's lock.
 */
#ifndef SIMGPU_GRAPH_H
#define SIMGPU_GRAPH_H

#include "config.h"
#include "graph_memory.h"
#include "handle.h"

struct CUgraphNode_st {
    struct handle handle;
    CUgraph graph;
    CUgraphNodeType type;
    CUgraphNode *dependencies;
    size_t dependency_count;
    unsigned visit;                      /* of the last walk that came here */
    struct graph_allocation *allocation; /* of alloc and free nodes */
    CUgraph child;                       /* of child graph nodes, which own it */
    TAILQ_ENTRY(CUgraphNode_st) of_graph;
};

struct CUgraph_st {
    struct handle handle;
    bool is_child;        /* owned by a node */
    unsigned executables; /* with memory nodes, there is one at a time */
    TAILQ_HEAD(graph_nodes, CUgraphNode_st) nodes;
    size_t node_count;
    struct graph_space *space[CONFIG_DEVICES_MAX]; /* by ordinal */
    struct graph_allocation *padding[CONFIG_DEVICES_MAX];
};

struct CUgraphExec_st {
    struct handle handle;
    CUgraph graph; /* NULL once that is destroyed */
    unsigned long long flags;
    struct graph_step *steps; /* its memory nodes, those of child graphs as well */
    unsigned step_count;
    LIST_ENTRY(CUgraphExec_st) of_process;
};

/* What a node hangs on. */
struct graph_place {
    CUgraph graph;
    const CUgraphNode *dependencies;
    size_t count;
};

CUgraph graph_create(void); /* NULL: no memory */
void graph_destroy(CUgraph graph);
bool graph_has_memory(CUgraph graph); /* alloc or free nodes, in child graphs too */

/* Whether the graph and its nodes are such. */
bool graph_place_is_legal(const struct graph_place *place);

/* 2: no memory. */
CUresult graph_add(const struct graph_place *place, CUgraphNodeType type, CUgraphNode *node);

/* The address may be one that an earlier node had, if a free node of it comes before this one. */
CUresult graph_add_alloc(const struct graph_place *place, CUdevice ordinal, uint64_t bytes,
                         CUgraphNode *node);

/* 1: there is no such allocation, or it is freed already. */
CUresult graph_add_free(const struct graph_place *place, uint64_t address, CUgraphNode *node);

/* The graph becomes a node's. A driver quirk: on each device where it has memory, it needs a chunk
 * more from then on. */
void graph_move(CUgraph graph);

void graph_remove(CUgraphNode node); /* one that is not about memory */

/* 801: a child graph, or one that has memory nodes and an executable. */
CUresult graph_instantiate(CUgraph graph, unsigned long long flags, CUgraphExec *exec);
/* 910: another number of memory nodes. */
CUresult graph_exec_update(CUgraphExec exec, CUgraph graph);

void graph_exec_destroy(CUgraphExec exec);
void graph_exec_forget(CUgraph graph); /* the graph goes; its executables stay */

/* 1: something that it allocates is live still, something that it frees is not. 2: the device is
 * full. */
CUresult graph_launch(CUgraphExec exec);

#endif
