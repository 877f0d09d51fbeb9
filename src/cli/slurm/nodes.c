/* SPDX-License-Identifier: MIT */
#include "cli/slurm/nodes.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/slurm/jobs.h"
#include "cli/term/field.h"

#define MODEL_MAX 256U

static void count_used(json_t *node, const json_t *gpus)
{
    size_t index = 0;
    json_t *gpu = NULL;
    int64_t used = 0;
    json_array_foreach(gpus, index, gpu) used +=
        field_is(gpu, "node", field_text(node, "name")) && json_array_size(json_object_get(gpu, "jobs")) > 0;
    (void)json_object_set_new(node, "gpus_used", json_integer(used));
}

/* The words of the names of its GPU models: each is a feature that --constraint takes. */
static void add_features(json_t *node, const json_t *gpus)
{
    _cleanup_buffer_ struct buffer list = { 0 };
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        const char *model = field_text(gpu, "model");
        if (model == NULL || !field_is(gpu, "node", field_text(node, "name")))
            continue;
        _cleanup_free_ char *copy = text_escape(model, MODEL_MAX);
        char *rest = copy;
        for (char *word = NULL; (word = strsep(&rest, " ,")) != NULL;) {
            for (char *p = word; *p != '\0'; p++)
                *p = (char)tolower((unsigned char)*p);
            if (word[0] != '\0' && !slurm_list_has(list.length > 0 ? buffer_text(&list) : "", word))
                buffer_printf(&list, "%s%s", list.length > 0 ? "," : "", word);
        }
    }
    if (list.length > 0)
        (void)json_object_set_new(node, SLURM_NODE_FEATURES, json_string(buffer_text(&list)));
}

int slurm_nodes_get(struct client *client, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL, *gpus = NULL;
    size_t index = 0;
    json_t *node = NULL;
    int r = client_get(client, API_PATH "/nodes", &nodes, err);
    if (r == 0)
        r = client_get(client, API_PATH "/gpus", &gpus, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(nodes, "nodes"), index, node)
    {
        count_used(node, json_object_get(gpus, "gpus"));
        add_features(node, json_object_get(gpus, "gpus"));
    }
    *ret = json_incref(json_object_get(nodes, "nodes"));
    return 0;
}

const char *slurm_node_state(const json_t *node)
{
    int64_t used = field_integer(node, "gpus_used", 0), gpus = field_integer(node, "gpus", 0);
    if (field_is(node, "state", "up"))
        return used == 0 ? "idle" : used < gpus ? "mixed" : "allocated";
    if (field_is(node, "state", "drained"))
        return used > 0 ? "draining" : "drained";
    return "down";
}

const char *slurm_node_state_compact(const json_t *node)
{
    static const char *const names[][2] = { { "mixed", "mix" }, { "allocated", "alloc" },
        { "draining", "drng" }, { "drained", "drain" } };
    const char *state = slurm_node_state(node);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(state, names[i][0]) == 0)
            return names[i][1];
    return state;
}
