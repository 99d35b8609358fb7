/* SPDX-License-Identifier: MIT
 *
 * A program that names its phases, with gpulimit/gpulimit.h and nothing linked, and then says what
 * it finds in its ledger. The same with the library and without, however it is built; test_tags.c
 * runs it.
 */
#include "gpulimit/gpulimit.h"

#include "own_ledger.h"
#include "program.h"

#include <cuda.h>
#include <stdio.h>

int main(void)
{
    CUdeviceptr address;
    gpulimit_tag_push("epoch 3");
    if (role_begin() != 0 || cuMemAlloc_v2(&address, 2 << 20) != CUDA_SUCCESS)
        return 1;
    gpulimit_mark("epoch 3 ends");
    gpulimit_tag_pop();
    struct gpulimit_ledger *ledger = own_ledger();
    const struct gpulimit_ledger_entry *entry = own_entry(ledger, address);
    printf("%s\n", entry ? gpulimit_reader_text(ledger, entry->tag) : "no ledger");
    gpulimit_reader_close(ledger);
    return 0;
}
