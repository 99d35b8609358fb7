/* SPDX-License-Identifier: MIT
 *
 * A libnvidia-ml.so.1 that knows one process, among more strangers than one guesses: for what the
 * simulated one cannot show. NVML_LIST, from the build, is the only list of processes it has,
 * NVML_HAS_INSTANCES says which records that one's are. From the environment:
 *   SMALL_NVML_PID, SMALL_NVML_BYTES   the process, and its figure ("unknown": the driver's word
 * for a figure that it does not tell) SMALL_NVML_LEDGER, _OFFSET, _MOVES a ledger whose counter at
 * that offset goes up by 1 MiB during each of the first so many calls
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL_EXPORT __attribute__((visibility("default")))

enum { SMALL_OK = 0, SMALL_INSUFFICIENT_SIZE = 7, SMALL_STRANGERS = 100 };

struct record {
    unsigned int pid;
    unsigned long long used_bytes;
#if NVML_HAS_INSTANCES
    unsigned int instances[2];
#endif
};

SMALL_EXPORT int nvmlInit_v2(void);
SMALL_EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
SMALL_EXPORT int NVML_LIST(void *device, unsigned int *count, struct record *records);

static uint64_t small_read(const char *name)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : 0;
}

static void small_move_ledger(void)
{
    static uint64_t moves;
    const char *path = getenv("SMALL_NVML_LEDGER");
    off_t offset = (off_t)small_read("SMALL_NVML_OFFSET");
    uint64_t bytes;
    int fd;

    if (!path || moves++ >= small_read("SMALL_NVML_MOVES")) {
        return;
    }
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || pread(fd, &bytes, sizeof(bytes), offset) != sizeof(bytes)) {
        abort();
    }
    bytes += 1 << 20;
    if (pwrite(fd, &bytes, sizeof(bytes), offset) != sizeof(bytes)) {
        abort();
    }
    close(fd);
}

int nvmlInit_v2(void)
{
    return SMALL_OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    static int only;

    (void)uuid;
    *device = &only;
    return SMALL_OK;
}

int NVML_LIST(void *device, unsigned int *count, struct record *records)
{
    const char *bytes = getenv("SMALL_NVML_BYTES");
    unsigned int room = *count;

    (void)device;
    *count = SMALL_STRANGERS + 1;
    if (room < *count) {
        return SMALL_INSUFFICIENT_SIZE;
    }
    small_move_ledger();
    memset(records, 0xff, *count * sizeof(*records));
    for (unsigned int i = 0; i < SMALL_STRANGERS; i++) {
        records[i].pid = 2000000000 + i;
    }
    records[SMALL_STRANGERS].pid = (unsigned int)small_read("SMALL_NVML_PID");
    if (bytes && strcmp(bytes, "unknown") != 0) {
        records[SMALL_STRANGERS].used_bytes = strtoull(bytes, NULL, 10);
    }
    return SMALL_OK;
}
