/* SPDX-License-Identifier: MIT
 *
 * Stands in for libFuzzer where there is none:
 *
 *     fuzz_reader             damages a valid ledger many times, in the same ways on every machine
 *     fuzz_reader -n NUMBER   so many times
 *     fuzz_reader FILE...     replays files, such as libFuzzer leaves behind
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FUZZ_RUNS = 20000,
    FUZZ_SITES = 5,   /* number of the extent */
    FUZZ_DETAILS = 5, /* it, and those of the history */
};

/* xorshift64: any will do that is the same everywhere. */
static uint64_t fuzz_get_random(void)
{
    static uint64_t number = UINT64_C(0x9e3779b97f4a7c15);

    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    return number;
}

/* Half of the damage goes where the structure is: header, the first device, the first
 * records; some in the first call site, tally, timeline, event or mark. */
static size_t fuzz_choose_offset(const struct fixture *fixture)
{
    static const size_t beginnings[] = {0, offsetof(struct gpulimit_header, extents_used),
                                        GPULIMIT_DEVICES_OFFSET, GPULIMIT_EXTENTS_OFFSET};
    uint64_t random = fuzz_get_random();
    uint64_t record; /* whose offset is damaged itself perhaps */

    if ((random & 7) == 0) {
        record = fixture->header->extents[FUZZ_SITES + (random >> 4) % FUZZ_DETAILS].offset;
        if (record < fixture->size && record + 160 < fixture->size) {
            return record + (random >> 8) % 160;
        }
    }
    if (random & 1) {
        return beginnings[random >> 1 & 3] + (random >> 8) % 160;
    }
    return (random >> 8) % fixture->size;
}

static void fuzz_damage(struct fixture *fixture)
{
    static const uint32_t telling[] = {0,  1,  2,   15,         16,         17,
                                       64, 65, 255, 0x7fffffff, 0x80000000, 0xffffffff};
    size_t offset = fuzz_choose_offset(fixture);
    uint64_t random = fuzz_get_random();
    uint32_t word;

    switch (random & 3) {
    case 0: /* a bit */
        fixture->image[offset] ^= (unsigned char)(1u << (random >> 8 & 7));
        break;
    case 1: /* a byte */
        fixture->image[offset] = (unsigned char)(random >> 8);
        break;
    case 2: /* a word that is often a limit of something */
        word = telling[(random >> 8) % (sizeof(telling) / sizeof(telling[0]))];
        memcpy(fixture->image + offset / 4 * 4, &word, sizeof(word));
        break;
    default: /* a few records' worth of noise, or an end too early */
        if (random >> 8 & 7) {
            for (size_t i = 0; i < 128 && offset + i < fixture->size; i++) {
                fixture->image[offset + i] = (unsigned char)fuzz_get_random();
            }
        } else {
            fixture->size = offset;
        }
    }
}

/* Frames of every kind, in and out of frameworks. */
static void fuzz_make_sites(struct fixture *fixture)
{
    fixture_add_sites(fixture);
    fixture_put_module(fixture, "/usr/lib/libcuda.so.1");
    fixture_put_module(fixture, "/opt/liba.so");
    for (uint32_t site = 1; site <= 8; site++) {
        fixture_put_site(fixture);
        fixture_put_native(fixture, site, 1, 0x1000 + site);
        fixture_put_native(fixture, site, 2, 0x1000);
        fixture_put_python(fixture, site, "/usr/lib/site-packages/torch/nn.py", "forward", site);
        fixture_put_python(fixture, site, "train.py", "main", site / 2);
    }
}

/* Rings that have turned over, of two devices. */
static void fuzz_make_history(struct fixture *fixture)
{
    for (uint32_t site = 0; site <= 8; site++) {
        struct gpulimit_tally *tally =
            fixture_add_tally(fixture, site % 2, site, site * FIXTURE_MIB, 3 * site + 1, site);

        tally->peak_epoch = site % 3;
        tally->peak_bytes = 2 * site * FIXTURE_MIB;
        tally->peak_count = site;
    }
    fixture_add_timeline(fixture, 0, GPULIMIT_TIMELINE_SAMPLES, 1000000);
    for (uint32_t i = 0; i < FIXTURE_EVENTS + 5; i++) {
        fixture_add_event(fixture, (enum gpulimit_event_what)(1 + i % 4),
                          GPULIMIT_PLACE(1 + i % (GPULIMIT_KINDS - 1), i % 2, i % 2), FIXTURE_MIB,
                          59 - i);
    }
    for (uint32_t i = 0; i < FIXTURE_MARKS + 3; i++) {
        fixture_add_mark(fixture, i % 2, "epoch", i * FIXTURE_MIB, 59 - i);
    }
}

static void fuzz_make(struct fixture *fixture)
{
    struct gpulimit_entry *entries;

    fixture_open(fixture, 60);
    fixture_add_device(fixture, 0);
    fixture_add_device(fixture, 1);
    for (uint32_t extent = 0; extent < 2; extent++) {
        entries = fixture_add_entries(fixture, 32u << extent);
        for (uint32_t slot = 0; slot < 20; slot++) {
            fixture_fill_entry(fixture, &entries[slot],
                               GPULIMIT_PLACE(1 + slot % (GPULIMIT_KINDS - 1), extent, slot % 2),
                               slot, slot);
            entries[slot].site = slot % 10;
            entries[slot].tag = slot % 3; /* texts of the sites below */
            entries[slot].stream = slot % 4;
        }
    }
    fixture->devices[0].peak_epoch = 2;
    fixture->devices[1].peak_epoch = 1;
    fuzz_make_sites(fixture);
    fuzz_make_history(fixture);
}

static void fuzz_run(unsigned long runs)
{
    struct fixture valid;
    struct fixture damaged;

    fuzz_make(&valid);
    fixture_open(&damaged, 0);
    LLVMFuzzerTestOneInput(valid.image, valid.size);
    for (unsigned long run = 0; run < runs; run++) {
        memcpy(damaged.image, valid.image, valid.size);
        damaged.size = valid.size;
        for (uint64_t count = 1 + fuzz_get_random() % 4; count > 0 && damaged.size > 0; count--) {
            fuzz_damage(&damaged);
        }
        LLVMFuzzerTestOneInput(damaged.image, damaged.size);
    }
    fixture_close(&valid);
    fixture_close(&damaged);
    printf("fuzz_reader: %lu damaged ledgers, none of them harmful\n", runs);
}

static int fuzz_replay(const char *path)
{
    static unsigned char bytes[4 * FIXTURE_BYTES_MAX];
    FILE *file = fopen(path, "re");
    size_t size;

    if (!file) {
        perror(path);
        return EXIT_FAILURE;
    }
    size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    printf("fuzz_reader: %s: harmless\n", path);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int status = EXIT_SUCCESS;

    if (argc == 1) {
        fuzz_run(FUZZ_RUNS);
    } else if (argc == 3 && strcmp(argv[1], "-n") == 0) {
        fuzz_run(strtoul(argv[2], NULL, 10));
    } else {
        for (int i = 1; i < argc; i++) {
            status |= fuzz_replay(argv[i]);
        }
    }
    return status;
}
