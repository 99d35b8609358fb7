/* SPDX-License-Identifier: MIT
 *
 * Hands a text to the validator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "schema_check.h"

void schema_check(const char *name, const char *text)
{
    char command[256];
    FILE *validate;

    /* stdout is where a test says how it goes */
    snprintf(command, sizeof(command),
             "\"$SCHEMA_VALIDATE\" --closed \"$SCHEMA_FOLDER/%s.schema.json\" - >&2", name);
    fflush(NULL); /* or the child says it again */
    validate = popen(command, "w");
    assert_non_null(validate);
    fwrite(text, 1, strlen(text), validate);
    if (pclose(validate) != 0) {
        fail_msg("this is not as %s.schema.json says:\n%.2000s", name, text);
    }
}
