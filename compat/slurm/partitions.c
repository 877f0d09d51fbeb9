/* SPDX-License-Identifier: MIT */
#include "compat/slurm/partitions.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "compat/slurm/fields.h"

int slurm_partitions_get(struct client *client, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    int r = client_get(client, API_PATH "/partitions", &answer, err);
    if (r < 0)
        return r;
    *ret = json_incref(json_object_get(answer, "partitions"));
    return 0;
}

bool slurm_partition_has(const json_t *partition, const char *node)
{
    size_t index = 0;
    const json_t *name = NULL;
    json_array_foreach(json_object_get(partition, "nodes"), index,
        name) if (strcmp(json_string_value(name), node) == 0) return true;
    return false;
}

char *slurm_partitions_of(const json_t *partitions, const char *node)
{
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *partition = NULL;
    json_array_foreach(partitions, index, partition) if (slurm_partition_has(partition, node))
        buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", field_text(partition, "name"));
    return buffer_take(&out);
}

char *slurm_partition_time(const json_t *partition, const char *key, const char *otherwise)
{
    int64_t seconds = field_integer(partition, key, 0);
    return seconds > 0 ? slurm_duration_text(seconds, false) : xstrdup(otherwise);
}

static const json_t *find(const json_t *partitions, const char *name)
{
    size_t index = 0;
    const json_t *partition = NULL;
    json_array_foreach(partitions, index,
        partition) if (name != NULL ? field_is(partition, "name", name)
                                    : json_is_true(json_object_get(partition, "default"))) return partition;
    return NULL;
}

/* Slurm's message about this partition and the request, or NULL. */
static const char *complaint(
    const char *program, const json_t *partition, const char *name, const json_t *request)
{
    const json_t *limit = json_object_get(request, "time_limit");
    int64_t most = field_integer(partition, "max_time", 0);
    if (partition == NULL) {
        _cleanup_free_ char *shown = text_escape(name, 60);
        (void)fprintf(stderr, "%s: error: invalid partition specified: %s\n", program, shown);
        return "Invalid partition name specified";
    }
    if (!json_is_true(json_object_get(partition, "may_use")))
        return "User's group not permitted to use this partition";
    if (most > 0 && json_integer_value(limit) > most)
        return "Requested time limit is invalid (missing or exceeds some limit)";
    return NULL;
}

bool slurm_partition_explain(
    struct client *client, const char *program, const json_t *request, struct error *err)
{
    _cleanup_json_ json_t *partitions = NULL;
    const char *names = json_string_value(json_object_get(request, "partition")), *text = NULL;
    if (slurm_partitions_get(client, &partitions, NULL) < 0)
        return false;
    if (names == NULL)
        text = complaint(program, find(partitions, NULL), "", request);
    _cleanup_free_ char *copy = names != NULL ? xstrdup(names) : NULL;
    char *rest = copy;
    for (char *name = NULL; text == NULL && (name = strsep(&rest, ",")) != NULL;)
        text = complaint(program, find(partitions, name), name, request);
    if (text != NULL)
        (void)error_set(err, err->code, "%s", text);
    return text != NULL;
}
