/* SPDX-License-Identifier: MIT
 *
 * The outcome of a check, for people and as JSON.
 */
#include "check_print.h"

#include <jansson.h>
#include <stdlib.h>

#include "memory.h"
#include "report_print.h"
#include "text.h"

static void check_print_failure(const struct check_request *request,
                                const struct check_result *result, const struct emit_style *style)
{
    struct report_holders holders = check_get_holders(result);
    struct text text;
    char *reason;

    check_explain(request, result, &text);
    reason = text_clean(text_string(&text), style->is_utf8);
    fprintf(style->out, "FAILED %s; %s\n", reason,
            result->row->is_count ? "at the peak it was held by" : "held by");
    free(reason);
    text_init(&text);
    report_add_holders(&text, "", &holders);
    report_print_text(&text, style);
}

void check_print(const struct check_request *request, const struct check *check,
                 const struct emit_style *style)
{
    for (size_t i = 0; i < check->count; i++) {
        if (!check->results[i].is_ok) {
            check_print_failure(request, &check->results[i], style);
        }
    }
    if (check->fails > 0) {
        fprintf(style->out, "%zu of %zu assertions failed\n", check->fails, check->count);
    } else {
        fprintf(style->out, "ok: %zu %s\n", check->count,
                check->count == 1 ? "assertion holds" : "assertions hold");
    }
}

static void check_set(json_t *object, const char *key, json_t *value)
{
    memory_check(json_object_set_new(object, key, value) == 0 ? object : NULL);
}

static json_t *check_list_sites(const struct check_result *result)
{
    struct report_holders holders = check_get_holders(result);
    json_t *sites = json_array();

    for (unsigned int i = 0; i < holders.site_count; i++) {
        char *where = text_to_utf8(holders.sites[i].where);
        json_t *site = json_object();

        check_set(site, "where", json_string(where));
        check_set(site, "bytes", json_integer((json_int_t)holders.sites[i].bytes));
        check_set(site, "count", json_integer((json_int_t)holders.sites[i].count));
        memory_check(json_array_append_new(sites, site) == 0 ? sites : NULL);
        free(where);
    }
    return sites;
}

void check_print_json(const struct check *check, FILE *out)
{
    json_t *object = json_object();
    json_t *assertions = json_array();

    for (size_t i = 0; i < check->count; i++) {
        const struct check_result *result = &check->results[i];
        json_t *assertion = json_object();

        check_set(assertion, "name", json_string(result->row->name));
        check_set(assertion, "is_ok", json_boolean(result->is_ok));
        check_set(assertion, "expected", json_integer((json_int_t)result->expected));
        check_set(assertion, "actual", json_integer((json_int_t)result->actual));
        check_set(assertion, "gpu_index", json_integer(result->device->gpu_index));
        check_set(assertion, "sites", check_list_sites(result));
        memory_check(json_array_append_new(assertions, assertion) == 0 ? assertions : NULL);
    }
    check_set(object, "schema", json_string("gpulimit.check/1"));
    check_set(object, "tool_version", json_string(GPULIMIT_VERSION));
    check_set(object, "is_ok", json_boolean(check->fails == 0));
    check_set(object, "assertions", assertions);
    json_dumpf(object, out, JSON_ENSURE_ASCII | JSON_INDENT(2));
    putc('\n', out);
    json_decref(object);
}
