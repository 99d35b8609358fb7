/* SPDX-License-Identifier: MIT
 *
 * Names of C++ as their source has them. By the C++ library, where there is one: it is asked for
 * when the first such name turns up, so that nobody needs it who has none.
 */
#ifndef GPULIMIT_TOOLS_DEMANGLE_H
#define GPULIMIT_TOOLS_DEMANGLE_H

/* "pool::grow" for "_ZN4pool4growEm": without what it takes. For the caller to free(). NULL if the
 * name is no mangled one, or nobody is there who could read it. */
char *demangle_name(const char *name);

#endif
