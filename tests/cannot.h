/* SPDX-License-Identifier: MIT
 *
 * For a case that this machine cannot show: it says why, and returns. cmocka's skip() writes "not
 * ok", which in TAP is a failure. tests/tally counts the line as a skip.
 */
#ifndef TESTS_CANNOT_H
#define TESTS_CANNOT_H

#define CANNOT_BE_SEEN(_why) print_message("# cannot be seen here: %s\n", _why)

#endif
