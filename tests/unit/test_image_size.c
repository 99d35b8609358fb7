/* SPDX-License-Identifier: MIT
 *
 * shim/image_size.c and the readers of the three forms: what counts, what does not, and that no
 * image makes them read where they should not. Each image lies before a page that nobody may read.
 */
#include "unit.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image_parts.h"
#include "image_size.h"

enum { ROOM = 1 << 16, MANAGED = 4, PTX = 1, ELF = 2, LTO = 8, ZSTD = 0x8000, SM_90A = 0x100000 };

#define HEAD "//\n.version 7.0\n.target sm_70\n.address_size 64\n"

/* An image being built; room for what the tests build. */
struct bytes {
    unsigned char at[2048];
    size_t length;
};

struct section {
    const char *name;
    uint64_t flags, size;
};

static unsigned char *room; /* ROOM bytes, and then the page */

static int make_room(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    room = mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return room == MAP_FAILED || mprotect(room + ROOM, page, PROT_NONE) != 0 ? -1 : 0;
}

static unsigned char *place(const void *image, size_t length)
{
    return memcpy(room + ROOM - length, image, length);
}

/* With a length, as a payload is read. */
static uint64_t least_within(const void *image, size_t length)
{
    uint64_t bytes = 1;
    bool is_image = image_any_least((struct image_view){place(image, length), length}, &bytes);
    if (!is_image)
        assert_int_equal(bytes, 0);
    return bytes;
}

/* Without one, as the driver's functions are called. */
static uint64_t least_of(const struct bytes *image)
{
    uint64_t bytes = 1;
    assert_true(image_least_bytes(place(image->at, image->length), &bytes));
    assert_int_equal(bytes, least_within(image->at, image->length));
    return bytes;
}

static uint64_t least_of_text(const char *text)
{
    uint64_t bytes = 1;
    assert_true(image_least_bytes(place(text, strlen(text) + 1), &bytes));
    assert_int_equal(bytes, least_within(text, strlen(text)));
    return bytes;
}

static void append(struct bytes *bytes, const void *more, size_t length)
{
    assert_true(length <= sizeof bytes->at - bytes->length);
    memcpy(bytes->at + bytes->length, more, length);
    bytes->length += length;
}

/* A cubin of these sections, up to one without a name, all NOBITS; and of one symbol in each,
 * marked by `other`, of `symbol_size` bytes. The section headers are its end. */
static struct bytes make_cubin(const struct section *sections, unsigned char other,
                               uint64_t symbol_size)
{
    struct bytes cubin = {.length = sizeof(Elf64_Ehdr)};
    Elf64_Ehdr header = {.e_ident = ELFMAG "\2\1\1\x41",
                         .e_type = ET_EXEC,
                         .e_machine = 190,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shstrndx = 1};
    Elf64_Shdr headers[16] = {{0}};
    char names[256] = "";
    size_t names_length = 1;
    unsigned count = 3;

    for (; sections->name; sections++, count++) {
        headers[count] = (Elf64_Shdr){.sh_name = (Elf64_Word)names_length,
                                      .sh_type = SHT_NOBITS,
                                      .sh_flags = sections->flags,
                                      .sh_size = sections->size};
        memcpy(names + names_length, sections->name, strlen(sections->name) + 1);
        names_length += strlen(sections->name) + 1;
        Elf64_Sym symbol = {
            .st_other = other, .st_shndx = (Elf64_Section)count, .st_size = symbol_size};
        append(&cubin, &symbol, sizeof symbol);
    }
    headers[2] = (Elf64_Shdr){
        .sh_type = SHT_SYMTAB, .sh_offset = sizeof header, .sh_size = cubin.length - sizeof header};
    headers[1] =
        (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = cubin.length, .sh_size = names_length};
    append(&cubin, names, names_length);
    header.e_shnum = (Elf64_Half)count;
    header.e_shoff = cubin.length;
    append(&cubin, headers, count * sizeof headers[0]);
    memcpy(cubin.at, &header, sizeof header);
    return cubin;
}

static const struct section variables[] = {{".nv.global", SHF_ALLOC | SHF_WRITE, MIB(256)},
                                           {".nv.global.init", SHF_ALLOC | SHF_WRITE, 100},
                                           {".text.kernel", SHF_ALLOC | SHF_EXECINSTR, 4096},
                                           {".nv.constant0.kernel", SHF_ALLOC, 512},
                                           {NULL, 0, 0}};

static struct bytes make_fat(void)
{
    struct bytes fat = {.length = 0};
    append(&fat, "\x50\xed\x55\xba\1\0\x10\0\0\0\0\0\0\0\0\0", 16);
    return fat;
}

static void append_entry(struct bytes *fat, uint16_t kind, uint32_t architecture, uint64_t flags,
                         const void *payload, size_t length)
{
    unsigned char header[72] = {0};
    uint64_t total, header_bytes = sizeof header;
    memcpy(header, &kind, 2);
    memcpy(header + 4, &header_bytes, 4);
    memcpy(header + 8, &length, 8);
    memcpy(header + 28, &architecture, 4);
    memcpy(header + 40, &flags, 8);
    append(fat, header, sizeof header);
    append(fat, payload, length);
    total = fat->length - 16;
    memcpy(fat->at + 8, &total, 8);
}

static void append_text(struct bytes *fat, uint32_t architecture, uint64_t flags, const char *text)
{
    append_entry(fat, PTX, architecture, flags, text, strlen(text));
}

static void test_a_cubins_variables_count_and_its_code_does_not(void **state)
{
    (void)state;
    struct bytes cubin = make_cubin(variables, 0, 60);
    assert_int_equal(least_of(&cubin), MIB(256) + 100);
    cubin = make_cubin(variables + 2, 0, 0);
    assert_int_equal(least_of(&cubin), 0);
    cubin = make_cubin((struct section[]){{".nv.globalize", SHF_ALLOC, 7},
                                          {"x.nv.global", SHF_ALLOC, 7},
                                          {".nv.global", 0, 7},
                                          {".nv.glob", SHF_ALLOC, 7},
                                          {NULL, 0, 0}},
                       0, 0);
    assert_int_equal(least_of(&cubin), 0);
}

static void test_managed_variables_of_a_cubin_do_not_count(void **state)
{
    (void)state;
    struct bytes cubin = make_cubin(variables, MANAGED, 60);
    assert_int_equal(least_of(&cubin), MIB(256) + 100 - 2 * 60);
    cubin = make_cubin(variables, MANAGED | 2, MIB(256));
    assert_int_equal(least_of(&cubin), 0);
}

static void test_cubins_of_another_kind_count_nothing(void **state)
{
    (void)state;
    struct bytes cubin = make_cubin(variables, 0, 0);
    static const struct {
        size_t offset;
        unsigned char value;
    } changes[] = {
        {EI_CLASS, ELFCLASS32},
        {EI_DATA, ELFDATA2MSB},
        {offsetof(Elf64_Ehdr, e_type), ET_REL},
        {offsetof(Elf64_Ehdr, e_machine), EM_X86_64},
        {offsetof(Elf64_Ehdr, e_shentsize), 40},
        {offsetof(Elf64_Ehdr, e_shnum), 0},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct bytes other = cubin;
        other.at[changes[i].offset] = changes[i].value;
        assert_int_equal(least_of(&other), 0);
    }
}

/* `field` in the header of section `index` becomes larger than any image. */
static uint64_t least_of_damaged(unsigned index, size_t field)
{
    struct bytes cubin = make_cubin(variables, 0, 0);
    Elf64_Ehdr header;
    memcpy(&header, cubin.at, sizeof header);
    memset(cubin.at + header.e_shoff + index * sizeof(Elf64_Shdr) + field, 0xff, 4);
    return least_of(&cubin);
}

static void test_a_damaged_cubin_counts_nothing(void **state)
{
    (void)state;
    struct bytes cubin = make_cubin(variables, 0, 0);
    memset(cubin.at + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8);
    assert_int_equal(least_of(&cubin), 0);
    assert_int_equal(least_of_damaged(1, offsetof(Elf64_Shdr, sh_type)), 0);
    assert_int_equal(least_of_damaged(1, offsetof(Elf64_Shdr, sh_offset)), 0);
    assert_int_equal(least_of_damaged(1, offsetof(Elf64_Shdr, sh_size)), 0);
    assert_int_equal(least_of_damaged(2, offsetof(Elf64_Shdr, sh_size)), 0);
    assert_int_equal(least_of_damaged(3, offsetof(Elf64_Shdr, sh_name)), 100);
}

static void test_sums_saturate(void **state)
{
    (void)state;
    struct bytes cubin = make_cubin((struct section[]){{".nv.global", SHF_ALLOC, UINT64_MAX - 1},
                                                       {".nv.global.init", SHF_ALLOC, 100},
                                                       {NULL, 0, 0}},
                                    0, 0);
    assert_true(least_of(&cubin) == UINT64_MAX);
    assert_true(least_of_text(HEAD ".global .b64 x[0xffffffffffffffff]; .global .b8 y;") ==
                UINT64_MAX);
    assert_true(least_of_text(HEAD ".global .b8 x[0x100000000][0x100000000];") == UINT64_MAX);
}

static const struct {
    const char *text;
    uint64_t bytes;
} declarations[] = {
    {"", 0},
    {".visible .global .align 4 .b8 big[268435456];", MIB(256)},
    {".global .align 4 .b8 of_newer_compilers[1000];", 1000},
    {".global .b8 a; .global .u16 b; .global .s32 c; .global .f64 d; .global .b128 e;", 31},
    {".global .v4 .f32 a; .global .v2.u64 b[3];", 16 + 48},
    {".visible .global .f32 a, b[10], c[0x10][010][2U], d[0b11];", 4 + 40 + 1024 + 12},
    {".visible\n.global/* ; */.b16 x // [9];\n[ 4 ] [ 5 ] ;", 40},
    {".global .u8 a[100] = {1, 2, {3, 4}}, b = 4, c[3];", 104},
    {".global .u64 a[2] = {generic(b), b + 8}; .global .b8 b;", 17},
    {".visible .align 8 .global .b16 a;", 2},
    {".global .s8 $a[8]; .global .s8 %b; .global .s8 _c;", 10},
    {".global .u64 unsized[] = {1, 2, 3}; .global .b8 a[][10] = {{1}, {2}};", 0},
    {".extern .global .b8 a[100]; .weak .global .b8 b[100]; .common .global .b8 c[100];", 0},
    {".extern .align 8 .global .b8 a[100]; .global .b8 b;", 1},
    {".extern .func f; .global .b8 a[100];", 100},
    {".visible .const .b8 a[100]; .visible .shared .b8 b[100];", 0},
    {".visible .global .attribute(.managed) .align 4 .b8 a[100], b[3];", 0},
    {".global .texref a; .global .b32 b; .global .of_the_future .b32 c;", 4},
    {".global .b8 of_several<4>[100], c[(4 << 2)], d[n], e[08], f[-1], g[5 5];", 0},
    {".global .b8 a[99999999999999999999999];", 0},
    {"// .global .b8 a[100];\n/* .global .b8 a[100]; **/ .global .b8 b[7];", 7},
    {".file 1 \"/{/x.cu .global .b8 a[100];\" .pragma \"{\"; .global .b8 b[7];", 7},
    {".visible .entry k(.param .u64 p) { { .global .b8 a[100]; } // }\n /* } */ ret; }", 0},
    {".visible .entry k() { } .global .b8 a[5];", 5},
    {".section .debug_info { .b8 1, 2 } .global .b8 a[5];", 5},
    {".global .b8 a[5]; .entry k() { unfinished", 0},
    {".global .b8 a[5]; .global .b8 b[50", 5},
    {".global .b8 a[5]; /* .global .b8 b[50];", 5},
    {".global .b8 a[5];\n#if 0\n.global .b8 b[50];\n#endif\n", 0},
    {".global .b8 a[5]; } .global .b8 b[50];", 55},
    {".global .b8 ; .global .b8 , , a[3]; .global 7;", 3},
};

static void test_ptx_counts_what_it_declares_at_module_scope(void **state)
{
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof declarations / sizeof declarations[0]; i++) {
        (void)snprintf(text, sizeof text, HEAD "%s", declarations[i].text);
        uint64_t bytes = least_of_text(text);
        if (bytes != declarations[i].bytes)
            fail_msg("%llu bytes, not %llu: %s", (unsigned long long)bytes,
                     (unsigned long long)declarations[i].bytes, declarations[i].text);
    }
}

static void test_ptx_begins_after_blanks_and_comments(void **state)
{
    (void)state;
    assert_int_equal(least_of_text("\n\t // .version\n/* .version */.version 7.0 .global .b8 a;"),
                     1);
    assert_int_equal(least_within(".versions 7.0 .global .b8 a;", 28), 0);
    assert_int_equal(least_within("x .version 7.0 .global .b8 a;", 29), 0);
}

static void test_a_fat_binary_counts_its_smallest_entry(void **state)
{
    struct bytes fat = make_fat(), cubin = make_cubin(variables, 0, 0);
    (void)state;
    assert_int_equal(least_of(&fat), 0);
    append_entry(&fat, ELF, 90, 0, cubin.at, cubin.length);
    assert_int_equal(least_of(&fat), MIB(256) + 100);
    append_text(&fat, 90, 0, HEAD ".global .b8 a[5000000];\n");
    assert_int_equal(least_of(&fat), 5000000);
    append_text(&fat, 100, 0, HEAD ".global .b8 a[6000000];\n");
    assert_int_equal(least_of(&fat), 5000000);
    append_text(&fat, 80, 0, HEAD);
    assert_int_equal(least_of(&fat), 0);
}

static void test_text_in_a_fat_binary_ends_with_its_entry_or_a_nul(void **state)
{
    static const char text[] = HEAD ".global .b8 a[5];\0.global .b8 b[50];";
    struct bytes fat = make_fat();
    (void)state;
    append_entry(&fat, PTX, 90, 0, text, sizeof text - 1);
    assert_int_equal(least_of(&fat), 5);
    fat = make_fat();
    append_text(&fat, 90, 0, HEAD ".global .b8 a[5];");
    append_text(&fat, 90, 0, HEAD ".global .b8 a[5];");
    assert_int_equal(least_of(&fat), 5);
}

static void test_a_packed_entry_counts_as_its_twin_of_the_same_architecture(void **state)
{
    struct bytes fat = make_fat();
    (void)state;
    append_text(&fat, 90, ZSTD, "packed");
    assert_int_equal(least_of(&fat), 0);
    append_text(&fat, 80, 0, HEAD ".global .b8 a[5];");
    append_text(&fat, 90, SM_90A, HEAD ".global .b8 a[5];");
    assert_int_equal(least_of(&fat), 0);
    append_text(&fat, 90, 0, HEAD ".global .b8 a[7];");
    assert_int_equal(least_of(&fat), 5);
    append_entry(&fat, LTO, 90, 0, "code", 4);
    assert_int_equal(least_of(&fat), 0);
}

static void test_a_fat_binary_that_is_not_whole_counts_nothing(void **state)
{
    struct bytes fat = make_fat(), more;
    (void)state;
    append_text(&fat, 90, 0, HEAD ".global .b8 a[5];");
    for (size_t length = 0; length < fat.length; length++)
        assert_int_equal(least_within(fat.at, length), 0);
    more = fat;
    more.at[4] = 2; /* another version */
    assert_int_equal(least_of(&more), 0);
    more = fat;
    more.at[8]++; /* a byte more than its entries */
    assert_int_equal(least_within(more.at, more.length), 0);
    more = fat;
    more.at[16 + 15] = 0xff; /* the payload's size */
    assert_int_equal(least_of(&more), 0);
    more = fat;
    more.at[16 + 4] = 48; /* the entry's header, shorter than it is */
    assert_int_equal(least_of(&more), 0);
}

static void test_a_wrapper_leads_to_its_fat_binary(void **state)
{
    struct bytes fat = make_fat();
    struct {
        uint32_t magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, NULL, NULL};
    uint64_t bytes = 1;
    (void)state;
    assert_true(image_least_bytes(&wrapper, &bytes));
    assert_int_equal(bytes, 0);
    append_text(&fat, 90, 0, HEAD ".global .b8 a[5];");
    wrapper.data = place(fat.at, fat.length);
    assert_true(image_least_bytes(&wrapper, &bytes));
    assert_int_equal(bytes, 5);
    wrapper.version = 2;
    assert_true(image_least_bytes(&wrapper, &bytes));
    assert_int_equal(bytes, 0);
    wrapper.version = 1;
    wrapper.data = place(HEAD ".global .b8 a;", sizeof HEAD ".global .b8 a;");
    assert_true(image_least_bytes(&wrapper, &bytes));
    assert_int_equal(bytes, 0);
}

static void test_what_is_no_image_is_none_and_is_not_read_beyond_its_end(void **state)
{
    static const char *const texts[] = {
        "",   "x",           "garbage", "\x7f", "\x7f\x45\x4c", "\x50\xed\x55", "\xb1\x43",   "/",
        "//", "/* .version", ".",       ".ver", "\"",           "\xba\x55",     "# .version",
    };
    uint64_t bytes = 1;
    (void)state;
    assert_false(image_least_bytes(NULL, &bytes));
    assert_int_equal(bytes, 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bytes = 1;
        assert_false(image_least_bytes(place(texts[i], strlen(texts[i]) + 1), &bytes));
        assert_int_equal(bytes, 0);
    }
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t state = 20261130;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % limit;
}

/* Bytes that mean something at more than one place of an image. */
static unsigned char random_byte(void)
{
    static const unsigned char telling[] = "\0\1\2\xff\x7f\x80 .{}[](),;=/*\"\n#0489x";
    return random_below(4) ? telling[random_below(sizeof telling)]
                           : (unsigned char)random_below(256);
}

static void test_mutated_and_cut_images_are_read_within_their_bounds(void **state)
{
    static const char text[] = HEAD ".visible .global .align 4 .b8 a[4][0x5] = {1, {2}}, b;\n"
                                    ".extern .global .b8 c[]; /* x */ .entry k() { ret; }\n";
    static struct bytes seeds[3];
    uint64_t told = 0;
    (void)state;
    seeds[0] = make_cubin(variables, MANAGED, 5);
    seeds[2] = make_fat();
    append(&seeds[1], text, sizeof text);
    append_text(&seeds[2], 90, ZSTD, "packed");
    append_entry(&seeds[2], ELF, 90, 0, seeds[0].at, seeds[0].length);
    append_entry(&seeds[2], PTX, 80, 0, text, sizeof text);

    for (unsigned i = 0; i < 3; i++) {
        uint64_t whole = least_of(&seeds[i]);
        assert_true(whole > 0);
        for (size_t length = 0; length < seeds[i].length; length++)
            assert_true(least_within(seeds[i].at, length) <= whole);
    }
    for (unsigned i = 0; i < 100000; i++) {
        struct bytes image = seeds[i % 3];
        for (uint32_t changes = 1 + random_below(6); changes > 0; changes--)
            image.at[random_below((uint32_t)image.length)] = random_byte();
        if (random_below(4) == 0)
            image.length = random_below((uint32_t)image.length);
        told += least_within(image.at, image.length) > 0;
    }
    /* Neither do all changes make an image unreadable, nor do all go unnoticed. */
    assert_in_range(told, 10000, 90000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_cubins_variables_count_and_its_code_does_not),
        cmocka_unit_test(test_managed_variables_of_a_cubin_do_not_count),
        cmocka_unit_test(test_cubins_of_another_kind_count_nothing),
        cmocka_unit_test(test_a_damaged_cubin_counts_nothing),
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_ptx_counts_what_it_declares_at_module_scope),
        cmocka_unit_test(test_ptx_begins_after_blanks_and_comments),
        cmocka_unit_test(test_a_fat_binary_counts_its_smallest_entry),
        cmocka_unit_test(test_text_in_a_fat_binary_ends_with_its_entry_or_a_nul),
        cmocka_unit_test(test_a_packed_entry_counts_as_its_twin_of_the_same_architecture),
        cmocka_unit_test(test_a_fat_binary_that_is_not_whole_counts_nothing),
        cmocka_unit_test(test_a_wrapper_leads_to_its_fat_binary),
        cmocka_unit_test(test_what_is_no_image_is_none_and_is_not_read_beyond_its_end),
        cmocka_unit_test(test_mutated_and_cut_images_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests_name("image_size", tests, make_room, NULL);
}
