// SPDX-License-Identifier: MIT
//
// libnvidia-ml.so.1 as such: initialisation, its lock, version and error texts.

#include "nvml.h"

#include "state.h"

#include <pthread.h>
#include <string.h>

struct config nvml_config;
struct nvml_device nvml_devices[CONFIG_DEVICES_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users; /* inits less shutdowns, under the lock */

nvmlReturn_t nvml_leave(nvmlReturn_t result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t nvml_enter(void)
{
    pthread_mutex_lock(&lock);
    if (!users)
        return nvml_leave(NVML_ERROR_UNINITIALIZED);
    /* A forked child has lost the file and opens it anew. */
    return state_open() ? NVML_SUCCESS : nvml_leave(NVML_ERROR_UNKNOWN);
}

nvmlReturn_t nvml_enter_device(const struct nvml_device *device)
{
    nvmlReturn_t result = nvml_enter();

    if (result)
        return result;
    for (unsigned i = 0; i < nvml_config.devices; i++)
        if (device == &nvml_devices[i])
            return NVML_SUCCESS;
    return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t nvml_copy_text(char *output, unsigned length, const char *text)
{
    if (!output)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(output, text);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags; /* all of them are about what to do without GPUs */
    pthread_mutex_lock(&lock);
    if (!state_open())
        return nvml_leave(NVML_ERROR_UNKNOWN);
    if (users++ == 0) {
        nvml_config = config_read();
        for (unsigned i = 0; i < CONFIG_DEVICES_MAX; i++)
            nvml_devices[i].gpu = i;
    }
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    if (!users)
        return nvml_leave(NVML_ERROR_UNINITIALIZED);
    users--;
    return nvml_leave(NVML_SUCCESS);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Version mismatch. The argument version is not supported";
    case NVML_ERROR_UNKNOWN:
    default:
        return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    nvmlReturn_t result = nvml_enter();

    return result ? result : nvml_leave(nvml_copy_text(version, length, "580.159.04"));
}
