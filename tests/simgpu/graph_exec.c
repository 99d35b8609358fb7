// SPDX-License-Identifier: MIT
//
// Executable graphs: what of a graph is about memory, in the order in which it runs; see graph.h.

#include "graph.h"

#include <stdlib.h>

static LIST_HEAD(, CUgraphExec_st) executables = LIST_HEAD_INITIALIZER(executables);

static void exec_put(struct graph_step *steps, unsigned *count, struct graph_allocation *allocation,
                     bool is_free)
{
    if (!allocation)
        return;
    if (steps)
        steps[*count] = (struct graph_step){.allocation = allocation, .is_free = is_free};
    ++*count;
}

/* Nodes were added after those that they depend on, so their order will do. */
static unsigned exec_list(CUgraph graph, struct graph_step *steps)
{
    unsigned count = 0;
    CUgraphNode node;

    TAILQ_FOREACH(node, &graph->nodes, of_graph)
    {
        if (node->child)
            count += exec_list(node->child, steps ? steps + count : NULL);
        exec_put(steps, &count, node->allocation, node->type == CU_GRAPH_NODE_TYPE_MEM_FREE);
    }
    for (unsigned i = 0; i < CONFIG_DEVICES_MAX; i++)
        exec_put(steps, &count, graph->padding[i], false);
    return count;
}

static bool exec_frees(CUgraphExec exec, const struct graph_allocation *allocation)
{
    for (unsigned i = 0; i < exec->step_count; i++)
        if (exec->steps[i].is_free && exec->steps[i].allocation == allocation)
            return true;
    return false;
}

static bool exec_allocates(CUgraphExec exec, const struct graph_allocation *allocation)
{
    for (unsigned i = 0; i < exec->step_count; i++)
        if (!exec->steps[i].is_free && exec->steps[i].allocation == allocation)
            return true;
    return false;
}

static bool exec_make_steps(CUgraphExec exec, CUgraph graph)
{
    unsigned count = exec_list(graph, NULL);
    struct graph_step *steps = calloc(count + 1, sizeof *steps);

    if (!steps)
        return false;
    exec_list(graph, steps);
    exec->steps = steps;
    exec->step_count = count;
    for (unsigned i = 0; i < count; i++) {
        steps[i].outlives = !steps[i].is_free && !steps[i].allocation->is_padding &&
                            !exec_frees(exec, steps[i].allocation);
        graph_space_hold(steps[i].allocation->space);
    }
    return true;
}

static void exec_drop_steps(struct graph_step *steps, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        graph_space_drop(steps[i].allocation->space);
    free(steps);
}

/* Memory nodes may become larger or smaller, but neither come nor go. */
CUresult graph_exec_update(CUgraphExec exec, CUgraph graph)
{
    struct graph_step *old = exec->steps;
    unsigned old_count = exec->step_count;

    if (exec_list(graph, NULL) != old_count)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    if (!exec_make_steps(exec, graph))
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec_drop_steps(old, old_count);
    if (exec->graph)
        exec->graph->executables--;
    exec->graph = graph;
    graph->executables++;
    return CUDA_SUCCESS;
}

CUresult graph_instantiate(CUgraph graph, unsigned long long flags, CUgraphExec *exec)
{
    if (graph->is_child || (graph->executables && graph_has_memory(graph)))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUgraphExec created = handle_create(HANDLE_EXEC, sizeof *created);
    if (!created)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!exec_make_steps(created, graph)) {
        handle_destroy(&created->handle);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    created->graph = graph;
    created->flags = flags;
    graph->executables++;
    LIST_INSERT_HEAD(&executables, created, of_process);
    *exec = created;
    return CUDA_SUCCESS;
}

void graph_exec_destroy(CUgraphExec exec)
{
    if (exec->graph)
        exec->graph->executables--;
    exec_drop_steps(exec->steps, exec->step_count);
    LIST_REMOVE(exec, of_process);
    handle_destroy(&exec->handle);
}

void graph_exec_forget(CUgraph graph)
{
    CUgraphExec exec;

    LIST_FOREACH(exec, &executables, of_process)
    if (exec->graph == graph)
        exec->graph = NULL;
}

static bool launch_is_legal(CUgraphExec exec)
{
    for (unsigned i = 0; i < exec->step_count; i++) {
        const struct graph_step *step = &exec->steps[i];
        const struct graph_allocation *allocation = step->allocation;

        if (step->outlives && allocation->live &&
            !(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
            return false;
        if (step->is_free && !allocation->live && !exec_allocates(exec, allocation))
            return false;
    }
    return true;
}

CUresult graph_launch(CUgraphExec exec)
{
    if (!launch_is_legal(exec))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_memory_back(exec->steps, exec->step_count);
    if (result)
        return result;
    for (unsigned i = 0; i < exec->step_count; i++) {
        struct graph_allocation *allocation = exec->steps[i].allocation;

        if ((exec->steps[i].is_free || exec->steps[i].outlives) && allocation->live)
            graph_memory_end(allocation);
        if (exec->steps[i].outlives && !graph_memory_begin(allocation))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}
