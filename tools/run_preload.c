/* SPDX-License-Identifier: MIT
 *
 * Where libgpulimit.so is, and how it comes into LD_PRELOAD.
 */
#include "run_preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD_NAME "libgpulimit.so"

/* Beside the folder that this program is in. Installed: the library folder that it was built for,
 * or the usual ones under a prefix that was moved; in a build tree: shim/. */
static const char *const preload_places[] = {GPULIMIT_LIBDIR, "lib", "lib64", "shim"};

/* The folder of this very program, whatever the name it was called by. */
static bool preload_get_own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    char *slash;

    if (length < 0) {
        return false;
    }
    folder[length] = '\0';
    slash = strrchr(folder, '/');
    if (!slash) {
        return false;
    }
    *slash = '\0';
    return true;
}

static bool preload_search(char found[PATH_MAX])
{
    char folder[PATH_MAX];

    if (!preload_get_own_folder(folder)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(preload_places) / sizeof(preload_places[0]); i++) {
        bool is_absolute = preload_places[i][0] == '/';
        bool is_found;
        char *path;

        if (asprintf(&path, "%s%s%s/" PRELOAD_NAME, is_absolute ? "" : folder,
                     is_absolute ? "" : "/../", preload_places[i]) < 0) {
            return false;
        }
        is_found = realpath(path, found) != NULL;
        free(path);
        if (is_found) {
            return true;
        }
    }
    return false;
}

bool preload_find(const char *given, char found[PATH_MAX])
{
    if (given && !realpath(given, found)) {
        fprintf(stderr, "gpulimit-run: --lib %s: %s\n", given, strerror(errno));
        return false;
    }
    if (!given && !preload_search(found)) {
        fputs("gpulimit-run: " PRELOAD_NAME
              " is neither in ../lib nor in ../shim beside this program; "
              "say where it is: --lib PATH\n",
              stderr);
        return false;
    }
    /* The dynamic linker splits LD_PRELOAD at both, and there is no way to quote them. Half a name
     * would load something else, or nothing: no limit, and nobody would notice. */
    if (strpbrk(found, ": ")) {
        fprintf(
            stderr,
            "gpulimit-run: LD_PRELOAD cannot hold a path with a colon or a blank: '%s'; put the "
            "library elsewhere, and say where: --lib PATH\n",
            found);
        return false;
    }
    if (access(found, R_OK) != 0) {
        fprintf(stderr, "gpulimit-run: %s: %s\n", found, strerror(errno));
        return false;
    }
    return true;
}

static bool preload_has(const char *list, const char *library)
{
    size_t length = strlen(library);

    for (const char *at = list; *at != '\0';) {
        size_t item = strcspn(at, ": ");

        if (item == length && strncmp(at, library, length) == 0) {
            return true;
        }
        at += item + (at[item] != '\0');
    }
    return false;
}

char *preload_join(const char *library, const char *old)
{
    char *joined;

    if (!old || old[0] == '\0') {
        return strdup(library);
    }
    if (preload_has(old, library)) {
        return strdup(old);
    }
    return asprintf(&joined, "%s:%s", library, old) < 0 ? NULL : joined;
}
