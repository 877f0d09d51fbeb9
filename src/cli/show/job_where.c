/* SPDX-License-Identifier: MIT */
/* Where a job runs: its nodes, and its GPUs there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/show/job_columns.h"

#define TEXT_MAX        1024
#define NAMED_NODES_MAX 4U // more are listed as "gpu[1-16]"

static bool is_on(const json_t *gpu, const char *node, const char *first)
{
    const char *own = field_text(gpu, "node");
    return strcmp(own != NULL ? own : first, node) == 0;
}

/* ":0-3" for those on `node`, or "". Runs of neighbours are joined without changing the order, which is the
 * job's own numbering of its GPUs. */
static char *name_indexes(const json_t *granted, const char *node, const char *first_node)
{
    struct buffer out = { 0 };
    size_t count = json_array_size(granted);
    const char *separator = ":";
    for (size_t i = 0; i < count;) {
        const json_t *gpu = json_array_get(granted, i);
        int64_t first = field_integer(gpu, "index", 0), last = first;
        size_t next = i + 1;
        if (!is_on(gpu, node, first_node)) {
            i++;
            continue;
        }
        while (next < count && is_on(json_array_get(granted, next), node, first_node) &&
               field_integer(json_array_get(granted, next), "index", 0) == last + 1) {
            last++;
            next++;
        }
        buffer_printf(&out, "%s%" PRId64, separator, first);
        if (last > first)
            buffer_printf(&out, last == first + 1 ? ",%" PRId64 : "-%" PRId64, last);
        separator = ",";
        i = next;
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

static void add_nodes(struct buffer *out, const struct strings *nodes, const char *indexes)
{
    if (nodes->count == 0)
        return;
    _cleanup_free_ char *list = hostlist_compress(nodes), *shown = text_escape(list, TEXT_MAX);
    buffer_printf(out, "%s%s%s", out->length > 0 ? " " : "", shown, indexes);
}

/* Consecutive nodes with the same GPUs are one list: "gpu[1-16]:0-7 gpu17:0-3". */
static char *name_many(const json_t *ranks, const json_t *granted, const char *first)
{
    struct buffer out = { 0 };
    _cleanup_strings_ struct strings alike = { 0 };
    _cleanup_free_ char *indexes = xstrdup("");
    for (size_t i = 0; i < json_array_size(ranks); i++) {
        const char *node = field_text(json_array_get(ranks, i), "node");
        if (node == NULL)
            continue;
        char *here = name_indexes(granted, node, first);
        if (strcmp(here, indexes) != 0) {
            add_nodes(&out, &alike, indexes);
            strings_clear(&alike);
        }
        free(indexes);
        indexes = here;
        strings_add(&alike, node);
    }
    add_nodes(&out, &alike, indexes);
    return buffer_take(&out);
}

char *job_where(const json_t *job)
{
    const char *first = field_text(job, "node");
    const json_t *ranks = json_object_get(job, "ranks"), *granted = json_object_get(job, "granted");
    size_t count = json_array_size(ranks);
    struct buffer out = { 0 };
    if (first == NULL)
        return xstrdup("-");
    if (count > NAMED_NODES_MAX)
        return name_many(ranks, granted, first);
    for (size_t i = 0; i < (count > 0 ? count : 1); i++) {
        const char *node = count > 0 ? field_text(json_array_get(ranks, i), "node") : first;
        if (node == NULL)
            continue;
        _cleanup_free_ char *shown = text_escape(node, TEXT_MAX),
                            *indexes = name_indexes(granted, node, first);
        buffer_printf(&out, "%s%s%s", i > 0 ? " " : "", shown, indexes);
    }
    return buffer_take(&out);
}
