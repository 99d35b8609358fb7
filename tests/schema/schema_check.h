/* SPDX-License-Identifier: MIT
 *
 * For cmocka tests of what prints JSON: is it as a schema of docs/schemas/ says?
 */
#ifndef GPULIMIT_TESTS_SCHEMA_CHECK_H
#define GPULIMIT_TESTS_SCHEMA_CHECK_H

/* Fails the test, and says why on stderr, unless `text` is a document, or several, of the schema
 * whose file is docs/schemas/NAME.schema.json, and has no keys that it does not describe. The
 * environment names the folder and the validator (schema_environment in tests/schema/meson.build).
 */
void schema_check(const char *name, const char *text);

#endif
