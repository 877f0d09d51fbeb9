/* SPDX-License-Identifier: MIT */
/*
 * GET /gpus and GET /nodes: the last reports of the nodes, with the jobs that the core has there, in slices.
 * A node added meanwhile comes last, and none is removed. The cursor of a page is the number of nodes before
 * it. A page ends after a complete node. With `top`, only the first GPUs of each state are listed, and the
 * others are counted.
 *
 * In a large cluster a list takes many parts of turns. Requests for the same complete list that have reached
 * the same position share each slice: the one whose turn it is in the fair queue makes it, and all of them
 * get it.
 */
#include "controller/api/gpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/routes.h"
#include "controller/core/entry.h"
#include "controller/core/park_proof.h"
#include "controller/http/fair_queue.h"
#include "controller/http/request.h"
#include "controller/http/slices.h"
#include "controller/nodes/registry.h"
#include "wire/json_append.h"
#include "wire/json_gpu.h"
#include "wire/json_node.h"
#include "wire/limits.h"

#define STATES_MAX 16U
#define NODES_FEW  64U // shorter lists are made in one part

/* Counts of GPUs in one state. */
struct tally {
    const char *state;
    size_t shown, omitted;
};

/* The position at which a slice begins. */
struct place {
    size_t at, rows, bytes;
};

struct listing {
    struct slices slices;
    struct serve *serve;
    struct request *request;
    struct listing *next; // of serve->listings
    struct place begin;   // start of the slice that is being filled
    bool is_partial;      // the slice is not complete
    unsigned n_given;     // turns in the fair queue that became unnecessary: others made the slices
    struct gpu_comparison *comparison;
    size_t at;        // index of the next node in the core
    size_t rows, max; // rows written, and their limit
    const char *node; // only this one; NULL: all
    size_t top;       // at most this many GPUs of each state; 0: all
    struct tally tallies[STATES_MAX];
    size_t n_tallies;
    bool is_sparse, is_gpus;
    void (*add)(void *arg, const struct core_node *node);
    void (*add_more)(void *arg, const struct registered_node *node); // NULL: nothing
};

static void begin_row(struct listing *listing)
{
    buffer_append_text(&listing->slices.bytes, listing->rows++ == 0 ? "\n" : ",\n");
}

static bool has_failed_test(const struct json_gpu_view *view)
{
    char text[GPU_COMPARISON_TEXT_SIZE];
    double part;
    return view->gpu->tests.count > 0 &&
           gpu_comparison_judge(view->comparison, view->gpu, text, &part) > GPU_PASSED;
}

/* GPUs that jobs leave unused, that external processes use, or that are slow or faulty are always shown. */
static bool is_notable(const struct core_gpu *gpu, const struct json_gpu_view *view)
{
    return view->is_wasted || core_gpu_is_used_externally(gpu) || has_failed_test(view);
}

/* False if enough GPUs of this state have been listed. */
static bool take_of_state(struct listing *listing, const char *state)
{
    size_t i = 0;
    while (i < listing->n_tallies && strcmp(listing->tallies[i].state, state) != 0)
        i++;
    if (i == STATES_MAX)
        return true;
    if (i == listing->n_tallies)
        listing->tallies[listing->n_tallies++] = (struct tally){ .state = state };
    struct tally *tally = &listing->tallies[i];
    if (tally->shown < listing->top)
        return ++tally->shown > 0;
    tally->omitted++;
    return false;
}

static void add_gpu(struct listing *listing, const struct core_node *node, const struct gpu_state *gpu,
    const struct core_gpu *known)
{
    const struct core *core = listing->serve->controller->core;
    const struct core_entry *entries[LIMIT_GPU_JOBS];
    const struct job *jobs[LIMIT_GPU_JOBS];
    int64_t idle_ms[LIMIT_GPU_JOBS];
    size_t count = core_gpu_jobs(core, node->name, gpu->index, entries, LIMIT_GPU_JOBS), n = 0, n_wasted = 0;
    for (; n < count && n < LIMIT_GPU_JOBS; n++) {
        jobs[n] = entries[n]->job;
        idle_ms[n] = core_gpu_idle_ms(entries[n], gpu->uuid);
        n_wasted += core_gpu_is_wasted(core, entries[n], gpu->uuid);
    }
    enum external_policy policy = core_gpu_policy(core, known);
    struct json_gpu_view view = {
        .node = node->name,
        .is_node_up = node->is_up,
        .unreachable_ms = node->is_unreachable ? node->last_contact_wall_ms : 0,
        .gpu = gpu,
        .jobs = jobs,
        .idle_ms = idle_ms,
        .is_wasted = n > 0 && n_wasted == n,
        .n_jobs = n,
        .pause = core_gpu_mark(node, known),
        .drain = node->mark,
        .fault = core_gpu_fault(node, known),
        .external_policy = external_policy_name(policy),
        .is_avoided = policy == EXTERNAL_AVOID && core_gpu_is_used_externally(known),
        .names = listing->serve->names,
        .is_sparse = listing->is_sparse,
        .comparison = listing->comparison,
    };
    if (listing->top != 0 && !is_notable(known, &view) && !take_of_state(listing, json_gpu_state(&view)))
        return;
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
    return gpu->is_gone == 0 || core_gpu_jobs(controller->core, node->name, gpu->index, NULL, 0) > 0;
}

static void add_gpus(void *arg, const struct core_node *node)
{
    struct listing *listing = arg;
    if (!gpus_is_shown(listing->serve->controller, node))
        return;
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        if (gpus_is_listed(listing->serve->controller, node, &gpus[i]))
            add_gpu(listing, node, &gpus[i], core_gpu_at(node, i));
}

/* Takes what the registry knows into the view, and lists it. */
static void append_node(struct listing *listing, struct json_node_view *view)
{
    const struct registered_node *node = registry_find(listing->serve->controller->registry, view->name);
    if (node != NULL) {
        view->address = node->address;
        view->is_remote = node->is_remote;
        view->since_ms = node->since_ms;
        view->joined_ms = node->joined_ms;
    }
    json_t *object = json_table_write(&json_node_table, view);
    begin_row(listing);
    json_append(&listing->slices.bytes, object);
    json_decref(object);
}

static void add_node(void *arg, const struct core_node *node)
{
    struct listing *listing = arg;
    if (!gpus_is_shown(listing->serve->controller, node))
        return;
    const struct core *core = listing->serve->controller->core;
    size_t n_drained = 0;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        n_drained += core_gpu_fault(node, core_gpu_at(node, i)) != NULL;
    struct json_node_view view = {
        .name = node->name,
        .is_up = node->is_up,
        .unreachable_ms = node->is_unreachable ? node->last_contact_wall_ms : 0,
        .hello = &node->hello,
        .drain = node->mark,
        .n_drained = n_drained,
        .n_stopping = node->n_orphaned,
        .parking = core_park_proof(core, node->name),
        .parking_state = park_proof_state_name(core_park_proof_state(core, node->name)),
    };
    append_node(listing, &view);
}

/* The node has joined, but has not connected since mgpud started. */
static void add_absent(void *arg, const struct registered_node *node)
{
    struct listing *listing = arg;
    const struct core *core = listing->serve->controller->core;
    const struct message_hello nothing = { 0 };
    if (core_node_named(core, node->name) != NULL)
        return;
    struct json_node_view view = { .name = node->name, .hello = &nothing };
    append_node(listing, &view);
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

static void append_omitted(struct listing *listing)
{
    struct buffer *bytes = &listing->slices.bytes;
    const char *before = "{";
    if (listing->top == 0) {
        buffer_append_text(bytes, ",\"omitted\":null");
        return;
    }
    buffer_append_text(bytes, ",\"omitted\":");
    for (size_t i = 0; i < listing->n_tallies; i++) {
        const struct tally *tally = &listing->tallies[i];
        if (tally->omitted == 0)
            continue;
        buffer_printf(bytes, "%s\"%s\":%zu", before, tally->state, tally->omitted);
        before = ",";
    }
    buffer_append_text(bytes, before[0] == '{' ? "{}" : "}");
}

static void end(struct listing *listing, const struct controller *controller)
{
    const struct core_node *next = core_node_at(controller->core, listing->at);
    if (next == NULL && listing->add_more != NULL)
        registry_each(controller->registry, add_absent_named, listing);
    buffer_append_text(&listing->slices.bytes, listing->rows == 0 ? "],\"next\":" : "\n],\"next\":");
    if (next != NULL)
        buffer_printf(&listing->slices.bytes, "%zu", listing->at);
    else
        buffer_append_text(&listing->slices.bytes, "null");
    if (listing->is_gpus)
        append_omitted(listing);
    buffer_append_text(&listing->slices.bytes, "}\n");
}

static bool is_whole(const struct listing *listing)
{
    return listing->node == NULL && listing->top == 0 && listing->max == INT64_MAX;
}

/* True if `other` is in the fair queue for the slice that `listing` has made. */
static bool is_waiting_for(const struct listing *other, const struct listing *listing)
{
    const struct request *request = other->request;
    return other != listing && is_whole(other) && other->is_gpus == listing->is_gpus &&
           other->is_sparse == listing->is_sparse && !other->is_partial && !other->slices.is_last &&
           (request->phase == REQUEST_OPEN || request->phase == REQUEST_STREAMING) &&
           request->on_drained == NULL && other->at == listing->begin.at &&
           other->rows == listing->begin.rows && other->slices.bytes.length == listing->begin.bytes;
}

/* The listing that is making the slice needed next, or `listing` itself. */
static struct listing *find_maker(struct listing *listing)
{
    struct listing *maker = is_whole(listing) && !listing->is_partial ? listing->serve->listings : NULL;
    while (maker != NULL && (!maker->is_partial || !is_whole(maker) || !is_waiting_for(listing, maker)))
        maker = maker->next;
    return maker != NULL ? maker : listing;
}

/* `served` has had its turn in the fair queue; the other listings have not. */
static void share_slice(const struct listing *maker, const struct listing *served)
{
    const struct buffer *bytes = &maker->slices.bytes;
    struct listing *next = NULL;
    for (struct listing *other = maker->serve->listings; other != NULL; other = next) {
        next = other->next;
        if (!is_waiting_for(other, maker))
            continue;
        buffer_append(
            &other->slices.bytes, bytes->bytes + maker->begin.bytes, bytes->length - maker->begin.bytes);
        other->at = maker->at;
        other->rows = maker->rows;
        other->slices.is_last = maker->slices.is_last;
        other->n_given += other != served;
        slices_send(other->request);
    }
}

static void fill_part(struct listing *listing)
{
    const struct controller *controller = listing->serve->controller;
    const struct core_node *node = NULL;
    int64_t until_us = clock_boot_us() + SLICE_US;
    if (!listing->is_partial)
        listing->begin = (struct place){ listing->at, listing->rows, listing->slices.bytes.length };
    while (listing->rows < listing->max && !slices_is_full(&listing->slices) && clock_boot_us() < until_us &&
           (node = core_node_at(controller->core, listing->at)) != NULL) {
        if (is_named(listing, node->name))
            listing->add(listing, node);
        listing->at++;
    }
    listing->slices.is_last =
        listing->rows >= listing->max || core_node_at(controller->core, listing->at) == NULL;
    if (listing->slices.is_last)
        end(listing, controller);
    listing->is_partial = !listing->slices.is_last && !slices_is_full(&listing->slices);
}

static void fill(struct request *request)
{
    struct listing *listing = request->work;
    if (listing->n_given > 0) {
        listing->n_given--;
        return;
    }
    struct listing *maker = find_maker(listing);
    fill_part(maker);
    if (maker->is_partial) {
        fair_queue_add(request, fill);
        return;
    }
    maker->n_given += maker != listing;
    if (is_whole(maker))
        share_slice(maker, listing);
    slices_send(maker->request);
}

static void add_to_comparison(void *arg, const struct core_node *node)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        gpu_comparison_add(arg, &gpus[i]);
}

struct gpu_comparison *gpus_comparison(const struct core *core)
{
    struct gpu_comparison *comparison = gpu_comparison_new();
    core_each_node(core, add_to_comparison, comparison);
    return comparison;
}

static void release_listing(struct request *request)
{
    struct listing *listing = request->work, **link = &request->serve->listings;
    while (*link != listing)
        link = &(*link)->next;
    *link = listing->next;
    slices_clear(request);
    gpu_comparison_free(listing->comparison);
    free(listing);
}

static int read_page(const struct request *request, struct listing *listing, struct error *err)
{
    const char *after = query_get(&request->query, "after"), *limit = query_get(&request->query, "limit");
    const char *top = listing->is_gpus ? query_get(&request->query, "top") : NULL;
    int64_t first = 0, most = INT64_MAX, each = 0;
    int r = query_get_flag(&request->query, "sparse", &listing->is_sparse, err);
    if (r == 0 && after != NULL)
        r = parse_integer(after, "after", 0, INT64_MAX, &first, err);
    if (r == 0 && limit != NULL)
        r = parse_integer(limit, "limit", 1, INT64_MAX, &most, err);
    if (r == 0 && top != NULL)
        r = parse_integer(top, "top", 1, LIMIT_LIST_TOP, &each, err);
    if (r == 0 && top != NULL && (after != NULL || limit != NULL))
        r = error_set(err, -EINVAL, "top cannot be combined with after or limit");
    listing->top = (size_t)each;
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
        .serve = request->serve,
        .request = request,
        .next = request->serve->listings,
        .add = add,
        .add_more = add_more,
    };
    request->serve->listings = listing;
    listing->is_gpus = add == add_gpus;
    request->work = listing;
    request->release = release_listing;
    if (read_page(request, listing, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    buffer_printf(&listing->slices.bytes, "{\"schema\":\"" SERVE_SCHEMA "\",\"%s\":[", key);
    listing->comparison = gpus_comparison(request->serve->controller->core);
    listing->slices.fill = fill;
    if (core_node_at(request->serve->controller->core, NODES_FEW) != NULL)
        fair_queue_add(request, fill); // where other requests may be waiting too
    else
        fill(request);
}

void handle_gpus(struct request *request)
{
    reply_listing(request, "gpus", add_gpus, NULL);
}

void handle_nodes(struct request *request)
{
    reply_listing(request, "nodes", add_node, add_absent);
}
