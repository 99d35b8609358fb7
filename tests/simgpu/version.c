// SPDX-License-Identifier: MIT
//
// The one object that differs between the variants of libcuda.so.1: the version they claim.

#include "driver.h"

const int driver_version = SIMGPU_DRIVER_VERSION;
