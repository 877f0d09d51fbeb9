/* SPDX-License-Identifier: MIT */
#include "compat/slurm/nodes.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"

#define MODEL_MAX 256U

static int by_number(const void *a, const void *b)
{
    const json_int_t *first = a, *second = b;
    return (*first > *second) - (*first < *second);
}

char *slurm_indexes_text(const json_t *indexes)
{
    size_t count = json_array_size(indexes);
    _cleanup_free_ json_int_t *numbers = xcalloc(count + 1, sizeof(*numbers));
    struct buffer out = { 0 };
    for (size_t i = 0; i < count; i++)
        numbers[i] = json_integer_value(json_array_get(indexes, i));
    qsort(numbers, count, sizeof(*numbers), by_number);
    for (size_t i = 0; i < count;) {
        size_t last = i;
        while (last + 1 < count && numbers[last + 1] <= numbers[last] + 1)
            last++;
        buffer_printf(&out, "%s%lld", out.length > 0 ? "," : "", (long long)numbers[i]);
        if (numbers[last] > numbers[i])
            buffer_printf(&out, "-%lld", (long long)numbers[last]);
        i = last + 1;
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("N/A");
}

/* The GPUs of this node that jobs have. */
static void count_used(json_t *node, const json_t *gpus)
{
    size_t index = 0;
    json_t *gpu = NULL, *indexes = json_array();
    json_array_foreach(gpus, index, gpu) if (field_is(gpu, "node", field_text(node, "name")) &&
                                             json_array_size(json_object_get(gpu, "jobs")) > 0)(void)
        json_array_append(indexes, json_object_get(gpu, "index"));
    _cleanup_free_ char *text = slurm_indexes_text(indexes);
    (void)json_object_set_new(node, "gpus_used", json_integer((json_int_t)json_array_size(indexes)));
    (void)json_object_set_new(node, SLURM_NODE_GPUS, json_string(text));
    json_decref(indexes);
}

/* The words in the names of its GPU models; each is a feature for --constraint. */
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

/* In the form of models that Slurm detects itself: lower case, with _ for blanks. */
static void add_type(json_t *node, const json_t *gpus)
{
    const char *first = NULL;
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(gpus, index, gpu)
    {
        const char *model = field_text(gpu, "model");
        if (!field_is(gpu, "node", field_text(node, "name")))
            continue;
        if (model == NULL || (first != NULL && strcmp(first, model) != 0))
            return;
        first = model;
    }
    if (first == NULL)
        return;
    _cleanup_free_ char *type = text_escape(first, MODEL_MAX);
    for (char *p = type; *p != '\0'; p++)
        *p = *p == ' ' ? '_' : (char)tolower((unsigned char)*p);
    (void)json_object_set_new(node, SLURM_NODE_TYPE, json_string(type));
}

/* Adds the job's resources on this node: its CPUs and its memory on each of its nodes. */
static void add_job(json_t *node, const json_t *job)
{
    int64_t count = slurm_job_nodes(job);
    int64_t cpus = field_integer(node, SLURM_NODE_CPUS, 0) + (slurm_job_cpus(job) + count - 1) / count;
    int64_t all = field_integer(node, "cpus", 1);
    if (json_is_true(json_object_get(job, "exclusive"))) {
        (void)json_object_set_new(node, SLURM_NODE_WHOLE, json_true());
        cpus = all;
    }
    int64_t memory = field_integer(node, SLURM_NODE_MEMORY, 0) + field_integer(job, "memory", 0);
    (void)json_object_set_new(node, SLURM_NODE_CPUS, json_integer(cpus < all ? cpus : all));
    (void)json_object_set_new(node, SLURM_NODE_MEMORY, json_integer(memory));
}

/* Looks up each node of a job in a table by name, because there may be thousands of both. */
static int add_jobs(struct client *client, json_t *nodes, struct error *err)
{
    const struct slurm_query query = { .is_quick = true, .has_open_alone = true };
    _cleanup_json_ json_t *jobs = NULL, *by_name = json_object();
    size_t index = 0, place = 0;
    json_t *job = NULL, *node = NULL, *rank = NULL;
    int r = slurm_jobs_get(client, &query, &jobs, err);
    json_array_foreach(nodes, index, node)(void) json_object_set(by_name, field_text(node, "name"), node);
    json_array_foreach(jobs, index, job)
    {
        const json_t *ranks = json_object_get(job, "ranks");
        node = field_text(job, "node") != NULL ? json_object_get(by_name, field_text(job, "node")) : NULL;
        if (field_is(job, "state", "queued"))
            continue;
        if (json_array_size(ranks) == 0 && node != NULL)
            add_job(node, job);
        json_array_foreach(ranks, place, rank)
        {
            const char *name = field_text(rank, "node");
            if (name != NULL && (node = json_object_get(by_name, name)) != NULL)
                add_job(node, job);
        }
    }
    return r;
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
        add_type(node, json_object_get(gpus, "gpus"));
    }
    r = add_jobs(client, json_object_get(nodes, "nodes"), err);
    if (r == 0)
        *ret = json_incref(json_object_get(nodes, "nodes"));
    return r;
}

const char *slurm_node_state(const json_t *node)
{
    int64_t used = field_integer(node, "gpus_used", 0), gpus = field_integer(node, "gpus", 0);
    int64_t cpus_used = field_integer(node, SLURM_NODE_CPUS, 0), cpus = field_integer(node, "cpus", 1);
    bool is_idle = used == 0 && cpus_used == 0;
    if (field_is(node, "state", "up"))
        return is_idle                                                 ? "idle"
               : json_is_true(json_object_get(node, SLURM_NODE_WHOLE)) ? "allocated"
               : (gpus > 0 ? used < gpus : cpus_used < cpus)           ? "mixed"
                                                                       : "allocated";
    if (field_is(node, "state", "drained"))
        return is_idle ? "drained" : "draining";
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

/* The types of MIG instances are their profiles. */
static const char *type_of(const json_t *node)
{
    bool has_instances = json_object_size(json_object_get(node, "gpu_instances")) > 0;
    return has_instances ? NULL : field_text(node, SLURM_NODE_TYPE);
}

char *slurm_node_gres(const json_t *node)
{
    struct buffer out = { 0 };
    const char *profile;
    json_t *count;
    int64_t whole = field_integer(node, "gpus", 0);
    const char *type = type_of(node);
    json_object_foreach(json_object_get(node, "gpu_instances"), profile, count) whole -=
        json_integer_value(count);
    if (whole > 0)
        buffer_printf(&out, "gpu:%s%s%" PRId64, type != NULL ? type : "", type != NULL ? ":" : "", whole);
    json_object_foreach(json_object_get(node, "gpu_instances"), profile, count)
    {
        _cleanup_free_ char *shown = text_escape(profile, 64);
        buffer_printf(
            &out, "%sgpu:%s:%lld", out.length > 0 ? "," : "", shown, (long long)json_integer_value(count));
    }
    return out.length > 0 ? buffer_take(&out) : NULL;
}

char *slurm_node_gres_used(const json_t *node, bool has_indexes)
{
    int64_t used = field_integer(node, "gpus_used", 0);
    if (field_integer(node, "gpus", 0) == 0)
        return NULL;
    const char *type = type_of(node), *colon = type != NULL ? ":" : "";
    type = type != NULL ? type : "";
    return has_indexes ? xasprintf("gpu:%s%s%" PRId64 "(IDX:%s)", type, colon, used,
                             field_text(node, SLURM_NODE_GPUS))
                       : xasprintf("gpu:%s%s%" PRId64, type, colon, used);
}

char *slurm_node_tres(const json_t *node, bool is_used)
{
    int64_t cpus = field_integer(node, is_used ? SLURM_NODE_CPUS : "cpus", 0);
    int64_t gpus = field_integer(node, is_used ? "gpus_used" : "gpus", 0);
    int64_t bytes = field_integer(node, is_used ? SLURM_NODE_MEMORY : "memory_bytes", 0);
    _cleanup_free_ char *memory = slurm_memory_text(bytes);
    struct buffer out = { 0 };
    if (cpus > 0)
        buffer_printf(&out, "cpu=%" PRId64, cpus);
    if (strcmp(memory, "0") != 0)
        buffer_printf(&out, "%smem=%s", out.length > 0 ? "," : "", memory);
    if (!is_used)
        buffer_printf(&out, ",billing=%" PRId64, cpus);
    if (gpus > 0)
        buffer_printf(&out, "%sgres/gpu=%" PRId64, out.length > 0 ? "," : "", gpus);
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}
