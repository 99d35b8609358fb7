/* SPDX-License-Identifier: MIT
 *
 * A library with functions of its own that are called as the driver's are (stubs and other tools
 * have such): looked up by its handle, they are meant, and nothing else.
 */
int cuInit(unsigned int flags);
int cuMemAlloc_v2(unsigned long long *address, unsigned long bytes);
int cuOwnFunction(void);

int cuInit(unsigned int flags)
{
    (void)flags;
    return 4711;
}

int cuMemAlloc_v2(unsigned long long *address, unsigned long bytes)
{
    *address = bytes;
    return 4712;
}

int cuOwnFunction(void)
{
    return 4713;
}
