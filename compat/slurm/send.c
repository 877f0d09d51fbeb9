/* SPDX-License-Identifier: MIT */
#include "compat/slurm/send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/submit/slurm_moment.h"
#include "cli/term/time_text.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/partitions.h"
#include "compat/slurm/slurm.h"
#include "job/slurm.h"

#define LATE "Unable to allocate resources: %s"
#define BUSY "Requested nodes are busy"

int slurm_job_check_single(int argc, char **argv, int first, bool is_command, struct error *err)
{
    for (int i = first; i < argc && (i == first || is_command); i++) {
        if (strcmp(argv[i], ":") != 0 || (i > first && i + 1 == argc))
            continue;
        (void)error_set(err, -ENOTSUP, "there are no heterogeneous jobs: ':' cannot separate components");
        return error_hint(
            err, "submit the components as separate jobs, or as one job with the largest request");
    }
    return 0;
}

/* --- refusals in Slurm's words ---
 *
 * mgpud has one code for a request that no node can ever satisfy; which of Slurm's sentences that is depends
 * on the request and on the nodes of its partition, and is looked up in a table, in the order in which
 * slurmctld checks. */

/* The capacity with which the request is compared. */
struct capacity {
    const json_t *nodes; // all nodes of the API
    int64_t count, cpus; // of the nodes in the partition
    int64_t memory;      // bytes, of the largest node
};

typedef bool lack_fn(const struct slurm_job *job, const json_t *request, const struct capacity *capacity);

static bool has_node(const json_t *nodes, const char *name)
{
    size_t index = 0;
    json_t *node = NULL;
    json_array_foreach(nodes, index, node) if (field_is(node, "name", name)) return true;
    return false;
}

/* True if the request names a node that does not exist, or that is both listed and excluded. */
static bool names_no_node(const struct slurm_job *job, const json_t *request, const struct capacity *capacity)
{
    _cleanup_strings_ struct strings listed = { 0 }, excluded = { 0 };
    if (job->nodelist != NULL)
        (void)hostlist_expand(job->nodelist, &listed, NULL);
    if (job->exclude != NULL)
        (void)hostlist_expand(job->exclude, &excluded, NULL);
    for (size_t i = 0; i < listed.count; i++) {
        if (!has_node(capacity->nodes, listed.items[i]))
            return true;
        for (size_t k = 0; k < excluded.count; k++)
            if (strcmp(listed.items[i], excluded.items[k]) == 0)
                return true;
    }
    for (size_t i = 0; i < excluded.count; i++)
        if (!has_node(capacity->nodes, excluded.items[i]))
            return true;
    return false;
}

static bool lacks_cpus(const struct slurm_job *job, const json_t *request, const struct capacity *capacity)
{
    int64_t each = job->cpus_per_task > 0 ? job->cpus_per_task : 1;
    int64_t least = job->tasks > job->nodes ? job->tasks : job->nodes;
    return least * each > capacity->cpus;
}

static bool lacks_nodes(const struct slurm_job *job, const json_t *request, const struct capacity *capacity)
{
    return job->nodes > capacity->count;
}

static bool lacks_memory(const struct slurm_job *job, const json_t *request, const struct capacity *capacity)
{
    return capacity->memory > 0 && field_integer(request, "memory", 0) > capacity->memory;
}

/* True if no node has a feature of --constraint. With a GPU type before it, that type is missing. */
static bool lacks_feature(const struct slurm_job *job, const json_t *request, const struct capacity *capacity)
{
    size_t index = 0;
    json_t *node = NULL;
    if (job->constraint == NULL || job->gpu_model != NULL)
        return false;
    json_array_foreach(capacity->nodes, index, node)
    {
        const char *features = field_text(node, SLURM_NODE_FEATURES);
        if (features != NULL && slurm_list_has(features, job->constraint))
            return false;
    }
    return true;
}

static bool lacks_all(const struct slurm_job *job, const json_t *request, const struct capacity *capacity)
{
    return true;
}

static const struct {
    lack_fn *lacks;
    const char *first, *sentence; // first: a line printed before it, or NULL
} sentences[] = {
    { lacks_feature, NULL, "Invalid feature specification" },
    { names_no_node, NULL, "Invalid node name specified" },
    { lacks_cpus, NULL, "More processors requested than permitted" },
    { lacks_nodes, NULL, "Node count specification invalid" },
    { lacks_memory, "Memory specification can not be satisfied",
        "Requested node configuration is not available" },
    { lacks_all, NULL, "Requested node configuration is not available" },
};

/* mgpud accepts unknown nodes in a list of excluded ones; slurmctld does not. */
static int check_excluded(struct slurm_job *job, const json_t *request, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL;
    if (job->exclude == NULL)
        return 0;
    int r = slurm_nodes_get(&job->call.client, &nodes, err);
    const struct capacity capacity = { .nodes = nodes };
    if (r == 0 && names_no_node(job, request, &capacity))
        return error_set(err, -EINVAL, "Invalid node name specified");
    return r;
}

/* True if the node is in a partition that the request may use: a named one, or the default. */
static bool is_in(const json_t *partitions, const char *names, const char *node)
{
    size_t index = 0;
    json_t *partition = NULL;
    json_array_foreach(partitions, index, partition)
    {
        bool is_named = names != NULL ? slurm_list_has(names, field_text(partition, "name"))
                                      : json_is_true(json_object_get(partition, "default"));
        if (is_named && slurm_partition_has(partition, node))
            return true;
    }
    return json_array_size(partitions) == 0;
}

static void measure(struct capacity *capacity, const json_t *partitions, const json_t *request)
{
    size_t index = 0;
    json_t *node = NULL;
    json_array_foreach(capacity->nodes, index, node)
    {
        int64_t memory = field_integer(node, "memory_bytes", 0);
        if (!is_in(partitions, field_text(request, "partition"), field_text(node, "name")))
            continue;
        capacity->count++;
        capacity->cpus += field_integer(node, "cpus", 1);
        capacity->memory = memory > capacity->memory ? memory : capacity->memory;
    }
}

/* Replaces the message of a refused request by Slurm's, where Slurm has one; the message of mgpud becomes the
 * hint. Slurm's sentences that precede it are printed at once. */
static void explain_refusal(struct slurm_job *job, const json_t *request, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL;
    struct error refusal = *err;
    struct client *client = &job->call.client;
    if (slurm_partition_explain(client, job->program, request, err) || refusal.code != -EBADSLT ||
        slurm_nodes_get(client, &nodes, NULL) < 0 || slurm_partitions_get(client, &partitions, NULL) < 0)
        return;
    struct capacity capacity = { .nodes = nodes };
    measure(&capacity, partitions, request);
    size_t i = 0;
    while (!sentences[i].lacks(job, request, &capacity))
        i++;
    if (sentences[i].first != NULL)
        (void)fprintf(stderr, "%s: error: %s\n", job->program, sentences[i].first);
    (void)error_set(err, refusal.code, "%s", sentences[i].sentence);
    (void)error_hint(
        err, "%.160s%s%.90s", refusal.message, refusal.hint[0] != '\0' ? "; " : "", refusal.hint);
}

/* mgpud refuses a request that arrives when the time of --immediate is over. */
static bool is_too_late(const struct slurm_job *job, int code)
{
    return code == -EINVAL && job->immediate_s > 0 && clock_wall_ms() >= job->immediate_until_ms;
}

/* --- requests --- */

int slurm_job_send(
    struct slurm_job *job, json_t *command, const char *script, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL, *taken = command;
    unsigned left_out = 0;
    job->call.options = &job->submit;
    job->call.is_quiet = true;
    int r = submit_request(&job->call, taken, &request, &left_out, err);
    if (r == 0 && left_out > 0)
        (void)fprintf(stderr, "%s: warning: %u environment variable%s not UTF-8 text and omitted\n",
            job->program, left_out, left_out == 1 ? " is" : "s are");
    if (r == 0 && script != NULL && json_object_set_new(request, "script", json_string(script)) < 0)
        r = error_set(err, -EINVAL, "the script is not UTF-8 text");
    if (r == 0)
        r = check_excluded(job, request, err);
    if (r == 0)
        r = submit_send(&job->call, request, ret, err);
    if (is_too_late(job, r))
        r = error_mark(err, SLURM_BOTH, error_set(err, -EBUSY, LATE, BUSY));
    else if (r < 0 && request != NULL && slurm_away_words(err) == NULL)
        explain_refusal(job, request, err);
    job->call.options = NULL;
    return r;
}

void slurm_job_print_held(const struct slurm_job *job)
{
    if (job->submit.is_held && !job->is_quiet)
        (void)fprintf(stderr, "%s: Job is in held state, pending scheduler release\n", job->program);
}

void slurm_job_print_waiting(const struct slurm_job *job, int64_t id)
{
    if (job->is_quiet)
        return;
    if (strcmp(job->program, "salloc") == 0)
        (void)fprintf(stderr, "salloc: Pending job allocation %" PRId64 "\n", id);
    (void)fprintf(stderr, "%s: job %" PRId64 " queued and waiting for resources\n", job->program, id);
}

/* salloc waited for the job to be released, and srun for its nodes. */
static int refuse_late(const struct slurm_job *job, int64_t id, struct error *err)
{
    bool is_allocation = job->submit.is_held && strcmp(job->program, "salloc") == 0;
    if (is_allocation && !job->is_quiet)
        (void)fprintf(stderr, "salloc: Job allocation %" PRId64 " has been revoked.\n", id);
    return error_set(err, -EBUSY, LATE, is_allocation ? "Connection timed out" : BUSY);
}

int slurm_job_await_immediate(struct slurm_job *job, const json_t *made, struct error *err)
{
    int64_t id = field_integer(made, "id", 0);
    _cleanup_json_ json_t *now = NULL;
    _cleanup_free_ char *path = xasprintf(
        API_PATH "/jobs/%" PRId64 "/wait?states=starting,running,stopping,done,failed,cancelled", id);
    if (job->immediate_s <= 0)
        return 0;
    if (job->submit.is_held)
        slurm_job_print_waiting(job, id);
    job->call.client.timeout_ms = CLIENT_PATIENT_MS;
    job->call.client.answer_ms = CLIENT_WAITS_FOR_EVER;
    int r = client_get(&job->call.client, path, &now, err);
    if (r == -EINTR) {
        *err = (struct error){ 0 };
        return 0;
    }
    if (r < 0 || !field_is(now, "ended_by", "deadline"))
        return r;
    return refuse_late(job, id, err);
}

int slurm_exit_immediate(const struct error *err, int status)
{
    const char *text = getenv("SLURM_EXIT_IMMEDIATE");
    int64_t number = status;
    if (err->code == -EBUSY && text != NULL)
        (void)parse_integer(text, "SLURM_EXIT_IMMEDIATE", 0, 255, &number, NULL);
    return (int)number;
}

/* --- --test-only --- */

/* The partition that the job requests, or the default one; NULL: there are none. */
static const json_t *find_partition(const json_t *partitions, const char *name)
{
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(partitions, index, row)
    {
        bool is_default = json_is_true(json_object_get(row, "default"));
        if (name != NULL ? field_is(row, "name", name) : is_default)
            return row;
    }
    return NULL;
}

static int64_t free_gpus(const json_t *node)
{
    return field_integer(node, "gpus", 0) - field_integer(node, "gpus_used", 0);
}

/* Nodes that the job may get, those with most free GPUs first; mgpud decides at the start. */
static void choose_nodes(
    const json_t *nodes, const json_t *partition, int64_t count, int64_t gpus, struct strings *ret)
{
    while ((int64_t)ret->count < count) {
        size_t index = 0;
        const json_t *best = NULL;
        json_t *node = NULL;
        json_array_foreach(nodes, index, node)
        {
            const char *name = field_text(node, "name");
            bool is_there = partition == NULL || slurm_partition_has(partition, name);
            bool is_enough =
                json_is_true(json_object_get(node, "up")) && field_integer(node, "gpus", 0) >= gpus;
            if (is_there && is_enough && !strings_have(ret, name) &&
                (best == NULL || free_gpus(node) > free_gpus(best)))
                best = node;
        }
        if (best == NULL)
            return;
        strings_add(ret, field_text(best, "name"));
    }
}

/* "sbatch: Job 12 to start at ... using 1 processors on nodes box in partition gpu". */
static int print_test(struct slurm_job *job, const json_t *request, const json_t *why, struct error *err)
{
    _cleanup_json_ json_t *nodes = NULL, *partitions = NULL;
    _cleanup_strings_ struct strings names = { 0 };
    const char *eta = field_text(why, "eta"), *asked = field_text(request, "partition");
    int r = slurm_nodes_get(&job->call.client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(&job->call.client, &partitions, err);
    if (r == 0 && field_text(request, "nodelist") != NULL)
        r = hostlist_expand(field_text(request, "nodelist"), &names, err);
    if (r < 0)
        return r;
    const json_t *partition = find_partition(partitions, asked);
    int64_t gpus = (field_integer(request, "gpus", 0) + job->nodes - 1) / job->nodes;
    if (names.count == 0)
        choose_nodes(nodes, partition, job->nodes, gpus, &names);
    _cleanup_free_ char *on = hostlist_compress(&names);
    _cleanup_free_ char *start = slurm_time_text(eta != NULL ? time_parse(eta) : clock_wall_ms(), "now");
    const char *in = partition != NULL ? field_text(partition, "name")
                     : asked != NULL   ? asked
                                       : SLURM_PARTITION;
    int64_t cpus = job->tasks * (job->cpus_per_task > 0 ? job->cpus_per_task : 1);
    (void)fprintf(stderr,
        "%s: Job 0 to start at %s using %" PRId64 " processors on nodes %s in partition %s\n", job->program,
        start, cpus, on, in);
    return 0;
}

int slurm_job_test(struct slurm_job *job, json_t *command, const char *script, struct error *err)
{
    _cleanup_json_ json_t *request = NULL, *why = NULL, *taken = command;
    unsigned left_out = 0;
    job->call.options = &job->submit;
    job->submit.is_dry = job->call.client.is_quiet = true;
    int r = submit_request(&job->call, taken, &request, &left_out, err);
    job->call.options = NULL;
    if (r < 0)
        return r;
    if (script != NULL)
        (void)json_object_set_new(request, "script", json_string(script));
    r = client_call(&job->call.client, "POST", API_PATH "/jobs?dry_run=1", request, &why, err);
    if (r == 0)
        return print_test(job, request, why, err);
    explain_refusal(job, request, err);
    return error_mark(err, SLURM_BARE, error_wrap(err, "allocation failure"));
}
