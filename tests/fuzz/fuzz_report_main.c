/* SPDX-License-Identifier: MIT
 *
 * Stands in for libFuzzer where there is none: damages a report many times, in the same ways on
 * every machine. With a number: so many times.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_RUNS = 20000 };

#define HOLDERS                                                                                    \
    "\"sites\": [{\"where\": \"train.py:88 forward\", \"bytes\": 60, \"count\": 2},"               \
    "{\"where\": \"model.py:31 load\", \"bytes\": 20, \"count\": 1}],"                             \
    "\"others\": {\"sites\": 4, \"bytes\": 10}, \"idle_bytes\": 7, \"overhead_bytes\": 3"

/* A report of a run that has the members of the report of a refusal too. */
static const char fuzz_report[] =
    "{\"schema\": \"gpulimit.report/1\", \"library_version\": \"0.1.0\", \"pid\": 4121,"
    "\"uid\": 0, \"state\": \"exited\", \"command\": [\"python\", \"train.py\"],"
    "\"count_mode\": \"process\", \"limit_text\": \"1024\","
    "\"start_time\": \"2026-11-30T13:17:01.000Z\", \"end_time\": null, \"devices\": [{"
    "\"gpu_index\": 0, \"gpu_uuid\": \"GPU-1\", \"limit_bytes\": 1073741824,"
    "\"peak\": {\"bytes\": 100, \"after_seconds\": 12.345, " HOLDERS "},"
    "\"end\": {\"bytes\": 100, " HOLDERS "},"
    "\"requested_bytes\": 1, \"committed_bytes\": 2, \"live_allocations\": 3,"
    "\"allocations_total\": 4, \"frees_total\": 1, \"largest_bytes\": 60, \"denials\": 2,"
    "\"denials_recovered\": 1, \"denied_bytes\": 99, \"driver_denials\": 1, \"marks\": [{"
    "\"name\": \"epoch 1\", \"after_seconds\": 1.5, \"charged_bytes\": 50, \"peak_bytes\": 60,"
    "\"requested_bytes\": 40, \"live_allocations\": 2, \"allocations_total\": 3, \"denials\": 1}],"
    "\"timeline\": {\"after_seconds\": 0, \"interval_seconds\": 0.5, \"samples\": ["
    "{\"highest_bytes\": 9, \"lowest_bytes\": 1, \"limit_bytes\": null, \"denials\": 1}]}}],"
    "\"time\": \"2026-11-30T13:17:01.000Z\", \"tag\": \"epoch 3\", \"cause\": \"limit\","
    "\"gpu\": {\"index\": 0, \"physical_total_bytes\": 8589934592, \"physical_free_bytes\": 1},"
    "\"request\": {\"bytes\": 536870912, \"api\": \"cuMemAlloc_v2\", \"where\": \"train.py:88\","
    "\"python_frames\": [{\"file\": \"train.py\", \"line\": 88, \"function\": \"forward\"}]},"
    "\"limit\": {\"bytes\": 1073741824}, \"usage\": {\"used_bytes\": 9, \"shortfall_bytes\": 4},"
    "\"live_top\": [{\"where\": \"model.py:31\", \"bytes\": 671088640, \"count\": 2}],"
    "\"others\": {\"sites\": 41, \"bytes\": 68157440, \"count\": 50},"
    "\"without_site\": {\"bytes\": 1048576, \"count\": 3}, \"idle_bytes\": 31457280,"
    "\"other_processes\": [{\"pid\": 77, \"used_bytes\": 1048576}],"
    "\"hints\": [{\"code\": \"raise\", \"text\": \"set GPU_LIMIT_MB\"}]}";

/* xorshift64: any will do that is the same everywhere. */
static uint64_t fuzz_get_random(void)
{
    static uint64_t number = UINT64_C(0x9e3779b97f4a7c15);

    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    return number;
}

/* Puts something else for a token that begins at or after `at`, so that most of it stays JSON. */
static size_t fuzz_replace(char *text, size_t size, size_t at)
{
    static const char *const telling[] = {"0",
                                          "-1",
                                          "1e999",
                                          "null",
                                          "true",
                                          "[]",
                                          "{}",
                                          "\"\"",
                                          "9223372036854775807",
                                          "[{}]",
                                          "18446744073709551616",
                                          "\"\\u001b\\u202e\"",
                                          "0.0001",
                                          "4294967296",
                                          "[null]"};
    const char *other = telling[fuzz_get_random() % (sizeof(telling) / sizeof(telling[0]))];
    size_t length;

    while (at < size && text[at] != ' ') {
        at++;
    }
    if (at + 1 >= size) {
        return size;
    }
    at++;
    length = text[at] == '"' ? 2 + strcspn(text + at + 1, "\"") : strcspn(text + at, ",}]");
    memmove(text + at + strlen(other), text + at + length, size - at - length + 1);
    memcpy(text + at, other, strlen(other));
    return size - length + strlen(other);
}

static size_t fuzz_damage(char *text, size_t size)
{
    uint64_t random = fuzz_get_random();
    size_t at = (size_t)((random >> 8) % size);

    if ((random & 7) == 0) {
        text[at] = (char)(random >> 3);
        return size;
    }
    return fuzz_replace(text, size, at);
}

int main(int argc, char **argv)
{
    unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 10) : FUZZ_RUNS;
    char text[2 * sizeof(fuzz_report)];

    LLVMFuzzerTestOneInput((const uint8_t *)fuzz_report, sizeof(fuzz_report) - 1);
    for (unsigned long run = 0; run < runs; run++) {
        size_t size = sizeof(fuzz_report) - 1;

        memcpy(text, fuzz_report, sizeof(fuzz_report));
        for (uint64_t count = 1 + fuzz_get_random() % 3; count > 0; count--) {
            size = fuzz_damage(text, size);
        }
        LLVMFuzzerTestOneInput((const uint8_t *)text, size);
    }
    printf("fuzz_report: %lu damaged reports, none of them harmful\n", runs);
    return EXIT_SUCCESS;
}
