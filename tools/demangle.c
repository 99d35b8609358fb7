/* SPDX-License-Identifier: MIT
 *
 * Asks the C++ library, and leaves out what a line in a table has no room for.
 */
#include "demangle.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The C++ ABI's own function, by its signature there. */
typedef char *demangle_function(const char *name, char *buffer, size_t *bytes, int *status);

static demangle_function *demangle_find(void)
{
    static demangle_function *function;
    static bool is_asked;
    void *library;

    if (!is_asked) {
        is_asked = true;
        library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        /* Stored as dlsym's manual page does: C has no conversion between the two. */
        *(void **)&function = library ? dlsym(library, "__cxa_demangle") : NULL;
    }
    return function;
}

/* Behind the sign of an operator, "operator<<": its brackets bracket nothing. */
static char *demangle_skip_operator(char *at)
{
    if (strncmp(at, "operator", 8) != 0) {
        return at;
    }
    at += 8;
    return strncmp(at, "()", 2) == 0 ? at + 2 : at + strspn(at, "<>=!+-*/%^&|~,[]");
}

/* Cuts off what stands in the parentheses of the call: those that no template or other parentheses
 * are around, and that are not a namespace's "(anonymous namespace)". */
static void demangle_cut(char *name)
{
    size_t depth = 0;

    for (char *at = demangle_skip_operator(name); *at != '\0';) {
        if (*at == '(' && depth == 0 && at > name &&
            strncmp(at, "(anonymous namespace)", 21) != 0) {
            *at = '\0';
            return;
        }
        if (*at == '<' || *at == '(') {
            depth++;
        } else if ((*at == '>' || *at == ')') && depth > 0) {
            depth--;
        }
        at = demangle_skip_operator(at + 1);
    }
}

char *demangle_name(const char *name)
{
    demangle_function *function = strncmp(name, "_Z", 2) == 0 ? demangle_find() : NULL;
    int status = 0;
    char *readable = function ? function(name, NULL, NULL, &status) : NULL;

    if (readable) {
        demangle_cut(readable);
    }
    return readable;
}
