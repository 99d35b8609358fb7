/* SPDX-License-Identifier: MIT
 *
 * What the library asks the driver about graphs, see driver.h. Nodes are asked about after an
 * instantiation, which no capture survives in any case; cuDeviceGetGraphMemAttribute ends none
 * (measured, driver 580.159).
 */
#include "driver.h"

#include "grow.h"
#include "holes.h"
#include "limit_pools.h"
#include "real.h"
#include "table.h"

/* A graph's nodes are given their addresses when they are made, and its memory comes in chunks that
 * stand behind these. Measured on an H200: for a node that finds a chunk missing the driver takes
 * as many as the node is large, even where it shares one with another node. */
struct driver_needs {
    struct graphs_need *need;
    struct table chunks; /* numbers of those that the nodes before have */
    struct graphs_range *ranges;
    uint32_t count, capacity;
};

static bool driver_misses_chunk(struct table *chunks, uint64_t start, uint64_t bytes)
{
    bool misses = false;
    uint64_t last = (start + bytes - 1) / HOLES_CHUNK_BYTES;
    for (uint64_t chunk = start / HOLES_CHUNK_BYTES; chunk <= last; chunk++) {
        if (!table_find(chunks, chunk)) {
            misses = true;
            table_set(chunks, chunk, 1); /* without memory for it: needs rather more than less */
        }
    }
    return misses;
}

static void driver_add_allocation(struct driver_needs *needs, CUgraphNode node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {0};
    if (real.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS ||
        params.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || params.bytesize == 0)
        return;
    needs->need->device = (unsigned)params.poolProps.location.id;
    if (driver_misses_chunk(&needs->chunks, params.dptr, params.bytesize))
        needs->need->bytes += pools_most(params.bytesize);
    if (needs->count == needs->capacity &&
        !grow_array((void **)&needs->ranges, &needs->capacity, sizeof *needs->ranges))
        return;
    needs->ranges[needs->count++] = (struct graphs_range){params.dptr, params.bytesize};
}

static void driver_add_free(struct driver_needs *needs, CUgraphNode node)
{
    CUdeviceptr address;
    if (real.cuGraphMemFreeNodeGetParams(node, &address) != CUDA_SUCCESS)
        return;
    /* From the newest: an address that is used again has been freed before. */
    for (uint32_t i = needs->count; i-- > 0;) {
        if (needs->ranges[i].start == address) {
            needs->ranges[i] = needs->ranges[--needs->count];
            return;
        }
    }
}

static void driver_add_graph(struct driver_needs *needs, CUgraph graph);

/* A graph within another needs a chunk more than its nodes (measured, driver 580.159). */
static void driver_add_child(struct driver_needs *needs, CUgraph child)
{
    uint64_t before = needs->need->bytes;
    driver_add_graph(needs, child);
    if (needs->need->bytes > before)
        needs->need->bytes += HOLES_CHUNK_BYTES;
}

static void driver_add_node(struct driver_needs *needs, CUgraphNode node)
{
    CUgraphNodeType type;
    CUgraph child;
    if (real.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
        return;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        driver_add_allocation(needs, node);
    else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        driver_add_free(needs, node);
    else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
             real.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        driver_add_child(needs, child);
}

static void driver_add_graph(struct driver_needs *needs, CUgraph graph)
{
    size_t count = 0;
    CUgraphNode *nodes = NULL;
    uint32_t room = 0;
    if (real.cuGraphGetNodes(graph, NULL, &count) != CUDA_SUCCESS || count > UINT32_MAX / 2)
        return;
    while (room < count) {
        if (!grow_array((void **)&nodes, &room, sizeof *nodes)) {
            grow_release((void **)&nodes, &room, sizeof *nodes);
            return;
        }
    }
    if (count > 0 && real.cuGraphGetNodes(graph, nodes, &count) == CUDA_SUCCESS) {
        for (size_t i = 0; i < count; i++)
            driver_add_node(needs, nodes[i]);
    }
    grow_release((void **)&nodes, &room, sizeof *nodes);
}

bool driver_graph_need(CUgraph graph, struct graphs_need *need)
{
    struct driver_needs needs = {.need = need};
    *need = (struct graphs_need){0};
    driver_add_graph(&needs, graph);
    for (uint32_t i = 0; i < needs.count && need->outliving_count < GRAPHS_OUTLIVING; i++)
        need->outliving[need->outliving_count++] = needs.ranges[i];
    grow_release((void **)&needs.ranges, &needs.capacity, sizeof *needs.ranges);
    table_clear(&needs.chunks);
    return need->bytes > 0 && driver_knows((int)need->device);
}

uint64_t driver_graph_wants(const struct graphs_need *need)
{
    uint64_t bytes = need->bytes;
    CUstreamCaptureMode mode = driver_relax();
    for (unsigned i = 0; i < need->outliving_count; i++) {
        uint64_t has = pools_most(need->outliving[i].bytes);
        CUdeviceptr base;
        size_t size;
        if (real.cuMemGetAddressRange_v2(&base, &size, need->outliving[i].start) == CUDA_SUCCESS)
            bytes -= has < bytes ? has : bytes;
    }
    driver_unrelax(mode);
    return bytes;
}

bool driver_read_graph_memory(unsigned device, struct pool_reading *reading)
{
    cuuint64_t reserved = 0;
    *reading = (struct pool_reading){.number = limit_pool_number()};
    CUresult result = real.cuDeviceGetGraphMemAttribute(
        (CUdevice)device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved);
    reading->reserved_bytes = reserved;
    if (result != CUDA_SUCCESS)
        reading->number = 0; /* older than any: it changes nothing */
    return result == CUDA_SUCCESS;
}
