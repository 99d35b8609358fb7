/* SPDX-License-Identifier: MIT
 *
 * Takes the stack, and finds its number or makes it one.
 */
#include "limit_sites.h"

#include "guard.h"
#include "limit_books.h"
#include "native_frames.h"

#include <errno.h>
#include <string.h>

/* Small allocations come from few places, and often: the thread's last one is not looked up. A
 * fork's child has other numbers. */
static _Thread_local struct {
    uint64_t hash;
    uint32_t number, generation;
} limit_last_site __attribute__((tls_model("initial-exec")));

static uint32_t limit_find_site(uint64_t hash, bool *is_full)
{
    struct books *books = books_lock();
    uint32_t number = sites_find(&books->sites, hash);
    *is_full = sites_are_full(&books->sites);
    limit_last_site.generation = books->generation;
    books_unlock();
    return number;
}

static uint32_t limit_add_text(const struct sites_text *text)
{
    uint32_t number = sites_add_text(&books_lock()->sites, text);
    books_unlock();
    return number;
}

/* Without the lock: the loader is asked, and whoever has its lock may want ours. */
static struct gpulimit_frame limit_describe_native(uint64_t address, struct site_name *name)
{
    struct native_module found;
    struct gpulimit_module module = {0};
    struct gpulimit_frame frame = {.kind = GPULIMIT_FRAME_NATIVE, .place = address};
    if (!native_module_of(address - 1, &found)) { /* in the call, not behind it */
        site_name_add_native(name, "", address);
        return frame;
    }
    module.start = found.start;
    module.end = found.end;
    module.build_id_bytes = found.build_id_bytes;
    memcpy(module.build_id, found.build_id, sizeof module.build_id);
    _Static_assert(sizeof module.path == sizeof found.path, "a path fits");
    memcpy(module.path, found.path, sizeof module.path);
    frame.place = address - found.bias;
    frame.file = sites_add_module(&books_lock()->sites, &module);
    books_unlock();
    site_name_add_native(name, module.path, frame.place);
    return frame;
}

static struct gpulimit_frame limit_describe_python(const struct python_frame *from,
                                                   struct site_name *name)
{
    struct sites_text file = {{0}}, function = {{0}};
    python_text_copy(file.text, sizeof file.text - 1, &from->file);
    python_text_copy(function.text, sizeof function.text - 1, &from->function);
    site_name_add_python(name, file.text, function.text, (uint32_t)from->line);
    return (struct gpulimit_frame){.kind = GPULIMIT_FRAME_PYTHON,
                                   .file = limit_add_text(&file),
                                   .place = (uint64_t)limit_add_text(&function) << 32 |
                                            (uint32_t)from->line};
}

static uint32_t limit_add_site(uint64_t hash, const struct sites_stack *stack)
{
    struct gpulimit_site site = {.native_count = (uint16_t)stack->native_count,
                                 .python_count = (uint16_t)stack->python_count};
    struct gpulimit_frame *frame = site.frames;
    struct site_name name = {{0}, 0};
    for (unsigned i = 0; i < stack->native_count; i++)
        *frame++ = limit_describe_native(stack->native[i], &name);
    for (unsigned i = 0; i < stack->python_count; i++)
        *frame++ = limit_describe_python(&stack->python[i], &name);
    struct books *books = books_lock();
    uint32_t number = sites_add(&books->sites, hash, &site, name.text);
    books_unlock();
    return number;
}

static uint32_t limit_site_of(const struct sites_stack *stack)
{
    uint64_t hash = sites_hash(stack);
    if (limit_last_site.hash == hash && limit_last_site.generation == books_generation())
        return limit_last_site.number;
    bool is_full;
    uint32_t number = limit_find_site(hash, &is_full);
    if (number == 0 && !is_full)
        number = limit_add_site(hash, stack);
    limit_last_site.hash = hash;
    limit_last_site.number = number;
    return number;
}

uint32_t limit_site(uint64_t bytes)
{
    const struct config *config = start_config();
    struct sites_stack stack;
    stack.native_count = stack.python_count = 0;
    if (!config->has_native_stacks && !config->has_python_stacks)
        return 0;
    int saved = errno;
    if (bytes < config->stacks_min_bytes) {
        stack.native_count = config->has_native_stacks;
        stack.native[0] = (uint64_t)(uintptr_t)guard_asker();
    } else {
        if (config->has_native_stacks)
            stack.native_count = native_frames(stack.native, SITES_NATIVE);
        if (config->has_python_stacks)
            stack.python_count = python_frames(stack.python, SITES_PYTHON);
    }
    uint32_t number = stack.native_count + stack.python_count > 0 ? limit_site_of(&stack) : 0;
    errno = saved;
    return number;
}

const char *limit_site_name(uint32_t number)
{
    const char *name = NULL;
    const struct books *books = books_lock();
    if (number > 0 && number <= SITES_MOST && books->sites.called &&
        books->sites.called[number].name[0] != '\0')
        name = books->sites.called[number].name;
    books_unlock();
    return name;
}
