/* SPDX-License-Identifier: MIT
 *
 * The part of the gate that keeps exported memory charged, see limit_exports.h.
 */
#include "limit_exports.h"

#include "grow.h"
#include "limit_books.h"

#include <sys/stat.h>

void limit_handle_exported(uint64_t handle, int descriptor)
{
    struct stat status = {0};
    bool is_open = descriptor >= 0 && fstat(descriptor, &status) == 0;
    struct books *books = books_lock();
    uint32_t object = mappings_find(&books->mappings, handle);
    if (object != MAPPINGS_NONE) {
        struct mappings_object *exported = &books->mappings.objects[object];
        exported->is_exported = true;
        exported->descriptor = is_open ? descriptor : -1;
        exported->inode = is_open ? status.st_ino : 0;
        exported->filesystem = is_open ? status.st_dev : 0;
    }
    books_unlock();
}

/* Whether the descriptor is still that of the export, as far as one can tell. */
static bool limit_is_open(const struct export *export)
{
    struct stat status;
    return export->descriptor >= 0 && fstat(export->descriptor, &status) == 0 &&
           status.st_ino == export->inode && status.st_dev == export->filesystem;
}

bool limit_keep_export(struct books *books, const struct mappings_object *object)
{
    struct export export = {object->entry, object->descriptor, object->inode, object->filesystem};
    struct exports *exports = &books->exports;
    if (!object->is_exported || (books->imports == 0 && !limit_is_open(&export)))
        return false;
    if (exports->count == exports->capacity &&
        !grow_array((void **)&exports->kept, &exports->capacity, sizeof export))
        return false;
    exports->kept[exports->count++] = export;
    return true;
}

void limit_release_exports(struct books *books)
{
    struct exports *exports = &books->exports;
    for (uint32_t i = exports->count; i-- > 0;) {
        if (books->imports > 0 || limit_is_open(&exports->kept[i]))
            continue;
        limit_remove_entry(books, exports->kept[i].entry);
        exports->kept[i] = exports->kept[--exports->count];
    }
}

void limit_external_imported(void)
{
    books_lock()->imports++;
    books_unlock();
}

void limit_external_destroyed(void)
{
    struct books *books = books_lock();
    books->imports -= books->imports > 0;
    limit_release_exports(books);
    books_unlock();
}

void limit_look_at_exports(void)
{
    limit_release_exports(books_lock());
    books_unlock();
}
