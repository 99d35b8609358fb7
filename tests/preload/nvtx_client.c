/* SPDX-License-Identifier: MIT
 *
 * The real header, see nvtx_client.h. It brings its own way of looking for a tool.
 */
#include "nvtx_client.h"

#ifdef HAS_NVTX
#include <nvtx3/nvToolsExt.h>

bool nvtx_client_is_real(void)
{
    return true;
}

int nvtx_client_push(const char *name)
{
    return nvtxRangePushA(name);
}

int nvtx_client_pop(void)
{
    return nvtxRangePop();
}

static nvtxDomainHandle_t nvtx_client_domain(void)
{
    static nvtxDomainHandle_t domain;
    if (!domain)
        domain = nvtxDomainCreateA("client");
    return domain;
}

int nvtx_client_domain_push(const char *name)
{
    nvtxEventAttributes_t attributes = {
        .version = NVTX_VERSION,
        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
        .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
        .message = {.registered = nvtxDomainRegisterStringA(nvtx_client_domain(), name)}};
    return nvtxDomainRangePushEx(nvtx_client_domain(), &attributes);
}

int nvtx_client_domain_pop(void)
{
    return nvtxDomainRangePop(nvtx_client_domain());
}
#else
bool nvtx_client_is_real(void)
{
    return false;
}

int nvtx_client_push(const char *name)
{
    return name ? -2 : -1;
}

int nvtx_client_pop(void)
{
    return -2;
}

int nvtx_client_domain_push(const char *name)
{
    return name ? -2 : -1;
}

int nvtx_client_domain_pop(void)
{
    return -2;
}
#endif
