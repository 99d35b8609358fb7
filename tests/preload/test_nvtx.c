/* SPDX-License-Identifier: MIT
 *
 * Programs that use NVTX: their ranges are tags. Once with NVTX's real header, where the CUDA
 * toolkit at hand has it, and once with tables made by hand, of the numbers that NVTX documents.
 */
#include "preload.h"

#include "../cannot.h"

#include "nvtx_client.h"
#include "own_ledger.h"
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* ---- in the started program ---- */

/* Whether an allocation that is made now has this tag, "" for none. */
static bool is_tagged(const char *tag)
{
    CUdeviceptr address;
    if (cuMemAlloc_v2(&address, MIB(2)) != CUDA_SUCCESS)
        return false;
    struct gpulimit_ledger *ledger = own_ledger();
    const struct gpulimit_ledger_entry *entry = own_entry(ledger, address);
    bool is_so = entry && strcmp(gpulimit_reader_text(ledger, entry->tag), tag) == 0;
    if (!is_so && entry)
        fprintf(stderr, "it has \"%s\"\n", gpulimit_reader_text(ledger, entry->tag));
    gpulimit_reader_close(ledger);
    return cuMemFree_v2(address) == CUDA_SUCCESS && is_so;
}

static int play_real(void)
{
    expect(nvtx_client_push("epoch 3") == 0); /* before anything of CUDA */
    expect(role_begin() == 0 && is_tagged("epoch 3"));
    expect(nvtx_client_push("forward") == 1);
    expect(is_tagged("forward"));
    expect(nvtx_client_domain_push("attention") == 0); /* levels are each domain's own */
    expect(nvtx_client_domain_push("softmax") == 1);
    expect(is_tagged("softmax"));
    expect(nvtx_client_pop() == 1);
    expect(is_tagged("softmax"));
    expect(nvtx_client_domain_pop() == 1 && is_tagged("attention"));
    expect(nvtx_client_domain_pop() == 0 && is_tagged("epoch 3"));
    expect(nvtx_client_pop() == 0 && is_tagged(""));
    expect(nvtx_client_pop() < 0 && nvtx_client_domain_pop() < 0);
    return 0;
}

/* Without the variable NVTX looks for nobody. */
static int play_alone(void)
{
    expect(nvtx_client_push("epoch 3") == -2);
    expect(role_begin() == 0 && is_tagged(""));
    expect(nvtx_client_domain_push("attention") == -2 && is_tagged(""));
    return 0;
}

/* NVTX by hand: the places of two modules, as a copy of it in a program has them. */
static void (*core[16])(void);
static void (*core2[16])(void);
static void (**core_table[17])(void);
static void (**core2_table[17])(void);
static unsigned core_size = 16;

static int module_table(int module, void (****table)(void), unsigned *size)
{
    *table = module == 1 ? core_table : core2_table;
    *size = module == 1 ? core_size : 16;
    return module == 1 || module == 5;
}

static const void *tables(uint32_t number)
{
    static const struct {
        size_t bytes;
        int (*get)(int, void (****)(void), unsigned *);
    } callbacks = {sizeof callbacks, module_table};
    return number == 1 ? &callbacks : NULL;
}

static const void *no_tables(uint32_t number)
{
    (void)number;
    return NULL;
}

struct attributes {
    uint16_t version, size;
    uint32_t others[7];
    int32_t message_type;
    const void *message;
};
_Static_assert(offsetof(struct attributes, message_type) == 32, "as NVTX has it");

typedef int (*initialize)(const void *(*)(uint32_t));

static int attach(void)
{
    initialize start = (initialize)dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2");
    expect(start);
    for (unsigned i = 1; i < 16; i++) {
        core_table[i] = &core[i];
        core2_table[i] = &core2[i];
    }
    expect(start(no_tables) == 0);
    expect(start(tables) == 1);
    return 0;
}

/* A function of NVTX with no more and no other parameters than it takes. */
#define CALL(_type, _place, ...) (((_type)(_place))(__VA_ARGS__))

typedef int (*push_a)(const char *);
typedef int (*push_w)(const wchar_t *);
typedef int (*push_ex)(const struct attributes *);
typedef int (*pop)(void);
typedef const void *(*create)(const char *);
typedef const void *(*register_a)(const void *, const char *);
typedef const void *(*register_w)(const void *, const wchar_t *);
typedef int (*domain_push)(const void *, const struct attributes *);
typedef int (*domain_pop)(const void *);

static int play_core(void)
{
    const struct attributes ascii = {3, 48, {0}, 1, "ascii"}, wide = {3, 48, {0}, 2, L"w\u00efde"},
                            none = {3, 48, {0}, 0, "none"}, early = {3, 40, {0}, 1, "early"};
    expect(attach() == 0 && role_begin() == 0);
    expect(CALL(push_a, core[9], "epoch 3") == 0 && is_tagged("epoch 3"));
    expect(CALL(push_w, core[10], L"\u00e9poque \u20ac\U0001f600") == 1);
    expect(is_tagged("\u00e9poque \u20ac\U0001f600"));
    expect(CALL(push_ex, core[8], &ascii) == 2 && is_tagged("ascii"));
    expect(CALL(push_ex, core[8], &wide) == 3 && is_tagged("w\u00efde"));
    expect(CALL(push_ex, core[8], &none) == 4 && is_tagged("w\u00efde"));
    expect(CALL(push_ex, core[8], &early) == 5 && is_tagged("w\u00efde"));
    expect(CALL(push_ex, core[8], NULL) == 6 && is_tagged("w\u00efde"));
    expect(CALL(push_a, core[9], NULL) == 7 && is_tagged("w\u00efde"));
    for (int level = 7; level >= 1; level--)
        expect(CALL(pop, core[11], ) == level);
    expect(is_tagged("epoch 3"));
    expect(CALL(pop, core[11], ) == 0 && CALL(pop, core[11], ) == -1 && is_tagged(""));
    for (unsigned i = 1; i < 8; i++)
        expect(!core[i]); /* marks, and ranges from start to end */
    return 0;
}

static int play_domains(void)
{
    expect(attach() == 0 && role_begin() == 0);
    const void *one = CALL(create, core2[12], "one")
    , *other = CALL(create, core2[13], "other");
    expect(one && other && one != other);
    const void *name = CALL(register_a, core2[10], one, "registered");
    const void *wide = CALL(register_w, core2[11], one, L"wide");
    const struct attributes first = {3, 48, {0}, 3, name}, second = {3, 48, {0}, 3, wide},
                            unknown = {3, 48, {0}, 3, &first};
    expect(name && wide && name != wide);
    expect(CALL(domain_push, core2[4], one, &first) == 0 && is_tagged("registered"));
    expect(CALL(domain_push, core2[4], other, &second) == 0 && is_tagged("wide"));
    expect(CALL(domain_push, core2[4], other, &unknown) == 1 && is_tagged("wide"));
    expect(CALL(domain_push, core2[4], NULL, &first) == 0 && is_tagged("registered"));
    expect(CALL(pop, core[11], ) == 0 && is_tagged("wide")); /* the domain that has no handle */
    expect(CALL(domain_pop, core2[5], one) == 0 && is_tagged("wide"));
    expect(CALL(domain_pop, core2[5], other) == 1 && CALL(domain_pop, core2[5], other) == 0);
    expect(is_tagged("") && CALL(domain_pop, core2[5], other) == -1);
    return 0;
}

/* An NVTX with fewer functions than ours knows. */
static int play_smaller(void)
{
    core_size = 11;
    expect(attach() == 0 && role_begin() == 0);
    expect(core[9] && !core[11] && core2[5]);
    return 0;
}

/* More domains and strings than are kept. */
static int play_many(void)
{
    expect(attach() == 0 && role_begin() == 0);
    const void *last = NULL, *name = NULL;
    for (unsigned i = 0; i < 1000; i++) {
        last = CALL(create, core2[12], "many");
        expect(last);
    }
    for (unsigned i = 0; i < 5000; i++)
        name = CALL(register_a, core2[10], last, "many");
    expect(!name);
    const struct attributes attributes = {3, 48, {0}, 3, name}, ascii = {3, 48, {0}, 1, "ascii"};
    expect(CALL(domain_push, core2[4], last, &ascii) == 0 && is_tagged("ascii"));
    expect(CALL(domain_push, core2[4], last, &attributes) == 1 && is_tagged("ascii"));
    expect(CALL(domain_pop, core2[5], last) == 1 && CALL(domain_pop, core2[5], last) == 0);
    return 0;
}

static const struct role roles[] = {{"real", play_real},
                                    {"alone", play_alone},
                                    {"core", play_core},
                                    {"domains", play_domains},
                                    {"smaller", play_smaller},
                                    {"many", play_many},
                                    {0}};

/* ---- in the test ---- */

static struct program program;

#define INJECTION "NVTX_INJECTION64_PATH"

static void test_ranges_of_the_real_nvtx_are_tags(void **state)
{
    (void)state;
    if (!nvtx_client_is_real()) {
        CANNOT_BE_SEEN("CUDA's headers at hand come without nvtx3/nvToolsExt.h");
        return;
    }
    program_play(&program, "real", PROGRAM_LIST(INJECTION "=libgpulimit.so"));
    program_assert_ok(&program);
    program_play(&program, "real", PROGRAM_LIST(getenv("NVTX_BY_PATH")));
    program_assert_ok(&program);
}

static void test_nvtx_that_nobody_asked_to_look_finds_nobody(void **state)
{
    (void)state;
    if (!nvtx_client_is_real()) {
        CANNOT_BE_SEEN("CUDA's headers at hand come without nvtx3/nvToolsExt.h");
        return;
    }
    program_play(&program, "alone", PROGRAM_LIST(INJECTION));
    program_assert_ok(&program);
}

static void assert_plays(const char *role)
{
    program_play(&program, role, PROGRAM_LIST("GPU_LIMIT_MB=1024"));
    program_assert_ok(&program);
}

static void test_ranges_have_their_names_however_they_are_given(void **state)
{
    (void)state;
    assert_plays("core");
}

static void test_domains_have_levels_and_ends_of_their_own(void **state)
{
    (void)state;
    assert_plays("domains");
}

static void test_a_smaller_table_gets_what_it_has_room_for(void **state)
{
    (void)state;
    assert_plays("smaller");
}

static void test_there_is_an_end_to_domains_and_strings(void **state)
{
    (void)state;
    assert_plays("many");
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_of_the_real_nvtx_are_tags),
        cmocka_unit_test(test_nvtx_that_nobody_asked_to_look_finds_nobody),
        cmocka_unit_test(test_ranges_have_their_names_however_they_are_given),
        cmocka_unit_test(test_domains_have_levels_and_ends_of_their_own),
        cmocka_unit_test(test_a_smaller_table_gets_what_it_has_room_for),
        cmocka_unit_test(test_there_is_an_end_to_domains_and_strings),
    };
    if (count > 1)
        return role_play(roles, words[1]);
    return cmocka_run_group_tests_name("nvtx", tests, NULL, NULL);
}
