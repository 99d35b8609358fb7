/* SPDX-License-Identifier: MIT
 *
 * The beginning and the end of the library's work in a process: the configuration is read, the
 * ledger opened, a fork watched for, devices are made known; at exit the ledger is told.
 *
 * Any thread. After a fork the child starts again, with its own ledger, at its first CUDA call.
 */
#ifndef SHIM_START_H
#define SHIM_START_H

#include "config.h"

/* The driver, as far as the layers that do not know CUDA need it. */
struct start_driver {
    /* Gives idle pool memory of a device back and tells limit_pool_answer what each pool holds
     * then. */
    void (*reclaim)(unsigned device);
    /* Looks what the driver itself says that it holds for the process on a device, and tells
     * limit_look_end. */
    void (*look)(unsigned device);
    /* What the card itself has free, for messages. Returns false if that cannot be asked here. */
    bool (*card_free)(unsigned device, uint64_t *free_bytes);
    /* In a fork's child: what was found out of the process is not about this one. */
    void (*forget)(void);
};

/* Starts the work, once, however often it is called. Returns false if the configuration is in
 * error; the line that says so has then been written. errno is left as it was. */
bool start_process(const struct start_driver *driver);

/* The configuration, and the driver that start_process was given. After start_process only. */
const struct config *start_config(void);
const struct start_driver *start_driver(void);

/* Whether start_add_device has been called for a device. */
bool start_knows_device(unsigned device);

/* The UUID of a known device. */
const char *start_uuid(unsigned device);

/* Finds the device of a UUID among the known ones; of the UUIDs, all but the first four characters
 * ("GPU-", "MIG-") is compared. */
bool start_find_device(const char *uuid, unsigned *device);

/* Makes a device known, with its limit from the configuration. device < BUDGET_DEVICES. */
void start_add_device(unsigned device, const char *uuid, uint64_t total_bytes);

#endif
