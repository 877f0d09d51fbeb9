/* SPDX-License-Identifier: MIT */
/* Objects of an older mgpud lack the member. */
#include "cli/away_text.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/field.h"

char *away_since(const struct view *view, const json_t *object)
{
    char since[64];
    int64_t since_ms = time_parse(field_text(object, "unreachable_since"));
    if (since_ms <= 0)
        return NULL;
    time_format_short(since_ms, view->now_ms, view->times, since, sizeof(since));
    return xasprintf("since %s", since);
}

char *away_text(const struct view *view, const json_t *object)
{
    _cleanup_free_ char *since = away_since(view, object);
    if (since == NULL)
        return NULL;
    _cleanup_free_ char *node = field_shown(object, "node");
    return xasprintf("node %s unreachable %s", node, since);
}
