/* SPDX-License-Identifier: MIT */
/* Objects of an older mgpud lack the member. */
#include "cli/show/node_unreachable_text.h"

#include <stdlib.h>

#include "base/json/field.h"
#include "base/memory.h"

char *away_since(const struct view *view, const json_t *object)
{
    char since[64];
    int64_t since_ms = time_parse(field_text(object, "unreachable_since"));
    if (since_ms <= 0)
        return NULL;
    time_format_short(since_ms, view->now_ms, view->times, since, sizeof(since));
    return xasprintf("since %s", since);
}

/* For a job, its first unreachable node. */
static char *describe(const struct view *view, const json_t *object, const char *verb)
{
    const json_t *ranks = json_object_get(object, "ranks"), *away = object;
    for (size_t rank = 0; rank < json_array_size(ranks) && !field_is_known(away, "unreachable_since"); rank++)
        away = json_array_get(ranks, rank);
    _cleanup_free_ char *since = away_since(view, away);
    if (since == NULL)
        return NULL;
    _cleanup_free_ char *node = field_shown(away, "node");
    return xasprintf("node %s%s unreachable %s", node, verb, since);
}

char *node_unreachable_text(const struct view *view, const json_t *object)
{
    return describe(view, object, "");
}

char *node_unreachable_sentence(const struct view *view, const json_t *object)
{
    return describe(view, object, " has been");
}
