/* SPDX-License-Identifier: MIT
 *
 * The reading of neighbours.h: of each file, the header's identity and the records of devices.
 */
#include "neighbours.h"

#include "identity.h"

#include "gpulimit/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NEIGHBOURS_FILES = 64, /* opened at most */
    NEIGHBOURS_ENTRIES =
        4096,              /* of the folder, looked at at most: others may be many in /dev/shm */
    NEIGHBOURS_TRIES = 64, /* to read a record that is being written */
};

/* No process holds more than this of a card: a file that says so is damaged. */
#define NEIGHBOURS_MOST_BYTES (UINT64_C(1) << 50)

struct neighbours_search {
    struct neighbours *found;
    const char *uuid;
    int folder;
    unsigned entries, files;
    bool has_own;
    dev_t own_device;
    ino_t own_inode;
};

/* One entry of a folder, as getdents64 has it: opendir would call malloc. */
struct neighbours_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

/* Never inlined: of a fence that is, gcc with TSan warns. */
__attribute__((noinline)) static bool neighbours_read(int file, uint64_t offset, void *bytes,
                                                      size_t size)
{
    ssize_t got;
    do {
        got = pread(file, bytes, size, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    /* Pairs with the writer's release stores: what is read next is no older than this. */
    atomic_thread_fence(memory_order_acquire);
    return got == (ssize_t)size;
}

/* The magic vouches for all that was written before it, so it is read first. */
static bool neighbours_read_header(int file, struct gpulimit_header *header)
{
    char magic[sizeof header->magic];
    return neighbours_read(file, 0, magic, sizeof magic) &&
           memcmp(magic, GPULIMIT_REGION_MAGIC, sizeof magic) == 0 &&
           neighbours_read(file, 0, header, sizeof *header) &&
           header->version == GPULIMIT_REGION_VERSION &&
           header->header_bytes >= GPULIMIT_HEADER_BYTES_MIN &&
           header->header_bytes <= GPULIMIT_DEVICES_OFFSET &&
           header->devices_offset == GPULIMIT_DEVICES_OFFSET &&
           header->device_bytes == sizeof(struct gpulimit_device) && header->pid > 0;
}

/* Whether the writer holds the lock that it holds for life, in whichever pid namespace. *pid: its
 * number. */
static bool neighbours_holds_lock(int file, const struct gpulimit_header *header, int *pid)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    if (fcntl(file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return false;
    *pid = lock.l_pid > 0 ? lock.l_pid : header->pid;
    return true;
}

/* Of a writer without the lock: whether nobody can tell if it still holds something. Its process
 * runs; either that has closed all its descriptors, and with them the lock, or it has become
 * another program, as we may have. */
static bool neighbours_is_doubtful(const struct gpulimit_header *header)
{
    return header->pid != getpid() && identity_runs(header);
}

/* Reads a record that may be changing: its number is read on either side of what it stands for, as
 * nobody promises in which order one read copies. */
static bool neighbours_read_device(int file, unsigned number, struct gpulimit_device *device)
{
    uint64_t offset = GPULIMIT_DEVICES_OFFSET + number * sizeof *device;
    for (unsigned i = 0; i < NEIGHBOURS_TRIES; i++) {
        uint32_t before, after;
        if (!neighbours_read(file, offset, &before, sizeof before) ||
            !neighbours_read(file, offset, device, sizeof *device) ||
            !neighbours_read(file, offset, &after, sizeof after))
            return false;
        if (before % 2 == 0 && before == after)
            return true;
    }
    return false;
}

static bool neighbours_is_on(struct gpulimit_device *device, const char *uuid)
{
    device->gpu_uuid[sizeof device->gpu_uuid - 1] = '\0';
    return device->in_use == 1 && strlen(device->gpu_uuid) > 4 && strlen(uuid) > 4 &&
           strcmp(device->gpu_uuid + 4, uuid + 4) == 0;
}

/* What a process holds on the GPU. Returns false if that cannot be told. */
static bool neighbours_count(int file, const char *uuid, uint64_t *bytes)
{
    *bytes = 0;
    for (unsigned i = 0; i < GPULIMIT_DEVICES; i++) {
        struct gpulimit_device device;
        if (!neighbours_read_device(file, i, &device))
            return false;
        if (!neighbours_is_on(&device, uuid))
            continue;
        if (device.committed_bytes > NEIGHBOURS_MOST_BYTES ||
            device.overhead_bytes > NEIGHBOURS_MOST_BYTES)
            return false;
        *bytes += device.committed_bytes + device.overhead_bytes;
    }
    return *bytes <= NEIGHBOURS_MOST_BYTES;
}

/* The program's name without its folder, and as many of its arguments as there is room for. */
static void neighbours_copy_command(const struct gpulimit_header *header, char *command)
{
    size_t bytes = header->command_bytes, start = 0, length = 0;
    if (bytes > sizeof header->command)
        bytes = 0;
    while (bytes > 0 && header->command[bytes - 1] == '\0')
        bytes--;
    for (size_t i = 0; i < bytes && header->command[i] != '\0'; i++) {
        if (header->command[i] == '/')
            start = i + 1;
    }
    for (size_t i = start; i < bytes && length < NEIGHBOURS_COMMAND_BYTES - 1; i++) {
        char byte = header->command[i];
        if (byte == '\0')
            byte = ' ';
        else if ((unsigned char)byte < ' ' || byte == 0x7f)
            byte = '?';
        command[length++] = byte;
    }
    if (length == 0)
        command[length++] = '?';
    command[length] = '\0';
}

static void neighbours_leave_out(struct neighbours *found, uint64_t bytes)
{
    found->others++;
    found->others_bytes += bytes;
}

static void neighbours_add(struct neighbours *found, const struct neighbour *one)
{
    unsigned at = found->named_count;
    while (at > 0 && found->named[at - 1].bytes < one->bytes)
        at--;
    if (at == NEIGHBOURS_NAMED) {
        neighbours_leave_out(found, one->bytes);
        return;
    }
    if (found->named_count == NEIGHBOURS_NAMED)
        neighbours_leave_out(found, found->named[--found->named_count].bytes);
    memmove(&found->named[at + 1], &found->named[at], (found->named_count - at) * sizeof *one);
    found->named[at] = *one;
    found->named_count++;
}

/* Takes in what a file says. Returns false if it may be a live process's ledger and cannot be read.
 */
static bool neighbours_take_in(struct neighbours *found, int file, unsigned uid, const char *uuid)
{
    struct gpulimit_header header;
    struct neighbour one = {.uid = uid};
    if (!neighbours_read_header(file, &header))
        return false;
    if (header.ended_time_ns != 0)
        return true;
    if (!neighbours_holds_lock(file, &header, &one.pid))
        return !neighbours_is_doubtful(&header);
    if (!neighbours_count(file, uuid, &one.bytes))
        return false;
    neighbours_copy_command(&header, one.command);
    if (one.bytes > 0)
        neighbours_add(found, &one);
    return true;
}

static bool neighbours_is_own(const struct neighbours_search *search, const struct stat *status)
{
    return search->has_own && status->st_dev == search->own_device &&
           status->st_ino == search->own_inode;
}

static bool neighbours_look_at(struct neighbours_search *search, const char *name)
{
    struct stat status;
    if (strncmp(name, GPULIMIT_REGION_PREFIX, sizeof GPULIMIT_REGION_PREFIX - 1) != 0 ||
        fstatat(search->folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode) || neighbours_is_own(search, &status) ||
        (status.st_mode & 0777) == GPULIMIT_REGION_DEAD_MODE)
        return true;
    if (search->files == NEIGHBOURS_FILES)
        return false;
    search->files++;
    int file = openat(search->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT;
    bool is_read = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                   neighbours_take_in(search->found, file, status.st_uid, search->uuid);
    close(file);
    return is_read;
}

/* Looks at some entries of the folder. Returns how many bytes of them there were, 0 at its end. */
static long neighbours_look_at_some(struct neighbours_search *search)
{
    _Alignas(struct neighbours_entry) char some[1024];
    long bytes = syscall(SYS_getdents64, search->folder, some, sizeof some);
    for (long at = 0; at < bytes;) {
        const struct neighbours_entry *entry = (const void *)(some + at);
        if (!neighbours_look_at(search, entry->name))
            search->found->is_complete = false;
        search->entries++;
        at += entry->bytes;
    }
    return bytes;
}

static void neighbours_look(struct neighbours_search *search, const char *dir, const char *own_path)
{
    struct stat own;
    search->folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (search->folder < 0)
        return;
    if (own_path[0] != '\0' && stat(own_path, &own) == 0) {
        search->has_own = true;
        search->own_device = own.st_dev;
        search->own_inode = own.st_ino;
    }
    long bytes = 1;
    search->found->is_complete = true;
    while (bytes > 0 && search->entries < NEIGHBOURS_ENTRIES)
        bytes = neighbours_look_at_some(search);
    if (bytes != 0)
        search->found->is_complete = false;
    close(search->folder);
}

void neighbours_find(struct neighbours *found, const char *dir, const char *own_path,
                     const char *uuid)
{
    int saved = errno;
    struct neighbours_search search = {.found = found, .uuid = uuid};
    found->named_count = 0;
    found->others = found->others_bytes = 0;
    found->is_complete = false;
    neighbours_look(&search, dir, own_path);
    errno = saved;
}
