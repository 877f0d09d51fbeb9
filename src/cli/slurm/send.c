/* SPDX-License-Identifier: MIT */
#include "cli/slurm/send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/slurm/fields.h"
#include "cli/slurm/nodes.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"
#include "cli/submit/slurm_moment.h"
#include "cli/term/field.h"
#include "cli/term/time_text.h"
#include "job/slurm.h"

int slurm_job_check_single(int argc, char **argv, int first, bool is_command, struct error *err)
{
    for (int i = first; i < argc && (i == first || is_command); i++) {
        if (strcmp(argv[i], ":") != 0 || (i > first && i + 1 == argc))
            continue;
        (void)error_set(err, -ENOTSUP, "there are no heterogeneous jobs: ':' cannot separate components");
        return error_hint(
            err, "submit the components as jobs of their own, or as one job with the largest request");
    }
    return 0;
}

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
        r = submit_send(&job->call, request, ret, err);
    if (r < 0 && request != NULL && slurm_away_words(err) == NULL)
        slurm_partition_explain(&job->call.client, job->program, request, err);
    job->call.options = NULL;
    return r;
}

int slurm_job_await_immediate(struct slurm_job *job, const json_t *made, struct error *err)
{
    _cleanup_json_ json_t *now = NULL;
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/jobs/%" PRId64 "/wait?states=starting,running,stopping,done,failed,cancelled",
            field_integer(made, "id", 0));
    if (job->immediate_s <= 0)
        return 0;
    job->call.client.timeout_ms = CLIENT_PATIENT_MS;
    job->call.client.answer_ms = CLIENT_WAITS_FOR_EVER;
    int r = client_get(&job->call.client, path, &now, err);
    if (r == -EINTR) {
        *err = (struct error){ 0 };
        return 0;
    }
    if (r < 0 || !field_is(now, "ended_by", "deadline"))
        return r;
    return error_set(err, -EBUSY, "Unable to allocate resources: Requested nodes are busy");
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

/* The partition that the job asks for, or the one that jobs without a wish get; NULL: there are none. */
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

static bool is_chosen(const struct strings *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

/* Nodes that may get the job, those with most free GPUs first: mgpud decides at the start. */
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
            if (is_there && is_enough && !is_chosen(ret, name) &&
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
    const char *eta = field_text(why, "eta"), *wish = field_text(request, "partition");
    int r = slurm_nodes_get(&job->call.client, &nodes, err);
    if (r == 0)
        r = slurm_partitions_get(&job->call.client, &partitions, err);
    if (r == 0 && field_text(request, "nodelist") != NULL)
        r = hostlist_expand(field_text(request, "nodelist"), &names, err);
    if (r < 0)
        return r;
    const json_t *partition = find_partition(partitions, wish);
    int64_t gpus = (field_integer(request, "gpus", 0) + job->nodes - 1) / job->nodes;
    if (names.count == 0)
        choose_nodes(nodes, partition, job->nodes, gpus, &names);
    _cleanup_free_ char *on = hostlist_compress(&names);
    _cleanup_free_ char *start = slurm_time_text(eta != NULL ? time_parse(eta) : clock_wall_ms(), "now");
    const char *in = partition != NULL ? field_text(partition, "name")
                     : wish != NULL    ? wish
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
    int r = submit_request(&job->call, taken, &request, &left_out, err);
    job->call.options = NULL;
    if (r < 0)
        return r;
    if (script != NULL)
        (void)json_object_set_new(request, "script", json_string(script));
    r = client_call(&job->call.client, "POST", API_PATH "/jobs?dry_run=1", request, &why, err);
    if (r == 0)
        return print_test(job, request, why, err);
    slurm_partition_explain(&job->call.client, job->program, request, err);
    return error_wrap(err, "allocation failure");
}
