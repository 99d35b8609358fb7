// SPDX-License-Identifier: MIT
//
// NVML's devices: found by index, UUID or PCI address, named, and, where they are parts of larger
// ones, described.

#include "device.h"
#include "nvml.h"

#include <stdio.h>
#include <string.h>

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t result = nvml_enter();

    if (result)
        return result;
    if (!count)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    *count = nvml_config.devices;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

static nvmlReturn_t nvml_hand_out(int gpu, nvmlDevice_t *device, nvmlReturn_t otherwise)
{
    if (gpu < 0 || gpu >= (int)nvml_config.devices)
        return otherwise;
    *device = &nvml_devices[gpu];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();

    if (result)
        return result;
    if (!device || index >= nvml_config.devices)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    return nvml_leave(nvml_hand_out((int)index, device, NVML_ERROR_INVALID_ARGUMENT));
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();

    if (result)
        return result;
    if (!uuid || !device)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    /* Unlike CUDA_VISIBLE_DEVICES, NVML wants the whole of it. */
    int gpu = strlen(uuid) == strlen("GPU-00000000-0000-0000-0000-000000000000")
                  ? device_find_uuid(&nvml_config, uuid, (unsigned)strlen(uuid))
                  : -1;
    return nvml_leave(nvml_hand_out(gpu, device, NVML_ERROR_NOT_FOUND));
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_enter();

    if (result)
        return result;
    if (!bus || !device)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    return nvml_leave(
        nvml_hand_out(device_find_pci(nvml_config.devices, bus), device, NVML_ERROR_NOT_FOUND));
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    nvmlReturn_t result = nvml_enter_device(device);

    if (result)
        return result;
    if (!index)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    *index = device->gpu;
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    nvmlReturn_t result = nvml_enter_device(device);
    char text[DEVICE_UUID_BYTES];

    if (result)
        return result;
    device_format_uuid(device->gpu, nvml_config.is_mig, text);
    return nvml_leave(nvml_copy_text(uuid, length, text));
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    nvmlReturn_t result = nvml_enter_device(device);

    return result ? result : nvml_leave(nvml_copy_text(name, length, nvml_config.device_name));
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = nvml_enter_device(device);

    if (result)
        return result;
    if (!pci)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    *pci = (nvmlPciInfo_t){.bus = device_pci_bus(device->gpu),
                           .pciDeviceId = 0x233510deu,
                           .pciSubSystemId = 0x18be10deu};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus & 0xffu);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus & 0xffu);
    return nvml_leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *isMigDevice)
{
    nvmlReturn_t result = nvml_enter_device(device);

    if (result)
        return result;
    if (!isMigDevice)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    *isMigDevice = nvml_config.is_mig;
    return nvml_leave(NVML_SUCCESS);
}

/* A whole GPU has none of these. */
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    nvmlReturn_t result = nvml_enter_device(device);

    if (result)
        return result;
    if (!attributes)
        return nvml_leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!nvml_config.is_mig)
        return nvml_leave(NVML_ERROR_NOT_SUPPORTED);
    *attributes = (nvmlDeviceAttributes_t){.multiprocessorCount = 132,
                                           .gpuInstanceSliceCount = 1,
                                           .computeInstanceSliceCount = 1,
                                           .memorySizeMB = nvml_config.memory_bytes >> 20};
    return nvml_leave(NVML_SUCCESS);
}
