/* SPDX-License-Identifier: MIT */
/* The data for GET /metrics is collected once per answer, with its labels, because each GPU appears in a
 * dozen metrics. */
#include "controller/api/metrics_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "controller/api/gpus.h"
#include "controller/core/counts.h"
#include "controller/nodes/registry.h"
#include "controller/turns.h"
#include "sched/queue/fairshare.h"
#include "wire/limits.h"
#include "wire/gpu_twins.h"

#define OTHER_USERS "(other)" // no name of a user

/* --- what there is --- */

static void add_gpu(struct metrics_reader *reader, const struct core_node *node, const struct gpu_state *gpu)
{
    char index[16];
    (void)snprintf(index, sizeof(index), "%" PRIu32, gpu->index);
    _cleanup_free_ char *name = exposition_label("node", node->name);
    _cleanup_free_ char *uuid = exposition_label("uuid", gpu->uuid != NULL ? gpu->uuid : "");
    _cleanup_free_ char *model = exposition_label("model", gpu->model != NULL ? gpu->model : "");
    reader->gpus = xreallocarray(reader->gpus, reader->n_gpus + 1, sizeof(*reader->gpus));
    struct metrics_gpu *row = &reader->gpus[reader->n_gpus++];
    *row = (struct metrics_gpu){ .state = gpu };
    row->labels = xasprintf("%s,gpu=\"%s\",%s,%s", name, index, uuid, model);
    row->node = cluster_find(sched_cluster(core_sched(reader->controller->core)), node->name);
    if (row->node != NULL && gpu->uuid != NULL)
        row->gpu = cluster_find_gpu(row->node, gpu->uuid);
}

static void add_row(struct metrics_reader *reader, const char *name, const struct core_node *node)
{
    reader->nodes = xreallocarray(reader->nodes, reader->n_nodes + 1, sizeof(*reader->nodes));
    reader->nodes[reader->n_nodes++] = (struct metrics_node){ exposition_label("node", name), node };
}

static void add_node(void *arg, const struct core_node *node)
{
    struct metrics_reader *reader = arg;
    if (!gpus_is_shown(reader->controller, node))
        return;
    add_row(reader, node->name, node);
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; node->is_up && i < node->hello.gpus.count; i++)
        if (gpus_is_listed(reader->controller, node, &gpus[i]))
            add_gpu(reader, node, &gpus[i]);
}

static void add_absent(void *arg, const struct registered_node *node)
{
    struct metrics_reader *reader = arg;
    if (core_node_named(reader->controller->core, node->name) == NULL)
        add_row(reader, node->name, NULL);
}

void metrics_reader_init(struct metrics_reader *reader, struct serve *serve)
{
    *reader =
        (struct metrics_reader){ .serve = serve, .controller = serve->controller, .now_ms = clock_wall_ms() };
    core_each_node(reader->controller->core, add_node, reader);
    registry_each(reader->controller->registry, add_absent, reader);
}

void metrics_reader_clear(struct metrics_reader *reader)
{
    for (size_t i = 0; i < reader->n_gpus; i++)
        free(reader->gpus[i].labels);
    for (size_t i = 0; i < reader->n_nodes; i++)
        free(reader->nodes[i].labels);
    free(reader->gpus);
    free(reader->nodes);
    buffer_clear(&reader->out.text);
}

/* --- samples --- */

void metrics_write_one(struct metrics_reader *reader, const struct metric *metric)
{
    exposition_sample(&reader->out, metric, NULL, metric->read(reader->controller));
}

void metrics_write_gpus(struct metrics_reader *reader, const struct metric *metric)
{
    for (size_t i = 0; i < reader->n_gpus; i++) {
        double value;
        if (metric->read_gpu(reader->gpus[i].state, &value))
            exposition_sample(&reader->out, metric, reader->gpus[i].labels, value);
    }
}

void metrics_write_ecc(struct metrics_reader *reader, const struct metric *metric)
{
    for (size_t i = 0; i < reader->n_gpus; i++) {
        const struct metrics_gpu *row = &reader->gpus[i];
        if ((row->state->valid & GPU_ECC) == 0 || row->state->is_lost != 0)
            continue;
        _cleanup_free_ char *corrected = xasprintf("%s,kind=\"corrected\"", row->labels);
        _cleanup_free_ char *uncorrected = xasprintf("%s,kind=\"uncorrected\"", row->labels);
        exposition_sample(&reader->out, metric, corrected, (double)row->state->ecc_corrected);
        exposition_sample(&reader->out, metric, uncorrected, (double)row->state->ecc_uncorrected);
    }
}

static struct gpu_twins *find_twins(const struct metrics_reader *reader)
{
    struct gpu_twins *twins = gpu_twins_new();
    for (size_t i = 0; i < reader->n_gpus; i++)
        gpu_twins_add(twins, reader->gpus[i].state);
    return twins;
}

void metrics_write_tests(struct metrics_reader *reader, const struct metric *metric)
{
    char text[GPU_TWINS_TEXT_SIZE];
    double part;
    struct gpu_twins *twins = find_twins(reader);
    for (size_t i = 0; i < reader->n_gpus; i++) {
        enum gpu_test_verdict verdict = gpu_twins_judge(twins, reader->gpus[i].state, text, &part);
        if (verdict != GPU_UNTESTED)
            exposition_sample(&reader->out, metric, reader->gpus[i].labels, verdict == GPU_PASSED);
    }
    gpu_twins_free(twins);
}

void metrics_write_speeds(struct metrics_reader *reader, const struct metric *metric)
{
    char text[GPU_TWINS_TEXT_SIZE];
    double part;
    struct gpu_twins *twins = find_twins(reader);
    for (size_t i = 0; i < reader->n_gpus; i++) {
        enum gpu_test_verdict verdict = gpu_twins_judge(twins, reader->gpus[i].state, text, &part);
        if (verdict == GPU_PASSED || verdict == GPU_SLOW)
            exposition_sample(&reader->out, metric, reader->gpus[i].labels, part);
    }
    gpu_twins_free(twins);
}

void metrics_write_open(struct metrics_reader *reader, const struct metric *metric)
{
    for (size_t i = 0; i < reader->n_gpus; i++) {
        const struct metrics_gpu *row = &reader->gpus[i];
        bool is_open = row->gpu != NULL && cluster_gpu_is_open(row->node, row->gpu);
        exposition_sample(&reader->out, metric, row->labels, is_open);
    }
}

/* Of a shared GPU the larger of its booked time and memory. */
static double allocated(const struct cluster_gpu *gpu)
{
    if (gpu == NULL || gpu->is_exclusive)
        return gpu != NULL;
    double share = (double)gpu->share_booked / SHARE_WHOLE;
    double memory = gpu->memory_bytes > 0 ? (double)gpu->memory_booked / (double)gpu->memory_bytes : 0;
    return memory > share ? memory : share;
}

void metrics_write_allocated(struct metrics_reader *reader, const struct metric *metric)
{
    for (size_t i = 0; i < reader->n_gpus; i++)
        exposition_sample(&reader->out, metric, reader->gpus[i].labels, allocated(reader->gpus[i].gpu));
}

/* A node that has not connected since mgpud started is down, and nothing more is known of it. */
void metrics_write_nodes(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_node absent = { .heard_ms = reader->serve->started_ms };
    for (size_t i = 0; i < reader->n_nodes; i++) {
        const struct metrics_node *row = &reader->nodes[i];
        const struct core_node *node = row->node != NULL ? row->node : &absent;
        exposition_sample(&reader->out, metric, row->labels, metric->read_node(node));
    }
}

/* The first users since mgpud started have samples of their own, so that no counter ever falls. */
void metrics_write_users(struct metrics_reader *reader, const struct metric *metric)
{
    size_t count = 0;
    double others = 0;
    const struct account *account = sched_fairshare(core_sched(reader->controller->core))->first;
    for (; account != NULL; account = account->next) {
        if (account->kind != ACCOUNT_USER)
            continue;
        double value = metric->read_user(account, reader->now_ms);
        if (count++ >= LIMIT_METRICS_USERS) {
            others += value;
            continue;
        }
        _cleanup_free_ char *label =
            exposition_label("user", usernames_name(reader->serve->names, account->id));
        exposition_sample(&reader->out, metric, label, value);
    }
    if (count > LIMIT_METRICS_USERS)
        exposition_sample(&reader->out, metric, "user=\"" OTHER_USERS "\"", others);
}

void metrics_write_build(struct metrics_reader *reader, const struct metric *metric)
{
    _cleanup_free_ char *version = exposition_label("version", MGPU_VERSION);
    _cleanup_free_ char *instance = exposition_label("instance", reader->controller->summary.instance);
    _cleanup_free_ char *labels = xasprintf("%s,%s", version, instance);
    exposition_sample(&reader->out, metric, labels, 1);
}

void metrics_write_jobs(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    for (int state = JOB_QUEUED; state <= JOB_STOPPING; state++) {
        _cleanup_free_ char *label = exposition_label("state", job_state_name((enum job_state)state));
        exposition_sample(&reader->out, metric, label, (double)counts->jobs[state]);
    }
}

static void write_ended(struct metrics_reader *reader, const struct metric *metric, const char *result,
    enum job_end end, uint64_t count)
{
    _cleanup_free_ char *reason = exposition_label("reason", job_end_name(end));
    _cleanup_free_ char *labels = xasprintf("result=\"%s\",%s", result, reason);
    exposition_sample(&reader->out, metric, labels, (double)count);
}

void metrics_write_ended(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    write_ended(reader, metric, "done", END_EXIT, counts->ended[END_EXIT] - counts->failed_exits);
    write_ended(reader, metric, "failed", END_EXIT, counts->failed_exits);
    for (int end = END_EXIT + 1; end < END_KINDS; end++)
        write_ended(reader, metric,
            end == END_CANCELLED  ? "cancelled"
            : end == END_RELEASED ? "done"
                                  : "failed",
            (enum job_end)end, counts->ended[end]);
}

void metrics_write_requeues(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    for (int cause = 0; cause < REQUEUE_CAUSES; cause++) {
        _cleanup_free_ char *label = exposition_label("cause", requeue_cause_name((enum requeue_cause)cause));
        exposition_sample(&reader->out, metric, label, (double)counts->requeues[cause]);
    }
}

void metrics_write_waits(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    exposition_histogram(&reader->out, metric, &histogram_of_jobs, &counts->waits);
}

void metrics_write_runs(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    exposition_histogram(&reader->out, metric, &histogram_of_jobs, &counts->runs);
}

void metrics_write_passes(struct metrics_reader *reader, const struct metric *metric)
{
    exposition_histogram(&reader->out, metric, &histogram_of_work, &reader->controller->passes);
}

void metrics_write_turns(struct metrics_reader *reader, const struct metric *metric)
{
    static const struct histogram none = { 0 };
    const struct histogram *turns = turns_histogram(reader->controller->turns);
    exposition_histogram(&reader->out, metric, &histogram_of_turns, turns != NULL ? turns : &none);
}

void metrics_write_commits(struct metrics_reader *reader, const struct metric *metric)
{
    exposition_histogram(&reader->out, metric, &histogram_of_work, &reader->controller->commits);
}
