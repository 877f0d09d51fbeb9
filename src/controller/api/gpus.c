/* SPDX-License-Identifier: MIT */
/*
 * GET /gpus and GET /nodes: the last reports of the nodes, with the jobs that the core has there, in slices:
 * a node that is new meanwhile comes last, and none goes. The cursor of a page is the number of nodes before
 * it. A page ends after a whole node.
 */
#include "controller/api/gpus.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/nodes/registry.h"
#include "controller/http/request.h"
#include "controller/api/routes.h"
#include "controller/http/slices.h"
#include "wire/json_append.h"
#include "wire/json_gpu.h"
#include "wire/json_node.h"
#include "wire/limits.h"

struct listing {
    struct slices slices;
    struct serve *serve;
    struct gpu_twins *twins;
    size_t at;        // the next node of the core
    size_t rows, max; // written, and the limit
    const char *node; // only this one; NULL: all
    bool is_sparse;
    void (*add)(void *arg, const struct core_node *node);
    void (*add_more)(void *arg, const struct registered_node *node); // NULL: nothing
};

static void begin_row(struct listing *listing)
{
    buffer_append_text(&listing->slices.bytes, listing->rows++ == 0 ? "\n" : ",\n");
}

/* Takes ownership of the object. */
static void append(struct listing *listing, json_t *object)
{
    begin_row(listing);
    json_append(&listing->slices.bytes, object);
    json_decref(object);
}

static void add_gpu(struct listing *listing, const struct core_node *node, const struct gpu_state *gpu)
{
    const struct core *core = listing->serve->controller->core;
    uint64_t ids[LIMIT_GPU_JOBS];
    const struct job *jobs[LIMIT_GPU_JOBS];
    int64_t idle_ms[LIMIT_GPU_JOBS];
    size_t count = core_gpu_jobs(core, node->name, gpu->index, ids, LIMIT_GPU_JOBS), n = 0, n_wasted = 0;
    for (size_t i = 0; i < count && i < LIMIT_GPU_JOBS; i++) {
        jobs[n] = core_job(core, ids[i]);
        idle_ms[n] = core_gpu_idle_ms(core, ids[i], gpu->uuid);
        n_wasted += core_gpu_is_wasted(core, ids[i], gpu->uuid);
        n += jobs[n] != NULL;
    }
    struct json_gpu_view view = {
        .node = node->name,
        .is_node_up = node->is_up,
        .unreachable_ms = node->is_unreachable ? node->heard_wall_ms : 0,
        .gpu = gpu,
        .jobs = jobs,
        .idle_ms = idle_ms,
        .is_wasted = n > 0 && n_wasted == n,
        .n_jobs = n,
        .pause = gpu->uuid != NULL ? core_mark(core, node->name, gpu->uuid) : NULL,
        .drain = core_mark(core, node->name, NULL),
        .fault = gpu->uuid != NULL ? core_fault(core, node->name, gpu->uuid) : NULL,
        .external_policy = external_policy_name(core_gpu_policy(core, node->name, gpu->uuid, NULL)),
        .names = listing->serve->names,
        .is_sparse = listing->is_sparse,
        .twins = listing->twins,
    };
    begin_row(listing);
    json_gpu_append(&view, &listing->slices.bytes);
}

bool gpus_is_shown(const struct controller *controller, const struct core_node *node)
{
    return node->is_up || node->is_awaited || registry_find(controller->registry, node->name) != NULL;
}

bool gpus_is_listed(
    const struct controller *controller, const struct core_node *node, const struct gpu_state *gpu)
{
    uint64_t job;
    return gpu->is_gone == 0 || core_gpu_jobs(controller->core, node->name, gpu->index, &job, 1) > 0;
}

static void add_gpus(void *arg, const struct core_node *node)
{
    struct listing *listing = arg;
    if (!gpus_is_shown(listing->serve->controller, node))
        return;
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        if (gpus_is_listed(listing->serve->controller, node, &gpus[i]))
            add_gpu(listing, node, &gpus[i]);
}

static void add_place(const struct listing *listing, const char *name, json_t *object)
{
    const struct registered_node *node = registry_find(listing->serve->controller->registry, name);
    struct json_node_place place = { 0 };
    if (node != NULL)
        place = (struct json_node_place){ node->address, node->is_remote, node->since_ms, node->joined_ms };
    json_node_add_place(object, &place);
}

static void add_node(void *arg, const struct core_node *node)
{
    struct listing *listing = arg;
    if (!gpus_is_shown(listing->serve->controller, node))
        return;
    const struct core *core = listing->serve->controller->core;
    const struct cluster_change *drain = core_mark(core, node->name, NULL);
    const struct gpu_state *gpus = node->hello.gpus.items;
    size_t n_drained = 0;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        n_drained += gpus[i].uuid != NULL && core_fault(core, node->name, gpus[i].uuid) != NULL;
    struct json_node_view view = {
        .name = node->name,
        .is_up = node->is_up,
        .unreachable_ms = node->is_unreachable ? node->heard_wall_ms : 0,
        .hello = &node->hello,
        .drain = drain,
        .n_drained = n_drained,
        .n_stopping = node->n_orphaned,
    };
    json_t *object = json_node_write(&view);
    add_place(listing, node->name, object);
    append(listing, object);
}

/* It joined, and has not come since mgpud started. */
static void add_absent(void *arg, const struct registered_node *node)
{
    struct listing *listing = arg;
    const struct core *core = listing->serve->controller->core;
    const struct message_hello nothing = { 0 };
    if (core_node_named(core, node->name) != NULL)
        return;
    struct json_node_view view = {
        .name = node->name, .hello = &nothing, .drain = core_mark(core, node->name, NULL)
    };
    json_t *object = json_node_write(&view);
    add_place(listing, node->name, object);
    append(listing, object);
}

static bool is_named(const struct listing *listing, const char *name)
{
    return listing->node == NULL || strcmp(listing->node, name) == 0;
}

static void add_absent_named(void *arg, const struct registered_node *node)
{
    struct listing *listing = arg;
    if (is_named(listing, node->name))
        listing->add_more(listing, node);
}

static void end(struct listing *listing, const struct controller *controller)
{
    const struct core_node *next = core_node_at(controller->core, listing->at);
    if (next == NULL && listing->add_more != NULL)
        registry_each(controller->registry, add_absent_named, listing);
    buffer_append_text(&listing->slices.bytes, listing->rows == 0 ? "],\"next\":" : "\n],\"next\":");
    if (next != NULL)
        buffer_printf(&listing->slices.bytes, "%zu}\n", listing->at);
    else
        buffer_append_text(&listing->slices.bytes, "null}\n");
}

static void fill(struct request *request)
{
    struct listing *listing = request->work;
    const struct controller *controller = request->serve->controller;
    const struct core_node *node = NULL;
    while (listing->rows < listing->max && !slices_is_full(&listing->slices) &&
           (node = core_node_at(controller->core, listing->at)) != NULL) {
        if (is_named(listing, node->name))
            listing->add(listing, node);
        listing->at++;
    }
    listing->slices.is_last =
        listing->rows >= listing->max || core_node_at(controller->core, listing->at) == NULL;
    if (listing->slices.is_last)
        end(listing, controller);
    slices_send(request);
}

static void add_twins(void *arg, const struct core_node *node)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        gpu_twins_add(arg, &gpus[i]);
}

static void release_listing(struct request *request)
{
    slices_clear(request);
    gpu_twins_free(((struct listing *)request->work)->twins);
    free(request->work);
}

static int read_page(const struct request *request, struct listing *listing, struct error *err)
{
    const char *after = query_get(&request->query, "after"), *limit = query_get(&request->query, "limit");
    int64_t first = 0, most = INT64_MAX;
    int r = query_get_flag(&request->query, "sparse", &listing->is_sparse, err);
    if (r == 0 && after != NULL)
        r = parse_integer(after, "after", 0, INT64_MAX, &first, err);
    if (r == 0 && limit != NULL)
        r = parse_integer(limit, "limit", 1, INT64_MAX, &most, err);
    listing->at = (size_t)first;
    listing->max = (size_t)most;
    listing->node = query_get(&request->query, "node");
    return r;
}

static void reply_listing(struct request *request, const char *key,
    void (*add)(void *arg, const struct core_node *node),
    void (*add_more)(void *arg, const struct registered_node *node))
{
    struct listing *listing = xcalloc(1, sizeof(*listing));
    struct error err = { 0 };
    *listing = (struct listing){
        .serve = request->serve, .twins = gpu_twins_new(), .add = add, .add_more = add_more
    };
    request->work = listing;
    request->release = release_listing;
    if (read_page(request, listing, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    buffer_printf(&listing->slices.bytes, "{\"schema\":\"" SERVE_SCHEMA "\",\"%s\":[", key);
    core_each_node(request->serve->controller->core, add_twins, listing->twins);
    slices_begin(request, fill);
}

void handle_gpus(struct request *request)
{
    reply_listing(request, "gpus", add_gpus, NULL);
}

void handle_nodes(struct request *request)
{
    reply_listing(request, "nodes", add_node, add_absent);
}
