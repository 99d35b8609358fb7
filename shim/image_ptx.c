/* SPDX-License-Identifier: MIT
 *
 * Of image_size.h, PTX: its .global declarations at module scope, each element type's size times
 * the extents. The assembler keeps every one, used or not; .extern, .weak and .common ones may be
 * another module's. It reads what a compiler of PTX accepts, and counts 0 for what it does not
 * understand.
 */
#include "image_parts.h"

enum image_ptx_kind { PTX_END, PTX_WORD, PTX_STRING, PTX_MARK };

struct image_ptx {
    struct image_view text;
    uint64_t at; /* where the next token begins */
    enum image_ptx_kind kind;
    char mark; /* of a PTX_MARK */
    const char *word;
    size_t length; /* of a PTX_WORD */
};

static const struct {
    const char *name;
    unsigned bytes;
} image_ptx_types[] = {
    {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},   {".s16", 2},
    {".f16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4},   {".f16x2", 4},
    {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}, {".b128", 16},
};

static char image_ptx_peek(const struct image_ptx *ptx)
{
    return ptx->at < ptx->text.length ? (char)ptx->text.at[ptx->at] : '\0';
}

/* Up to and with the closing mark, which a text may lack. */
static void image_ptx_skip_past(struct image_ptx *ptx, const char *closing)
{
    size_t matched = 0;
    while (image_ptx_peek(ptx) && closing[matched]) {
        char c = image_ptx_peek(ptx);
        matched = c == closing[matched] ? matched + 1 : c == closing[0];
        ptx->at++;
    }
}

/* True if there was a comment or white space. */
static bool image_ptx_skip_blank(struct image_ptx *ptx)
{
    uint64_t start = ptx->at;
    char c = image_ptx_peek(ptx);
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ptx->at++;
        return true;
    }
    if (c != '/')
        return false;
    ptx->at++;
    c = image_ptx_peek(ptx);
    if (c == '/' || c == '*') {
        ptx->at++;
        image_ptx_skip_past(ptx, c == '/' ? "\n" : "*/");
        return true;
    }
    ptx->at = start;
    return false;
}

static bool image_ptx_is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%';
}

static void image_ptx_next(struct image_ptx *ptx)
{
    while (image_ptx_skip_blank(ptx))
        continue;
    uint64_t start = ptx->at;
    char c = image_ptx_peek(ptx);
    ptx->mark = '\0';
    if (c == '\0') {
        ptx->kind = PTX_END;
        return;
    }
    ptx->at++;
    if (c == '"') {
        ptx->kind = PTX_STRING;
        image_ptx_skip_past(ptx, "\"");
    } else if (c == '.' || image_ptx_is_word(c)) {
        ptx->kind = PTX_WORD;
        while (image_ptx_is_word(image_ptx_peek(ptx)))
            ptx->at++;
        ptx->word = (const char *)ptx->text.at + start;
        ptx->length = (size_t)(ptx->at - start);
    } else {
        ptx->kind = PTX_MARK;
        ptx->mark = c;
    }
}

static bool image_ptx_is(const struct image_ptx *ptx, const char *word)
{
    return ptx->kind == PTX_WORD && strlen(word) == ptx->length &&
           memcmp(ptx->word, word, ptx->length) == 0;
}

/* 0 if the word is no number, or one that is too large. */
static uint64_t image_ptx_number(const struct image_ptx *ptx)
{
    size_t length = ptx->length, i = 0;
    unsigned base = 10;
    uint64_t value = 0;
    if (ptx->kind != PTX_WORD)
        return 0;
    if (length > 1 && ptx->word[length - 1] == 'U')
        length--;
    if (length > 1 && ptx->word[0] == '0') {
        char mark = (char)(ptx->word[1] | 0x20);
        base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
        i = base == 8 ? 1 : 2;
    }
    for (; i < length; i++) {
        char c = ptx->word[i], letter = (char)(c | 0x20);
        unsigned digit = c >= '0' && c <= '9'             ? (unsigned)(c - '0')
                         : letter >= 'a' && letter <= 'f' ? (unsigned)(letter - 'a') + 10
                                                          : 16;
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return 0;
    }
    return value;
}

/* Of one element, from the words between .global and the name; 0 for what is not memory of the
 * device, or of no known size. Stands at the name afterwards. */
static uint64_t image_ptx_element(struct image_ptx *ptx)
{
    uint64_t bytes = 0, lanes = 1;
    bool is_known = true;
    for (; ptx->kind == PTX_WORD && ptx->word[0] == '.'; image_ptx_next(ptx)) {
        uint64_t type = 0;
        for (size_t i = 0; i < sizeof image_ptx_types / sizeof image_ptx_types[0]; i++)
            type += image_ptx_is(ptx, image_ptx_types[i].name) ? image_ptx_types[i].bytes : 0;
        if (type)
            bytes = type;
        else if (image_ptx_is(ptx, ".v2") || image_ptx_is(ptx, ".v4"))
            lanes = ptx->word[2] == '2' ? 2 : 4;
        else if (image_ptx_is(ptx, ".align"))
            image_ptx_next(ptx);
        else
            is_known = false; /* .attribute(.managed), .texref */
    }
    return is_known ? bytes * lanes : 0;
}

/* The product of the extents that follow a name, 0 if one of them is not a number. */
static uint64_t image_ptx_elements(struct image_ptx *ptx)
{
    uint64_t elements = 1;
    while (ptx->mark == '[') {
        image_ptx_next(ptx);
        elements = image_multiply(elements, image_ptx_number(ptx));
        if (ptx->mark != ']')
            image_ptx_next(ptx);
        if (ptx->mark != ']')
            return 0;
        image_ptx_next(ptx);
    }
    return elements;
}

/* To the comma or semicolon that ends a declarator with its initialiser. */
static void image_ptx_skip_initialiser(struct image_ptx *ptx)
{
    uint64_t depth = 0;
    for (; ptx->kind != PTX_END; image_ptx_next(ptx)) {
        if (depth == 0 && (ptx->mark == ',' || ptx->mark == ';'))
            return;
        if (ptx->mark == '{' || ptx->mark == '(')
            depth++;
        else if (depth > 0 && (ptx->mark == '}' || ptx->mark == ')'))
            depth--;
    }
}

/* Stands at .global, and at the semicolon afterwards. */
static uint64_t image_ptx_declaration(struct image_ptx *ptx)
{
    uint64_t sum = 0;
    image_ptx_next(ptx);
    uint64_t element = image_ptx_element(ptx);
    while (ptx->kind != PTX_END && ptx->mark != ';') {
        bool is_named = ptx->kind == PTX_WORD;
        image_ptx_next(ptx);
        uint64_t elements = is_named ? image_ptx_elements(ptx) : 0;
        /* Several variables by one name: name<count>. */
        if (ptx->mark == '=' || ptx->mark == ',' || ptx->mark == ';')
            sum = image_add(sum, image_multiply(element, elements));
        image_ptx_skip_initialiser(ptx);
        if (ptx->mark == ',')
            image_ptx_next(ptx);
    }
    return sum;
}

bool image_ptx_least(struct image_view image, uint64_t *bytes)
{
    struct image_ptx ptx = {.text = image};
    uint64_t depth = 0, sum = 0;
    bool is_elsewhere = false;
    *bytes = 0;
    image_ptx_next(&ptx);
    if (!image_ptx_is(&ptx, ".version"))
        return false;
    for (; ptx.kind != PTX_END; image_ptx_next(&ptx)) {
        if (ptx.mark == '#') /* a preprocessor's line: what follows may not be meant */
            return true;
        if (ptx.mark == '{')
            depth++;
        else if (ptx.mark == '}' && depth > 0)
            depth--;
        if (depth > 0)
            continue;
        if (image_ptx_is(&ptx, ".align")) { /* may stand before .global as well */
            image_ptx_next(&ptx);
            continue;
        }
        if (image_ptx_is(&ptx, ".global") && !is_elsewhere)
            sum = image_add(sum, image_ptx_declaration(&ptx));
        is_elsewhere = image_ptx_is(&ptx, ".extern") || image_ptx_is(&ptx, ".weak") ||
                       image_ptx_is(&ptx, ".common");
    }
    *bytes = depth == 0 ? sum : 0;
    return true;
}
