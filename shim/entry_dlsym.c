/* SPDX-License-Identifier: MIT
 *
 * dlsym and dlvsym, by which most programs reach the driver and NVML. Both end in a jump to the
 * next dlsym, not a call: with RTLD_NEXT and RTLD_DEFAULT the loader looks at the return address to
 * see who asks, and must see the program, not us. Only a name that we intercept, looked up in a
 * library whose function of that name is the driver's or NVML's own, gets another answer.
 *
 * No lock, no malloc, no thread-local that could allocate: allocators call dlsym while they start,
 * and libraries do in their constructors, before ours. This file is compiled without sanitizers for
 * the same reason.
 */
#include "hooks.h"
#include "loaded.h"
#include "loader.h"
#include "unknown.h"

#include <dlfcn.h>

struct dlsym_verdict {
    void *address;
    long is_decided; /* 0: jump to the next dlsym */
};

/* Called by the assembly below; caller is who called dlsym. */
struct dlsym_verdict dlsym_decide(void *handle, const char *name, const char *unused,
                                  const void *caller);
struct dlsym_verdict dlvsym_decide(void *handle, const char *name, const char *version,
                                   const void *caller);

/* What a look-up that found an address for a hook's name is to answer. */
static struct dlsym_verdict dlsym_answer(enum api api, void *found)
{
    real_function address = (real_function)found;
    bool is_drivers = address == hooks_drivers(api);
    bool is_ours = address == hooks_ours(api);
    if (is_ours && real_is_absent(hooks_drivers(api)))
        /* A search of everything found our export, but its library has no such function or is not
         * there. Say so as the loader would: by an empty answer, with its own error behind it. */
        return (struct dlsym_verdict){loader_dlsym(RTLD_NEXT, api_names[api]), 1};
    if (is_drivers || is_ours)
        return (struct dlsym_verdict){(void *)hooks_ours(api), 1};
    return (struct dlsym_verdict){0};
}

/* No hook: the next dlsym answers. Here is only noted what a driver newer than us hands out. */
static struct dlsym_verdict dlsym_pass(const char *name)
{
    struct loaded_object driver;
    if (unknown_is_new(name) && loaded_find_object(REAL_DRIVER, &driver) &&
        loaded_find_symbol(&driver, name))
        unknown_note(name);
    return (struct dlsym_verdict){0};
}

/* As the loader would look a name up, version NULL: of any. */
static void *dlsym_look(void *handle, const char *name, const char *version)
{
    return version ? loader_dlvsym(handle, name, version) : loader_dlsym(handle, name);
}

/* Whether RTLD_NEXT means our label to a caller: only what stands before this library in the
 * loader's order, the program above all, comes to us first. Those objects are never unloaded. */
static bool dlsym_is_ours_next(const struct link_map *caller, const char *name)
{
    const struct link_map *map = loader_map_of((const void *)_DYNAMIC);
    struct loaded_object object;
    while (map && (map = map->l_prev) && map != caller) {
        const struct loaded_place place = {map->l_addr, map->l_ld, map->l_name};
        if (map->l_ld && loaded_read_place(&place, &object) && loaded_find_symbol(&object, name))
            return false; /* that one comes first */
    }
    return map != NULL;
}

/* A function of the CUDA runtime: programs look it up to see whether there is a runtime, and to
 * call this one and no other. Where our label would be found, the answer is what there would be
 * without us: behind us in the global scope, or in the caller's own. */
static struct dlsym_verdict dlsym_runtime(void *handle, const char *name, const char *version,
                                          const void *caller)
{
    const struct link_map *map = NULL;
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
        map = loader_map_of((const char *)caller - 1);
    if (handle == RTLD_NEXT ? !dlsym_is_ours_next(map, name)
                            : !loader_is_own(dlsym_look(handle, name, version)))
        return (struct dlsym_verdict){0};
    void *address = dlsym_look(RTLD_NEXT, name, version);
    /* The program's own scope is the global one, in which we are. */
    if (!address && handle == RTLD_DEFAULT && map && map->l_prev)
        address = dlsym_look((void *)(uintptr_t)map, name, version);
    return (struct dlsym_verdict){address, 1};
}

static struct dlsym_verdict dlsym_decide_any(void *handle, const char *name, const char *version,
                                             const void *caller)
{
    loader_ready();
    enum api api = name ? hooks_find_name(name) : APIS;
    if (api < APIS && api >= API_HOOKS)
        return dlsym_runtime(handle, name, version, caller);
    /* RTLD_NEXT means "after me" and is for the loader alone to answer. */
    if (api == APIS || handle == RTLD_NEXT)
        return dlsym_pass(name);
    hooks_ready(api);
    return dlsym_answer(api, dlsym_look(handle, name, version));
}

struct dlsym_verdict dlsym_decide(void *handle, const char *name, const char *unused,
                                  const void *caller)
{
    (void)unused;
    return dlsym_decide_any(handle, name, NULL, caller);
}

struct dlsym_verdict dlvsym_decide(void *handle, const char *name, const char *version,
                                   const void *caller)
{
    return dlsym_decide_any(handle, name, version, caller);
}

#if defined(__x86_64__)
/* Calls decide with the caller's own arguments, which stay on the stack meanwhile. The verdict
 * comes back in rax (address) and rdx (is_decided). */
#define DLSYM_TRAMPOLINE(_name)                                                                    \
    __asm__(".text\n"                                                                              \
            ".globl " #_name "\n"                                                                  \
            ".type " #_name ", @function\n" #_name ":\n"                                           \
            ".cfi_startproc\n"                                                                     \
            "    endbr64\n"                                                                        \
            "    pushq %rdi\n"                                                                     \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    pushq %rsi\n"                                                                     \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    pushq %rdx\n"                                                                     \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    movq 24(%rsp), %rcx\n" /* where the caller goes on */                             \
            "    call " #_name "_decide\n"                                                         \
            "    movq %rdx, %rcx\n"                                                                \
            "    popq %rdx\n"                                                                      \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    popq %rsi\n"                                                                      \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    popq %rdi\n"                                                                      \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    testq %rcx, %rcx\n"                                                               \
            "    jz 1f\n"                                                                          \
            "    ret\n"                                                                            \
            "1:  jmp *loader_" #_name "(%rip)\n"                                                   \
            ".cfi_endproc\n"                                                                       \
            ".size " #_name ", . - " #_name "\n")

DLSYM_TRAMPOLINE(dlsym);
DLSYM_TRAMPOLINE(dlvsym);
#else
#error "entry_dlsym.c has its trampoline for x86-64 only"
#endif
