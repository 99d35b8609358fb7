/* SPDX-License-Identifier: MIT
 *
 * See native_fixture.h.
 */
#include "native_fixture.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct native_chain chain;
void *code_page;
bool is_slow;

#if defined(__x86_64__)
static const uint8_t code[] = {
    0x48, 0x83, 0xec, 0x08, /* sub $8,%rsp */
    0xff, 0xd6,             /* call *%rsi */
    0x48, 0x83, 0xc4, 0x08, /* add $8,%rsp */
    0xc3,                   /* ret */
};
#else
static const uint8_t code[1];
#endif

static int write_code(void)
{
    code_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code_page == MAP_FAILED)
        return -1;
    memcpy(code_page, code, sizeof code);
    return mprotect(code_page, 4096, PROT_READ | PROT_EXEC);
}

void *function_of(uint64_t address)
{
    Dl_info info;
    return address && dladdr((void *)(uintptr_t)(address - 1), &info) ? info.dli_saddr : NULL;
}

bool is_chain(const uint64_t addresses[CHAIN_FRAMES])
{
    return function_of(addresses[0]) == (void *)chain.inner &&
           function_of(addresses[1]) == (void *)chain.middle &&
           function_of(addresses[2]) == (void *)chain.outer;
}

void take(void *argument)
{
    struct capture *capture = argument;
    capture->count = native_frames(capture->addresses, capture->most);
}

void take_through_the_chain(void *argument)
{
    chain.outer(take, argument);
    __asm__ volatile("" ::: "memory");
}

void call(void (*function)(void *), void *argument)
{
    if (is_slow)
        ((void (*)(void *, void (*)(void *)))code_page)(argument, function);
    else
        function(argument);
    __asm__ volatile("" ::: "memory");
}

struct capture captured(void)
{
    struct capture capture = {.most = ASKED};
    call(take_through_the_chain, &capture);
    return capture;
}

int open_chain(const char *path)
{
    if (!code_page && write_code() != 0)
        return -1;
    chain.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!chain.handle)
        return -1;
    chain.outer = (__typeof__(chain.outer))dlsym(chain.handle, "chain_outer");
    chain.middle = (__typeof__(chain.middle))dlsym(chain.handle, "chain_middle");
    chain.inner = (__typeof__(chain.inner))dlsym(chain.handle, "chain_inner");
    chain.deep = (__typeof__(chain.deep))dlsym(chain.handle, "chain_deep");
    chain.aligned = (__typeof__(chain.aligned))dlsym(chain.handle, "chain_aligned");
    chain.at_unload = (__typeof__(chain.at_unload))dlsym(chain.handle, "chain_at_unload");
    return 0;
}

/* It kills itself, lest a sanitizer miss the threads that a fork does not have. */
bool says_true_in_a_child(bool (*run)(void))
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (run())
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}
