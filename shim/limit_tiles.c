/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that knows what lies in arrays, see limit_tiles.h.
 */
#include "limit_tiles.h"

#include "limit_books.h"

#include <stdatomic.h>

static atomic_bool limit_has_moving;

void limit_end_piece(struct books *books, uint32_t number)
{
    uint32_t object = tiles_remove(&books->tiles, number);
    mappings_let_go(&books->mappings, object);
    limit_reap(books, object);
}

static void limit_end_array(struct books *books, uint64_t array, uint64_t mark)
{
    struct tiles *tiles = &books->tiles;
    for (uint32_t i = tiles->array_count; i-- > 0;) {
        if (tiles->arrays[i].handle == array && tiles->arrays[i].serial <= mark)
            tiles_remove_array(tiles, i);
    }
    for (uint32_t i = tiles->piece_count; i-- > 0;) {
        if (tiles->pieces[i].array == array && tiles->pieces[i].serial <= mark)
            limit_end_piece(books, i);
    }
}

void limit_array_created(uint64_t array, unsigned device, uint64_t context, bool is_whole)
{
    struct books *books = books_lock();
    /* The driver hands out the handle anew: whatever had it is gone, seen or not. */
    limit_end_array(books, array, UINT64_MAX);
    struct tiles_array created = {.handle = array,
                                  .owner = context,
                                  .serial = ++books->ledger.serial,
                                  .device = device,
                                  .is_whole = is_whole};
    /* Without room it is an array of nobody's: what is mapped into it stays until it is destroyed.
     */
    (void)tiles_add_array(&books->tiles, &created);
    books_unlock();
}

void limit_array_destroyed(uint64_t array, uint64_t mark)
{
    struct books *books = books_lock();
    limit_end_array(books, array, mark);
    books_unlock();
}

static struct tiles_region limit_region(const struct tiles_array *array,
                                        const struct tiles_region *region)
{
    return array && array->is_whole ? (struct tiles_region){0} : *region;
}

void limit_array_mapped(uint64_t array, const struct tiles_region *region,
                        const struct queue *queue, uint64_t handle)
{
    struct books *books = books_lock();
    uint32_t object = mappings_find(&books->mappings, handle);
    if (object != MAPPINGS_NONE) {
        const struct tiles_array *known = tiles_find_array(&books->tiles, array);
        struct tiles_piece piece = {.region = limit_region(known, region),
                                    .queue = *queue,
                                    .array = array,
                                    .owner = known ? known->owner : 0,
                                    .serial = ++books->ledger.serial,
                                    .device = known ? known->device : 0,
                                    .object = object};
        piece.moves = piece.serial;
        mappings_hold(&books->mappings, object);
        atomic_store_explicit(&limit_has_moving, true, memory_order_relaxed);
        (void)tiles_add(&books->tiles, &piece); /* without room, it is held for good */
    }
    books_unlock();
}

/* Out may overtake in: where a piece comes by one stream and goes by another, both have to be over.
 */
static struct queue limit_both(const struct tiles_piece *piece, const struct queue *queue)
{
    if (piece->moves == 0 ||
        (piece->queue.context == queue->context && piece->queue.stream == queue->stream))
        return *queue;
    /* Of two contexts no synchronisation is that of both. */
    return (struct queue){piece->queue.context == queue->context ? queue->context : 0,
                          QUEUE_THREAD_STREAM};
}

void limit_array_unmapped(uint64_t array, const struct tiles_region *region,
                          const struct queue *queue)
{
    struct books *books = books_lock();
    struct tiles *tiles = &books->tiles;
    struct tiles_region out = limit_region(tiles_find_array(tiles, array), region);
    for (uint32_t i = 0; i < tiles->piece_count; i++) {
        struct tiles_piece *piece = &tiles->pieces[i];
        if (piece->array != array || piece->is_leaving || !tiles_covers(&out, &piece->region))
            continue;
        piece->queue = limit_both(piece, queue);
        piece->moves = ++books->ledger.serial;
        piece->is_leaving = true;
        atomic_store_explicit(&limit_has_moving, true, memory_order_relaxed);
    }
    books_unlock();
}

bool limit_tiles_move(void)
{
    /* What makes it true comes before the synchronisation on the same thread, or by the program's
     * own means of ordering. */
    return atomic_load_explicit(&limit_has_moving, memory_order_relaxed);
}

static bool limit_is_on(const struct queue *queue, const struct queue *synchronized)
{
    return queue->context == synchronized->context &&
           (synchronized->stream == QUEUE_EVERY_STREAM ||
            (synchronized->stream == queue->stream && queue->stream != QUEUE_THREAD_STREAM));
}

void limit_tiles_synchronized(const struct queue *queue, uint64_t mark)
{
    bool has_moving = false;
    struct books *books = books_lock();
    struct tiles *tiles = &books->tiles;
    for (uint32_t i = tiles->piece_count; i-- > 0;) {
        struct tiles_piece *piece = &tiles->pieces[i];
        if (piece->moves == 0 || piece->moves > mark || !limit_is_on(&piece->queue, queue))
            has_moving |= piece->moves != 0;
        else if (piece->is_leaving)
            limit_end_piece(books, i);
        else
            piece->moves = 0;
    }
    atomic_store_explicit(&limit_has_moving, has_moving, memory_order_relaxed);
    books_unlock();
}

void limit_tiles_stream_ends(uint64_t stream)
{
    if (!atomic_load_explicit(&limit_has_moving, memory_order_relaxed))
        return;
    struct books *books = books_lock();
    for (uint32_t i = 0; i < books->tiles.piece_count; i++) {
        struct tiles_piece *piece = &books->tiles.pieces[i];
        if (piece->moves != 0 && piece->queue.stream == stream)
            piece->queue.stream = QUEUE_THREAD_STREAM;
    }
    books_unlock();
}
