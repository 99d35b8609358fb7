/* SPDX-License-Identifier: MIT
 *
 * What programs do with NVTX, by its real header where the CUDA toolkit at hand has it.
 */
#ifndef TESTS_PRELOAD_NVTX_CLIENT_H
#define TESTS_PRELOAD_NVTX_CLIENT_H

#include <stdbool.h>

/* Whether there is a real header; the functions below do nothing otherwise. */
bool nvtx_client_is_real(void);

int nvtx_client_push(const char *name);
int nvtx_client_pop(void);

/* In a domain of its own, by a registered string. */
int nvtx_client_domain_push(const char *name);
int nvtx_client_domain_pop(void);

#endif
