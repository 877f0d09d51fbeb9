/* SPDX-License-Identifier: MIT */
/* GET /partitions: the named sets of nodes, with their users and limits. */
#include "controller/config/partitions.h"

#include "base/memory.h"
#include "controller/api/routes.h"
#include "controller/http/request.h"
#include "wire/json_text.h"

static json_t *write_seconds(int64_t ms)
{
    return ms > 0 ? json_integer((ms + 999) / 1000) : json_null();
}

/* Names of the known nodes in the partition. */
static json_t *write_nodes(const struct core *core, const char *name)
{
    const struct cluster *known = sched_known(core_sched(core));
    _cleanup_(request_clear) struct sched_request request = { .partition = xstrdup(name) };
    int32_t ignored = 0;
    json_t *array = json_array();
    request.partitions = cluster_partition_bits(known, name, &ignored);
    for (size_t i = 0; i < known->n_nodes; i++)
        if (cluster_node_admits(&known->nodes[i], &request))
            (void)json_array_append_new(array, json_text_string(known->nodes[i].name));
    return array;
}

static json_t *write_partition(const struct request *request, const struct core_partition *partition)
{
    json_t *object = json_object();
    (void)json_object_set_new(object, "name", json_string(partition->set.name));
    (void)json_object_set_new(object, "default", json_boolean(partition->is_default));
    (void)json_object_set_new(
        object, "nodes", write_nodes(request->serve->controller->core, partition->set.name));
    (void)json_object_set_new(object, "node_list", json_text_string(partition->nodes));
    (void)json_object_set_new(object, "users", json_text_string(partition->users));
    (void)json_object_set_new(object, "may_use", json_boolean(partition_admits(partition, request->who.uid)));
    (void)json_object_set_new(object, "max_time", write_seconds(partition->max_time_ms));
    (void)json_object_set_new(object, "default_time", write_seconds(partition->default_time_ms));
    (void)json_object_set_new(object, "priority", json_integer(partition->set.priority));
    (void)json_object_set_new(
        object, "max_gpus", partition->max_gpus > 0 ? json_integer(partition->max_gpus) : json_null());
    return object;
}

void handle_partitions(struct request *request)
{
    size_t count = 0;
    const struct core_partition *rows = core_partitions(request->serve->controller->core, &count);
    json_t *array = json_array(), *body = json_object();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(array, write_partition(request, &rows[i]));
    (void)json_object_set_new(body, "partitions", array);
    request_hold_json(request, 200, body);
}
