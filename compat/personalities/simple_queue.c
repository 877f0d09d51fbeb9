/* SPDX-License-Identifier: MIT */
/*
 *   Jobs:
 *     F68FAFEC: running on node002:gpu0
 *     A23B4C5D: queued (waiting for 2 GPUs)
 *   Nodes:
 *     node001: 2 GPUs (1 free, 1 busy)
 */
#include "compat/personalities/simple_queue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/show/job_columns.h"

#define ENDED_MAX 10 // number of ended jobs shown

/* "node001:gpu0,gpu1;node002:gpu0" */
static char *where_it_is(const json_t *job)
{
    const json_t *granted = json_object_get(job, "granted");
    const char *home = field_text(job, "node"), *last = NULL;
    struct buffer out = { 0 };
    for (size_t i = 0; i < json_array_size(granted); i++) {
        const json_t *gpu = json_array_get(granted, i);
        const char *node = field_text(gpu, "node") != NULL ? field_text(gpu, "node") : home;
        bool is_same = last != NULL && text_equal(last, node);
        if (!is_same)
            buffer_printf(&out, "%s%s:", last != NULL ? ";" : "", node != NULL ? node : "?");
        buffer_printf(&out, "%sgpu%" PRId64, is_same ? "," : "", field_integer(gpu, "index", 0));
        last = node != NULL ? node : "?";
    }
    if (last == NULL)
        buffer_append_text(&out, home != NULL ? home : "?");
    return buffer_take(&out);
}

/* False if one of its nodes is not connected, so that its state is unknown. */
static bool is_connected(const json_t *job, const json_t *nodes)
{
    const json_t *granted = json_object_get(job, "granted");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        const char *name = field_text(node, "name");
        bool is_on = name != NULL && field_is(job, "node", name);
        for (size_t k = 0; name != NULL && k < json_array_size(granted); k++)
            is_on = is_on || field_is(json_array_get(granted, k), "node", name);
        if (is_on && json_is_false(json_object_get(node, "up")))
            return false;
    }
    return true;
}

static void print_job(const json_t *job, const json_t *nodes)
{
    _cleanup_free_ char *alias = field_shown(job, "alias"), *outcome = job_outcome(job);
    const char *state = job_state_shown(job);
    int64_t gpus = field_integer(job, "gpus", 0);
    (void)printf("  %s: %s", alias, state);
    if (outcome != NULL) {
        (void)printf(" (%s)\n", outcome);
    } else if (field_is(job, "state", "queued")) {
        (void)printf(" (waiting for %" PRId64 " GPU%s)\n", gpus, gpus == 1 ? "" : "s");
    } else {
        _cleanup_free_ char *where = where_it_is(job);
        _cleanup_free_ char *shown = text_escape(where, strlen(where));
        (void)printf(" on %s%s\n", shown, is_connected(job, nodes) ? "" : " (not connected)");
    }
}

struct tally {
    size_t free, busy, unusable;
};

static struct tally count_gpus(const json_t *gpus, const char *node)
{
    struct tally tally = { 0 };
    for (size_t i = 0; i < json_array_size(gpus); i++) {
        const json_t *gpu = json_array_get(gpus, i);
        if (!field_is(gpu, "node", node))
            continue;
        bool is_busy = json_array_size(json_object_get(gpu, "jobs")) > 0;
        bool is_free = !is_busy && field_is(gpu, "state", "free");
        tally.busy += is_busy;
        tally.free += is_free;
        tally.unusable += !is_busy && !is_free;
    }
    return tally;
}

static void print_node(const json_t *node, const json_t *gpus)
{
    _cleanup_free_ char *name = field_shown(node, "name");
    const char *state = field_text(node, "state");
    struct tally tally = count_gpus(gpus, field_text(node, "name"));
    size_t all = tally.free + tally.busy + tally.unusable;
    (void)printf("  %s: %zu GPU%s (", name, all, all == 1 ? "" : "s");
    if (state == NULL || strcmp(state, "up") == 0)
        (void)printf("%zu free, %zu busy", tally.free, tally.busy);
    else
        (void)printf("%s, %zu busy", state, tally.busy);
    if (tally.unusable > 0)
        (void)printf(", %zu out of service", tally.unusable);
    (void)puts(")");
}

/* The master's machine does not count as a node if it has no GPUs. */
static bool is_master_only(const json_t *node, size_t n_nodes)
{
    return n_nodes > 1 && json_is_false(json_object_get(node, "remote")) &&
           field_integer(node, "gpus", 0) == 0;
}

static bool has_ended(const json_t *job)
{
    return field_is(job, "state", "done") || field_is(job, "state", "failed") ||
           field_is(job, "state", "cancelled");
}

/* In the order of their numbers. Only the newest ended jobs are shown; otherwise they would fill the
 * screen. */
static void print_jobs(const json_t *jobs, const json_t *nodes)
{
    size_t index = 0, n_ended = 0, n_passed = 0;
    json_t *job = NULL;
    json_array_foreach(jobs, index, job) n_ended += has_ended(job);
    size_t n_hidden = n_ended > ENDED_MAX ? n_ended - ENDED_MAX : 0;
    (void)puts("Jobs:");
    if (n_hidden > 0)
        (void)printf("  (%zu that have ended earlier: mgpu history)\n", n_hidden);
    json_array_foreach(jobs, index, job)
    {
        if (!has_ended(job) || n_passed++ >= n_hidden)
            print_job(job, nodes);
    }
}

int simple_queue_run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL, *nodes = NULL, *gpus = NULL;
    int r = client_get(&call->client, API_PATH "/jobs", &jobs, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/nodes", &nodes, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/gpus", &gpus, err);
    if (r < 0)
        return r;
    const json_t *job_rows = json_object_get(jobs, "jobs"), *node_rows = json_object_get(nodes, "nodes");
    if (call->is_json) {
        _cleanup_json_ json_t *all = json_pack("{s:O, s:O}", "jobs", job_rows, "nodes", node_rows);
        show_json_page(all, stdout);
        return EXIT_OK;
    }
    print_jobs(job_rows, node_rows);
    (void)puts("Nodes:");
    for (size_t i = 0; i < json_array_size(node_rows); i++)
        if (!is_master_only(json_array_get(node_rows, i), json_array_size(node_rows)))
            print_node(json_array_get(node_rows, i), json_object_get(gpus, "gpus"));
    return EXIT_OK;
}
