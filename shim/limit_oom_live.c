/* SPDX-License-Identifier: MIT
 *
 * The part of limit_oom.h about who holds what, and where that was asked for.
 */
#include "limit_oom_parts.h"

bool limit_oom_is_full(const struct writer *writer)
{
    return !writer_has_room(writer, LIMIT_OOM_TAIL + LIMIT_OOM_FRAME);
}

const char *limit_oom_where(const struct limit_live *live, uint32_t site)
{
    bool has_name = live->called && site > 0 && site <= SITES_MOST;
    return has_name && live->called[site].name[0] != '\0' ? live->called[site].name : NULL;
}

static void limit_oom_add_native(struct writer *writer, const struct sites_kept *kept,
                                 const struct gpulimit_frame *frame)
{
    const struct gpulimit_module *module = sites_kept_module(kept, frame->file);
    char build_id[2 * sizeof module->build_id + 1] = "";
    for (unsigned i = 0; module && i < 2 * module->build_id_bytes && i + 1 < sizeof build_id; i++)
        build_id[i] = "0123456789abcdef"[module->build_id[i / 2] >> (i % 2 ? 0 : 4) & 15];
    writer_open_object(writer, NULL);
    writer_add_text(writer, "module", module ? module->path : NULL);
    writer_add_text(writer, "build_id", build_id[0] != '\0' ? build_id : NULL);
    writer_add_address(writer, "offset", frame->place);
    writer_close_object(writer);
}

static void limit_oom_add_python(struct writer *writer, const struct sites_kept *kept,
                                 const struct gpulimit_frame *frame)
{
    writer_open_object(writer, NULL);
    writer_add_text(writer, "file", sites_kept_text(kept, frame->file));
    writer_add_number(writer, "line", (uint32_t)frame->place);
    writer_add_text(writer, "function", sites_kept_text(kept, (uint32_t)(frame->place >> 32)));
    writer_close_object(writer);
}

void limit_oom_add_frames(struct writer *writer, const struct sites_kept *kept, uint32_t site)
{
    const struct gpulimit_site *stack = sites_kept_site(kept, site);
    unsigned native = stack ? stack->native_count : 0;
    unsigned all = stack ? native + stack->python_count : 0;
    unsigned i = 0;
    writer_open_array(writer, "native_frames");
    for (; i < native && !limit_oom_is_full(writer); i++)
        limit_oom_add_native(writer, kept, &stack->frames[i]);
    writer_close_array(writer);
    writer_open_array(writer, "python_frames");
    for (i = native; i < all && !limit_oom_is_full(writer); i++)
        limit_oom_add_python(writer, kept, &stack->frames[i]);
    writer_close_array(writer);
}

static void limit_oom_add_site(struct writer *writer, const struct limit_live *live,
                               const struct limit_live_site *site, uint64_t mono_ns)
{
    uint64_t age_ns = mono_ns > site->oldest_mono_ns ? mono_ns - site->oldest_mono_ns : 0;
    writer_open_object(writer, NULL);
    writer_add_text(writer, "where", limit_oom_where(live, site->site));
    writer_add_number(writer, "bytes", site->bytes);
    writer_add_number(writer, "count", site->count);
    writer_add_number(writer, "oldest_age_seconds", age_ns / 1000000000u);
    limit_oom_add_frames(writer, live->kept, site->site);
    writer_close_object(writer);
}

void limit_oom_add_live(struct writer *writer, const struct limit_live *live, uint64_t mono_ns)
{
    uint64_t others = live->others, bytes = live->others_bytes, count = live->others_count;
    unsigned i = 0;
    writer_open_array(writer, "live_top");
    for (; i < live->top_count && writer_has_room(writer, LIMIT_OOM_TAIL + LIMIT_OOM_SITE); i++)
        limit_oom_add_site(writer, live, &live->top[i], mono_ns);
    writer_close_array(writer);
    for (; i < live->top_count; i++) {
        others++;
        bytes += live->top[i].bytes;
        count += live->top[i].count;
    }
    writer_open_object(writer, "others");
    writer_add_number(writer, "sites", others);
    writer_add_number(writer, "bytes", bytes);
    writer_add_number(writer, "count", count);
    writer_close_object(writer);
    writer_open_object(writer, "without_site");
    writer_add_number(writer, "bytes", live->without_site_bytes);
    writer_add_number(writer, "count", live->without_site_count);
    writer_close_object(writer);
    writer_add_number(writer, "idle_bytes", live->idle_bytes);
    writer_add_number(writer, "under_way_bytes", live->under_way_bytes);
    writer_add_number(writer, "overhead_bytes", live->overhead_bytes);
}
