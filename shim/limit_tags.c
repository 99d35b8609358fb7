/* SPDX-License-Identifier: MIT
 *
 * A name's number is found at the first allocation under it and kept where the name is; streams are
 * few, so that each thread remembers some.
 */
#include "limit_tags.h"

#include "limit_books.h"
#include "queue.h"
#include "tags.h"

#include "report/words.h"

#include <errno.h>
#include <string.h>

uint32_t limit_tag(void)
{
    struct tags_name *name = tags_current();
    if (!name)
        return 0;
    if (name->is_numbered && name->generation == books_generation())
        return name->number;
    int saved = errno;
    struct sites_text text = {{0}};
    memcpy(text.text, name->text, strnlen(name->text, sizeof text.text - 1));
    struct books *books = books_lock();
    name->number = sites_add_text_of(&books->sites, &text, &books->sites.tags, SITES_TAGS_MOST);
    name->generation = books->generation;
    name->is_numbered = true;
    books_unlock();
    errno = saved;
    return name->number;
}

/* The streams that this thread has used last, each in the place that its handle gives it. */
enum { LIMIT_STREAMS_KEPT = 4 };
static _Thread_local struct {
    uint64_t stream;
    uint32_t number, generation;
} limit_last_streams[LIMIT_STREAMS_KEPT] __attribute__((tls_model("initial-exec")));

static void limit_name_stream(uint64_t stream, struct sites_text *name)
{
    struct text text;
    text_init(&text);
    if (stream == QUEUE_LEGACY_STREAM) {
        text_add(&text, "legacy default stream");
    } else if (stream == QUEUE_THREAD_STREAM) {
        text_add(&text, "per-thread default stream");
    } else {
        text_add(&text, "stream 0x");
        text_add_hex(&text, stream);
    }
    memcpy(name->text, text.bytes, text.length);
}

uint32_t limit_stream(uint64_t stream)
{
    unsigned at = (stream >> 4 ^ stream >> 8 ^ stream) % LIMIT_STREAMS_KEPT;
    if (stream == 0)
        return 0;
    if (limit_last_streams[at].stream == stream &&
        limit_last_streams[at].generation == books_generation())
        return limit_last_streams[at].number;
    int saved = errno;
    struct sites_text text = {{0}};
    limit_name_stream(stream, &text);
    struct books *books = books_lock();
    uint32_t number =
        sites_add_text_of(&books->sites, &text, &books->sites.streams, SITES_STREAMS_MOST);
    limit_last_streams[at].stream = stream;
    limit_last_streams[at].number = number;
    limit_last_streams[at].generation = books->generation;
    books_unlock();
    errno = saved;
    return number;
}
