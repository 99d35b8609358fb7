// SPDX-License-Identifier: MIT
//
// Names of the simulated GPUs; see device.h. Holds no state.

#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void device_fill_uuid(unsigned gpu, unsigned char bytes[16])
{
    static const unsigned char pattern[16] = {0x51, 0x39, 0x0c, 0x91, 0x00, 0x00, 0x45, 0x00,
                                              0x8a, 0x51, 0x6d, 0x67, 0x70, 0x75, 0x00, 0x00};

    memcpy(bytes, pattern, sizeof pattern);
    /* The index comes early too, so that short beginnings of UUIDs tell the devices apart. */
    bytes[0] = (unsigned char)(bytes[0] + gpu);
    bytes[15] = (unsigned char)gpu;
}

void device_format_uuid(unsigned gpu, bool is_mig, char text[DEVICE_UUID_BYTES])
{
    unsigned char b[16];

    device_fill_uuid(gpu, b);
    snprintf(text, DEVICE_UUID_BYTES,
             "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             is_mig ? "MIG" : "GPU", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9],
             b[10], b[11], b[12], b[13], b[14], b[15]);
}

unsigned device_pci_bus(unsigned gpu)
{
    return gpu + 1;
}

int device_find_uuid(const struct config *config, const char *text, unsigned length)
{
    char uuid[DEVICE_UUID_BYTES];
    int found = -1;

    for (unsigned gpu = 0; gpu < config->devices; gpu++) {
        device_format_uuid(gpu, config->is_mig, uuid);
        if (length <= strlen(uuid) && strncasecmp(uuid, text, length) == 0) {
            if (found >= 0)
                return -1;
            found = (int)gpu;
        }
    }
    return found;
}

int device_find_pci(unsigned gpus, const char *text)
{
    unsigned domain = 0, bus, device, function = 0;

    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3 &&
        sscanf(text, "%x:%x.%x", &bus, &device, &function) < 2)
        return -1;
    for (unsigned gpu = 0; gpu < gpus; gpu++)
        if (device_pci_bus(gpu) == bus && device == 0 && function == 0)
            return (int)gpu;
    return -1;
}

static int device_find_name(const struct config *config, const char *name, unsigned length)
{
    if (length > 4 && strncasecmp(name, config->is_mig ? "MIG-" : "GPU-", 4) == 0)
        return device_find_uuid(config, name, length);
    if (!length || length > 3 || strspn(name, "0123456789") < length)
        return -1;
    unsigned long index = strtoul(name, NULL, 10);
    return index < config->devices ? (int)index : -1;
}

unsigned device_list_visible(const struct config *config, unsigned *visible)
{
    const char *at = getenv("CUDA_VISIBLE_DEVICES");
    unsigned count = 0;

    for (; !at && count < config->devices; count++)
        visible[count] = count;
    while (at && *at) {
        at += strspn(at, " ");
        unsigned length = (unsigned)strcspn(at, ", ");
        int gpu = device_find_name(config, at, length);

        if (gpu < 0)
            break;
        for (unsigned i = 0; i < count; i++)
            if (visible[i] == (unsigned)gpu)
                return 0;
        visible[count++] = (unsigned)gpu;
        at += length;
        at += strspn(at, " ,");
    }
    return count;
}
