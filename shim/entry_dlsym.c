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
#include "unknown.h"

#include <dlfcn.h>

typedef void *(*dlsym_function)(void *handle, const char *name);
typedef void *(*dlvsym_function)(void *handle, const char *name, const char *version);

struct dlsym_verdict {
    void *address;
    long is_decided; /* 0: jump to the next dlsym */
};

/* Referred to by the assembly below. Threads that come at once store the same values. */
__attribute__((visibility("hidden"))) dlsym_function dlsym_next;
__attribute__((visibility("hidden"))) dlvsym_function dlvsym_next;

struct dlsym_verdict dlsym_decide(void *handle, const char *name);
struct dlsym_verdict dlvsym_decide(void *handle, const char *name, const char *version);

/* Our own exports are the first dlsym in the process, so libc's has to be found by hand; asked from
 * here, it knows the next one after us: libc's again, or that of another preloaded library. */
static void dlsym_find_next(void)
{
    struct loaded_object libc;
    if (!loaded_find_early("libc.so.6", &libc))
        return;
    dlsym_function ask = (dlsym_function)loaded_find_symbol(&libc, "dlsym");
    if (!ask && loaded_find_early("libdl.so.2", &libc)) /* before glibc 2.34 */
        ask = (dlsym_function)loaded_find_symbol(&libc, "dlsym");
    if (!ask)
        return;
    __atomic_store_n(&dlvsym_next, (dlvsym_function)ask(RTLD_NEXT, "dlvsym"), __ATOMIC_RELAXED);
    /* Last, with release: whoever sees this one sees both. */
    __atomic_store_n(&dlsym_next, (dlsym_function)ask(RTLD_NEXT, "dlsym"), __ATOMIC_RELEASE);
}

/* What a look-up that found an address for a hook's name is to answer. */
static struct dlsym_verdict dlsym_answer(enum api api, void *found)
{
    real_function address = (real_function)found;
    bool is_drivers = address == hooks_drivers(api);
    bool is_ours = address == hooks_ours(api);
    if (is_ours && real_is_absent(hooks_drivers(api)))
        /* A search of everything found our export, but its library has no such function or is not
         * there. Say so as the loader would: by an empty answer, with its own error behind it. */
        return (struct dlsym_verdict){dlsym_next(RTLD_NEXT, api_names[api]), 1};
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

struct dlsym_verdict dlsym_decide(void *handle, const char *name)
{
    if (!__atomic_load_n(&dlsym_next, __ATOMIC_ACQUIRE))
        dlsym_find_next();
    /* RTLD_NEXT means "after me" and is for the loader alone to answer. */
    enum api api = name && handle != RTLD_NEXT ? hooks_find_name(name) : APIS;
    if (api == APIS)
        return dlsym_pass(name);
    hooks_ready(api);
    return dlsym_answer(api, dlsym_next(handle, name));
}

struct dlsym_verdict dlvsym_decide(void *handle, const char *name, const char *version)
{
    if (!__atomic_load_n(&dlsym_next, __ATOMIC_ACQUIRE))
        dlsym_find_next();
    enum api api = name && handle != RTLD_NEXT ? hooks_find_name(name) : APIS;
    if (api == APIS)
        return dlsym_pass(name);
    hooks_ready(api);
    return dlsym_answer(api, dlvsym_next(handle, name, version));
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
            "1:  jmp *" #_name "_next(%rip)\n"                                                     \
            ".cfi_endproc\n"                                                                       \
            ".size " #_name ", . - " #_name "\n")

DLSYM_TRAMPOLINE(dlsym);
DLSYM_TRAMPOLINE(dlvsym);
#else
#error "entry_dlsym.c has its trampoline for x86-64 only"
#endif
