/* SPDX-License-Identifier: MIT
 *
 * The rule of site_name.h.
 */
#include "site_name.h"

#include "log.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    enum { FRAMEWORK, PASSAGE } kind;
    const char *pattern;
} site_patterns[] = {
#define FRAME(_kind, _pattern, _text) {_kind, _pattern},
#include "gpulimit/tbl/frames.def"
};

static bool site_matches(const char *text, int kind)
{
    for (size_t i = 0; i < sizeof site_patterns / sizeof site_patterns[0]; i++) {
        if ((int)site_patterns[i].kind == kind && fnmatch(site_patterns[i].pattern, text, 0) == 0)
            return true;
    }
    return false;
}

static const char *site_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The first to come stays. */
static void site_keep(char kept[SITE_NAME_BYTES], struct text *text)
{
    if (kept[0] == '\0')
        memcpy(kept, text_string(text), strnlen(text_string(text), SITE_NAME_BYTES - 1));
}

void site_name_add_python(struct site_name *name, const char *file, const char *function,
                          uint32_t line)
{
    struct text text;
    text_init(&text);
    text_add(&text, site_base(file));
    text_add(&text, ":");
    text_add_number(&text, line);
    text_add(&text, " ");
    text_add(&text, function);
    site_keep(name->any_python, &text);
    if (!site_matches(file, FRAMEWORK))
        site_keep(name->own_python, &text);
}

static void site_add_hex(struct text *text, uint64_t number)
{
    char digits[17];
    unsigned first = sizeof digits - 1;
    digits[first] = '\0';
    do {
        digits[--first] = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number > 0);
    text_add(text, digits + first);
}

void site_name_add_native(struct site_name *name, const char *path, uint64_t place)
{
    struct text text;
    const char *base = path[0] != '\0' ? site_base(path) : "code made at run time";
    text_init(&text);
    text_add(&text, base);
    text_add(&text, "+0x");
    site_add_hex(&text, place);
    site_keep(name->any_native, &text);
    if (!site_matches(base, PASSAGE))
        site_keep(name->own_native, &text);
}

const char *site_name_best(const struct site_name *name)
{
    if (name->own_python[0] != '\0')
        return name->own_python;
    if (name->own_native[0] != '\0')
        return name->own_native;
    return name->any_python[0] != '\0' ? name->any_python : name->any_native;
}
