/* SPDX-License-Identifier: MIT */
/* The record of an ended job does not show whether its node is reachable, so the node is queried. */
#include "cli/follow/node_away.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/talk.h"
#include "cli/show/node_unreachable_text.h"

static json_t *get_node(struct call *call, const char *job, size_t rank)
{
    _cleanup_json_ json_t *answer = NULL, *nodes = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", job);
    if (client_get(&call->client, path, &answer, NULL) < 0)
        return NULL;
    const json_t *part = json_array_get(json_object_get(answer, "ranks"), rank);
    const char *name = field_text(part != NULL ? part : answer, "node");
    if (name == NULL)
        return NULL;
    _cleanup_buffer_ struct buffer query = { 0 };
    buffer_append_text(&query, API_PATH "/nodes?node=");
    http_append_encoded(&query, name);
    if (client_get(&call->client, buffer_text(&query), &nodes, NULL) < 0)
        return NULL;
    return json_incref(json_array_get(json_object_get(nodes, "nodes"), 0));
}

bool node_away_report(struct call *call, const char *job, size_t rank)
{
    _cleanup_json_ json_t *node = get_node(call, job, rank);
    struct view view = { .times = call->times, .now_ms = clock_wall_ms() };
    _cleanup_free_ char *since = away_since(&view, node);
    if (since == NULL)
        return false;
    _cleanup_free_ char *name = field_shown(node, "name");
    talk_line("node %s has been unreachable %s; waiting for it to return with the output of job %s", name,
        since, job);
    return true;
}
