/* SPDX-License-Identifier: MIT
 *
 * The one write(2) of log.h.
 */
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const char *log_target = "stderr"; /* set once, before the first hook returns */

void log_set_target(const char *target)
{
    log_target = target;
}

void log_add_path(struct text *text, const char *path)
{
    for (const char *at = path; *at; at++) {
        if (at[0] == '%' && at[1] == 'p') {
            text_add_number(text, (uint64_t)getpid());
            at++;
        } else {
            text_add_byte(text, *at);
        }
    }
}

/* Opens the file of the target for this one text: no descriptor of ours stays open in the program.
 */
static int log_open(const char *path)
{
    struct text name;
    text_init(&name);
    log_add_path(&name, path);
    return open(text_string(&name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
}

void log_write_stderr(const struct text *text)
{
    int saved = errno;
    (void)!write(STDERR_FILENO, text->bytes, text->length);
    errno = saved;
}

void log_write(const struct text *text)
{
    int saved = errno;
    if (strcmp(log_target, "stderr") == 0) {
        (void)!write(STDERR_FILENO, text->bytes, text->length);
    } else if (strcmp(log_target, "none") != 0) {
        int file = log_open(log_target);
        if (file >= 0) {
            (void)!write(file, text->bytes, text->length);
            close(file);
        }
    }
    errno = saved;
}
