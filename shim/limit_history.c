/* SPDX-License-Identifier: MIT
 *
 * The program's marks, see limit_history.h.
 */
#include "limit_history.h"

#include "limit_books.h"

#include <string.h>

void limit_mark(const char *text)
{
    struct sites_text name = {{0}};
    memcpy(name.text, text, strnlen(text, sizeof name.text - 1));
    struct books *books = books_lock();
    struct sites *sites = &books->sites;
    if (ledger_is_in_use(&books->ledger)) /* texts have numbers only once there is a region */
        ledger_mark(&books->ledger,
                    sites_add_text_of(sites, &name, &sites->marks, SITES_MARKS_MOST));
    books_unlock();
}
