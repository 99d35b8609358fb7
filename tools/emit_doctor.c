/* SPDX-License-Identifier: MIT
 *
 * Prints what the doctor found, for people.
 */
#include "emit_doctor.h"

#include <stdlib.h>

#include "text.h"

#define DOCTOR_YELLOW "\033[33m"
#define DOCTOR_RED    "\033[1;31m"
#define DOCTOR_PLAIN  "\033[0m"

static const struct {
    const char *word;
    const char *color;
} doctor_levels[] = {
    [DOCTOR_OK] = {"ok  ", NULL},
    [DOCTOR_WARN] = {"warn", DOCTOR_YELLOW},
    [DOCTOR_FAIL] = {"FAIL", DOCTOR_RED},
};

static void emit_finding(const struct doctor_finding *finding, const struct emit_style *style)
{
    const char *color = style->has_colors ? doctor_levels[finding->level].color : NULL;
    char *text = text_clean(finding->text, style->is_utf8);
    char *advice = finding->advice ? text_clean(finding->advice, style->is_utf8) : NULL;

    fprintf(style->out, "%s%s%s ", color ? color : "", doctor_levels[finding->level].word,
            color ? DOCTOR_PLAIN : "");
    if (finding->pid != 0) {
        fprintf(style->out, "%d ", finding->pid);
    }
    fprintf(style->out, "%s: %s\n", finding->check, text);
    if (advice) {
        fprintf(style->out, "     %s\n", advice);
    }
    free(text);
    free(advice);
}

void emit_doctor(const struct doctor *doctor, const struct emit_style *style)
{
    for (size_t i = 0; i < doctor->count; i++) {
        emit_finding(&doctor->findings[i], style);
    }
    if (doctor->fails > 0) {
        fprintf(style->out, "%zu %s wrong.\n", doctor->fails,
                doctor->fails == 1 ? "thing is" : "things are");
    } else if (doctor->warns > 0) {
        fprintf(style->out, "Nothing is wrong; %zu %s worth knowing.\n", doctor->warns,
                doctor->warns == 1 ? "thing is" : "things are");
    } else {
        fputs(doctor->is_idle ? "All is well, but nothing runs under the library now.\n"
                              : "All is well.\n",
              style->out);
    }
}
