/* SPDX-License-Identifier: MIT
 *
 * What every unit test includes: cmocka, with the headers that it wants before itself.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB(_count) ((uint64_t)(_count) << 20)

#endif
