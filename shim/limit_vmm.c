/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that decides when memory of cuMemCreate is freed, see limit_vmm.h.
 */
#include "limit_vmm.h"

#include "limit_books.h"

void limit_reap(struct books *books, uint32_t object)
{
    struct mappings_object dead;
    if (!mappings_reap(&books->mappings, object, &dead))
        return;
    if (ledger_at(&books->ledger, dead.entry)->kind == GPULIMIT_KIND_IMPORTED) {
        books->imports--;
        limit_remove_entry(books, dead.entry);
        limit_release_exports(books);
    } else if (!limit_keep_export(books, &dead)) {
        limit_remove_entry(books, dead.entry);
    }
}

void limit_handle_detach(uint64_t handle, uint32_t *object)
{
    struct books *books = books_lock();
    *object = mappings_find(&books->mappings, handle);
    if (*object != MAPPINGS_NONE)
        mappings_release(&books->mappings, *object);
    books_unlock();
}

void limit_handle_release(uint32_t object)
{
    if (object == MAPPINGS_NONE)
        return;
    struct books *books = books_lock();
    limit_reap(books, object);
    books_unlock();
}

void limit_handle_restore(uint64_t handle, uint32_t object)
{
    if (object == MAPPINGS_NONE)
        return;
    struct books *books = books_lock();
    mappings_retain(&books->mappings, object, handle);
    books_unlock();
}

void limit_handle_retained(uint64_t handle, uint64_t address)
{
    struct books *books = books_lock();
    /* By handle first: a retained handle equals the one it was mapped by, as long as that one
     * lives. */
    uint32_t object = mappings_find(&books->mappings, handle);
    if (object == MAPPINGS_NONE)
        object = mappings_find_mapped(&books->mappings, address);
    if (object != MAPPINGS_NONE)
        mappings_retain(&books->mappings, object, handle);
    books_unlock();
}

void limit_handle_imported(uint64_t handle, unsigned device, enum api api)
{
    struct books *books = books_lock();
    uint32_t object = mappings_find(&books->mappings, handle);
    if (object != MAPPINGS_NONE) {
        /* Memory of our own, come back as the same handle. */
        mappings_retain(&books->mappings, object, handle);
        books_unlock();
        return;
    }
    struct ledger_entry entry = {.address = handle,
                                 .kind = GPULIMIT_KIND_IMPORTED,
                                 .device = (uint8_t)device,
                                 .api = (uint16_t)api,
                                 .is_handle = true};
    uint32_t stale;
    uint32_t number = ledger_insert(&books->ledger, &entry, &stale);
    if (number != LEDGER_NONE) {
        if (mappings_create(&books->mappings, handle, number) != MAPPINGS_NONE)
            books->imports++;
        else
            ledger_remove(&books->ledger, number);
    }
    ledger_publish(&books->ledger, device, GPULIMIT_KIND_IMPORTED);
    books_unlock();
}

void limit_mapped(uint64_t handle, uint64_t address, uint64_t bytes)
{
    struct books *books = books_lock();
    uint32_t object = mappings_find(&books->mappings, handle);
    if (object != MAPPINGS_NONE)
        mappings_map(&books->mappings, object, address, bytes);
    books_unlock();
}

void limit_unmapped(uint64_t address, uint64_t bytes)
{
    struct books *books = books_lock();
    uint64_t at = address;
    uint32_t object;
    while ((object = mappings_unmap_next(&books->mappings, &at, address + bytes)) != MAPPINGS_NONE)
        limit_reap(books, object);
    books_unlock();
}
