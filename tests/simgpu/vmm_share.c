// SPDX-License-Identifier: MIT
//
// VMM memory in other processes. An exported descriptor is the writing end of a pipe of which the
// exporter keeps the reading end: a hang-up there says that the last descriptor is closed, in
// whatever process, and the kernel sees to that for killed ones too. What lies in the pipe, and is
// only ever peeked at, tells an importer in another process the size and kind of memory.

#include "vmm.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARE_MAGIC 0x6873757067706d73u

struct share_note {
    uint64_t magic;
    uint64_t bytes;
    uint32_t gpu;
    CUmemAllocationProp prop;
};

bool vmm_is_exported(const struct vmm_physical *physical)
{
    struct pollfd end = {.fd = physical->exported, .events = POLLIN};

    return physical->exported >= 0 && !(poll(&end, 1, 0) == 1 && (end.revents & POLLHUP));
}

/* Another path to a pipe we hold one end of. */
static int share_reopen(int descriptor, int flags)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, flags | O_CLOEXEC | O_NONBLOCK);
}

int vmm_export(struct vmm_handle *handle)
{
    struct vmm_physical *physical = handle->physical;
    struct share_note note = {.magic = SHARE_MAGIC,
                              .bytes = physical->bytes,
                              .gpu = physical->gpu,
                              .prop = physical->prop};
    int ends[2];

    if (physical->imported >= 0)
        return fcntl(physical->imported, F_DUPFD_CLOEXEC, 0);
    if (physical->exported >= 0)
        return share_reopen(physical->exported, O_WRONLY);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    if (write(ends[1], &note, sizeof note) != (ssize_t)sizeof note) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    physical->exported = ends[0];
    return ends[1];
}

static bool share_peek(int descriptor, struct share_note *note)
{
    int copy[2], source = share_reopen(descriptor, O_RDONLY);
    bool read_all = false;

    if (source < 0)
        return false;
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) == 0) {
        read_all = tee(source, copy[1], sizeof *note, SPLICE_F_NONBLOCK) == (ssize_t)sizeof *note &&
                   read(copy[0], note, sizeof *note) == (ssize_t)sizeof *note &&
                   note->magic == SHARE_MAGIC;
        close(copy[0]);
        close(copy[1]);
    }
    close(source);
    return read_all;
}

struct vmm_handle *vmm_import(int descriptor)
{
    struct vmm_physical *physical;
    struct stat theirs, ours;
    struct share_note note;

    if (fstat(descriptor, &theirs) != 0 || !S_ISFIFO(theirs.st_mode))
        return NULL;
    LIST_FOREACH(physical, &vmm_physicals, of_process)
    if (physical->exported >= 0 && fstat(physical->exported, &ours) == 0 &&
        ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev)
        return vmm_open(physical);
    if (!share_peek(descriptor, &note))
        return NULL;
    /* The exporter has paid. */
    struct vmm_handle *handle = vmm_create(&note.prop, note.gpu, note.bytes, false);
    if (handle)
        handle->physical->imported = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return handle;
}
