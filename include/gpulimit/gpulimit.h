/* SPDX-License-Identifier: MIT
 *
 * For programs: say what they are at, so that whoever looks at their GPU memory sees it.
 *
 *     gpulimit_tag_push("epoch 3");        from here on this thread allocates for "epoch 3"
 *     gpulimit_mark("epoch 3 begins");     what is held now is noted under this name
 *     gpulimit_tag_pop();
 *
 * Nothing needs to be linked: where libgpulimit.so is not preloaded, the calls do nothing. Any
 * thread, before the first CUDA call too, C and C++. errno stays as it was.
 */
#ifndef GPULIMIT_GPULIMIT_H
#define GPULIMIT_GPULIMIT_H

/* How the functions below reach the library. A weak reference alone would not do: the linker makes
 * it null for good in an executable that is not position-independent. An entry of the global offset
 * table is filled in at each start, so the address is read from there, whatever the compiler and
 * its options would make of it. */
#if defined(GPULIMIT_DECLARE) /* the library itself, and who links with it */
#define GPULIMIT_FUNCTION(_name, _parameters, _arguments) void _name _parameters;
#elif defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__)
#define GPULIMIT_FUNCTION(_name, _parameters, _arguments)                                          \
    static __inline__ void _name _parameters __asm__("gpulimit_call_" #_name);                     \
    static __inline__ void _name _parameters                                                       \
    {                                                                                              \
        void(*found) _parameters;                                                                  \
        __asm__(".weak " #_name "\n\tmovq " #_name "@GOTPCREL(%%rip), %0" : "=r"(found));          \
        if (found)                                                                                 \
            found _arguments;                                                                      \
    }
#else /* there is no such library */
#define GPULIMIT_FUNCTION(_name, _parameters, _arguments)                                          \
    static __inline__ void _name _parameters                                                       \
    {                                                                                              \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What this thread is at: what it allocates until the matching pop bears the name. Names are nested
 * 16 deep and copied; 127 bytes of one are kept, and the first 8192 different ones of a process.
 * NULL is a phase without a name. Costs some 10 ns, so it can stand in inner loops. */
GPULIMIT_FUNCTION(gpulimit_tag_push, (const char *name), (name))

/* Ends the phase that was pushed last. Without one it does nothing. */
GPULIMIT_FUNCTION(gpulimit_tag_pop, (void), ())

/* A point in time: notes under a name what each GPU in use holds now, and held at most since the
 * mark before. The latest few hundred are kept. Costs some 100 ns and takes a lock. */
GPULIMIT_FUNCTION(gpulimit_mark, (const char *name), (name))

#ifdef __cplusplus
}
#endif

#undef GPULIMIT_FUNCTION

#endif
