/* SPDX-License-Identifier: MIT */
#include "controller/api/metrics_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/version.h"
#include "controller/api/gpus.h"
#include "controller/core/counts.h"
#include "controller/core/park.h"
#include "controller/core/park_proof.h"
#include "controller/nodes/registry.h"
#include "controller/turns.h"
#include "sched/cluster/cluster.h"
#include "sched/queue/fairshare.h"
#include "wire/limits.h"

#define OTHER_USERS "(other)" // not a valid user name

/* --- what there is --- */

/* For a shared GPU, the larger of its allocated time and memory. */
static double allocated(const struct cluster_gpu *gpu)
{
    if (gpu == NULL || gpu->is_exclusive)
        return gpu != NULL;
    double share = (double)gpu->share_booked / SHARE_WHOLE;
    double memory = gpu->memory_bytes > 0 ? (double)gpu->memory_booked / (double)gpu->memory_bytes : 0;
    return memory > share ? memory : share;
}

/* Copied, because the node's report is replaced in later turns. */
static void copy_numbers(const struct gpu_state *gpu, struct gpu_state *ret)
{
    *ret = *gpu;
    ret->uuid = ret->model = ret->pci = ret->trouble = ret->refusal = ret->parent = NULL;
    ret->processes = ret->xids = ret->tests = (struct record_list){ 0 };
}

static char *gpu_labels(const char *node, const struct gpu_state *gpu)
{
    _cleanup_free_ char *uuid = exposition_label("uuid", gpu->uuid != NULL ? gpu->uuid : "");
    _cleanup_free_ char *model = exposition_label("model", gpu->model != NULL ? gpu->model : "");
    return xasprintf("%s,gpu=\"%" PRIu32 "\",%s,%s", node, gpu->index, uuid, model);
}

static void add_gpu(struct metrics_reader *reader, const char *node_label, const struct cluster_node *node,
    const struct gpu_state *gpu)
{
    char text[GPU_COMPARISON_TEXT_SIZE];
    if (reader->n_gpus == reader->gpus_capacity) {
        reader->gpus_capacity = reader->gpus_capacity > 0 ? 2 * reader->gpus_capacity : 64;
        reader->gpus = xreallocarray(reader->gpus, reader->gpus_capacity, sizeof(*reader->gpus));
    }
    struct metrics_gpu *row = &reader->gpus[reader->n_gpus++];
    const struct cluster_gpu *known =
        node != NULL && gpu->uuid != NULL ? cluster_find_gpu(node, gpu->uuid) : NULL;
    *row = (struct metrics_gpu){ .labels = gpu_labels(node_label, gpu) };
    copy_numbers(gpu, &row->state);
    row->is_open = known != NULL && cluster_gpu_is_open(node, known);
    row->allocated = allocated(known);
    row->verdict = gpu_comparison_judge(reader->comparison, gpu, text, &row->speed);
}

static void add_row(struct metrics_reader *reader, const struct metrics_node *node)
{
    if (reader->n_nodes == reader->nodes_capacity) {
        reader->nodes_capacity = reader->nodes_capacity > 0 ? 2 * reader->nodes_capacity : 64;
        reader->nodes = xreallocarray(reader->nodes, reader->nodes_capacity, sizeof(*reader->nodes));
    }
    reader->nodes[reader->n_nodes++] = *node;
}

static double silence_s(int64_t last_contact_ms)
{
    return (double)(clock_boot_ms() - last_contact_ms) / 1000;
}

static void add_node(struct metrics_reader *reader, const struct core_node *node)
{
    const struct cluster_node *known =
        cluster_find(sched_cluster(core_sched(reader->controller->core)), node->name);
    const struct gpu_state *gpus = node->hello.gpus.items;
    struct metrics_node row = {
        .labels = exposition_label("node", node->name),
        .is_up = node->is_up && !node->is_unreachable,
        .silence_s = silence_s(node->last_contact_ms),
        .n_gpus = (uint32_t)node->hello.gpus.count,
        .n_orphaned = (uint32_t)node->n_orphaned,
        .parked_bytes = core_park_kept(reader->controller->core, node->name),
    };
    const struct park_proof *proof = core_park_proof(reader->controller->core, node->name);
    row.is_parking_proven = core_park_proof_state(reader->controller->core, node->name) == PARK_PROOF_PASSED;
    row.save_rate = proof != NULL ? park_proof_save_rate(proof) : 0;
    row.load_rate = proof != NULL ? park_proof_load_rate(proof) : 0;
    add_row(reader, &row);
    for (size_t i = 0; node->is_up && i < node->hello.gpus.count; i++)
        if (gpus_is_listed(reader->controller, node, &gpus[i]))
            add_gpu(reader, row.labels, known, &gpus[i]);
}

/* The node has not connected since mgpud started: it is down, and nothing else is known about it. */
static void add_absent(void *arg, const struct registered_node *node)
{
    struct metrics_reader *reader = arg;
    if (core_node_named(reader->controller->core, node->name) != NULL)
        return;
    add_row(reader, &(struct metrics_node){ .labels = exposition_label("node", node->name),
                        .silence_s = silence_s(reader->serve->started_ms) });
}

void metrics_reader_init(struct metrics_reader *reader, struct serve *serve, struct buffer *text)
{
    *reader = (struct metrics_reader){
        .out.text = text, .serve = serve, .controller = serve->controller, .now_ms = clock_wall_ms()
    };
    reader->comparison = gpus_comparison(reader->controller->core);
}

bool metrics_reader_next(struct metrics_reader *reader)
{
    const struct core_node *node = core_node_at(reader->controller->core, reader->at++);
    if (node == NULL) {
        registry_each(reader->controller->registry, add_absent, reader);
        gpu_comparison_free(take_ptr(reader->comparison));
        return false;
    }
    if (gpus_is_shown(reader->controller, node))
        add_node(reader, node);
    return true;
}

void metrics_reader_clear(struct metrics_reader *reader)
{
    for (size_t i = 0; i < reader->n_gpus; i++)
        free(reader->gpus[i].labels);
    for (size_t i = 0; i < reader->n_nodes; i++)
        free(reader->nodes[i].labels);
    free(reader->gpus);
    free(reader->nodes);
    gpu_comparison_free(reader->comparison);
}

/* --- samples --- */

void metrics_write_one(struct metrics_reader *reader, const struct metric *metric)
{
    exposition_sample(&reader->out, metric, NULL, metric->read(reader->controller));
}

void metrics_write_gpu(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu)
{
    double value;
    if (metric->read_gpu(&gpu->state, &value))
        exposition_sample(out, metric, gpu->labels, value);
}

void metrics_write_ecc(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu)
{
    if ((gpu->state.valid & GPU_ECC) == 0 || gpu->state.is_lost != 0)
        return;
    _cleanup_free_ char *corrected = xasprintf("%s,kind=\"corrected\"", gpu->labels);
    _cleanup_free_ char *uncorrected = xasprintf("%s,kind=\"uncorrected\"", gpu->labels);
    exposition_sample(out, metric, corrected, (double)gpu->state.ecc_corrected);
    exposition_sample(out, metric, uncorrected, (double)gpu->state.ecc_uncorrected);
}

void metrics_write_test(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu)
{
    if (gpu->verdict != GPU_UNTESTED)
        exposition_sample(out, metric, gpu->labels, gpu->verdict == GPU_PASSED);
}

void metrics_write_speed(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu)
{
    if (gpu->verdict == GPU_PASSED || gpu->verdict == GPU_SLOW)
        exposition_sample(out, metric, gpu->labels, gpu->speed);
}

void metrics_write_open(struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu)
{
    exposition_sample(out, metric, gpu->labels, gpu->is_open);
}

void metrics_write_allocated(
    struct exposition *out, const struct metric *metric, const struct metrics_gpu *gpu)
{
    exposition_sample(out, metric, gpu->labels, gpu->allocated);
}

void metrics_write_nodes(struct metrics_reader *reader, const struct metric *metric)
{
    for (size_t i = 0; i < reader->n_nodes; i++)
        exposition_sample(
            &reader->out, metric, reader->nodes[i].labels, metric->read_node(&reader->nodes[i]));
}

/* The first users since mgpud started have their own samples, so no counter ever decreases. */
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

void metrics_write_step(struct metrics_reader *reader, const struct metric *metric)
{
    const struct turns_worst worst = turns_worst(reader->controller->turns);
    _cleanup_free_ char *name = turns_step_name(&worst.step);
    _cleanup_free_ char *label = exposition_label("step", name != NULL ? name : "");
    exposition_sample(&reader->out, metric, label, (double)worst.step.busy_us / 1e6);
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

void metrics_write_parks(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    for (uint32_t cause = 0; cause < PARK_EARLY; cause++) {
        _cleanup_free_ char *label = exposition_label("cause", park_cause_name(cause));
        exposition_sample(&reader->out, metric, label, (double)counts->parks[cause]);
    }
}

void metrics_write_park_refusals(struct metrics_reader *reader, const struct metric *metric)
{
    const struct core_counts *counts = core_counts(reader->controller->core);
    exposition_sample(&reader->out, metric, "action=\"park\"", (double)counts->refused_parks);
    exposition_sample(&reader->out, metric, "action=\"return\"", (double)counts->refused_returns);
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
