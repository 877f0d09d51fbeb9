/* SPDX-License-Identifier: MIT */
/*
 * GET /metrics. A new metric is a row here and in docs/metrics.md, which the tests compare. Some nodes are
 * read in each turn, then the text is written in slices. Unlike all others, this answer does not wait for the
 * disk: a hanging store must be visible, and it does no harm if a crash undoes these numbers. The number of
 * samples is bounded by the GPUs and nodes, and by LIMIT_METRICS_USERS; no label is the number or the name of
 * a job.
 */
#include "controller/api/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/api/metrics_reader.h"
#include "controller/api/routes.h"
#include "controller/core/counts.h"
#include "controller/http/fair_queue.h"
#include "controller/http/request.h"
#include "controller/http/slices.h"
#include "controller/turns.h"
#include "sched/queue/fairshare.h"

#define OPENMETRICS      "application/openmetrics-text"
#define OPENMETRICS_TYPE OPENMETRICS "; version=1.0.0; charset=utf-8"
#define PLAIN_TYPE       "text/plain; version=0.0.4; charset=utf-8"

#define GPU_LABELS "node, gpu, uuid, model"

/* Reads a value of a GPU that is present if its bit is set. */
#define GPU_READER(function, bit, value)                                                                     \
    static bool function(const struct gpu_state *gpu, double *ret)                                           \
    {                                                                                                        \
        *ret = (double)(value);                                                                              \
        return ((bit) == 0 || (gpu->valid & (uint32_t)(bit)) != 0) && gpu->is_lost == 0;                     \
    }

GPU_READER(read_utilization, GPU_UTILIZATION, gpu->utilization_percent / 100.0)
GPU_READER(read_memory_used, GPU_MEMORY_USED, gpu->memory_used_bytes)
GPU_READER(read_memory_size, 0, gpu->memory_bytes)
GPU_READER(read_power, GPU_POWER, gpu->power_mw / 1000.0)
GPU_READER(read_power_limit, GPU_POWER_LIMIT, gpu->power_limit_mw / 1000.0)
GPU_READER(read_temperature, GPU_TEMPERATURE, gpu->temperature_c)
GPU_READER(read_energy, GPU_ENERGY, (double)gpu->energy_mj / 1000.0)
GPU_READER(read_sm_clock, GPU_SM_CLOCK, gpu->sm_clock_mhz * 1e6)
GPU_READER(read_memory_clock, GPU_MEMORY_CLOCK, gpu->memory_clock_mhz * 1e6)
GPU_READER(read_xids, 0, gpu->xid_count)

static bool read_lost(const struct gpu_state *gpu, double *ret)
{
    *ret = gpu->is_lost != 0;
    return true;
}

static double read_start(const struct controller *controller)
{
    return (double)controller->started_wall_ms / 1000;
}

static double read_full(const struct controller *controller)
{
    return store_is_full(controller->store);
}

static double read_findings(const struct controller *controller)
{
    return controller->verification.findings;
}

static double read_events(const struct controller *controller)
{
    return (double)core_last_event(controller->core);
}

static double read_pending(const struct controller *controller)
{
    return controller->commit_us == 0 ? 0 : (double)(clock_boot_us() - controller->commit_us) / 1e6;
}

static double read_longest_turn(const struct controller *controller)
{
    return (double)turns_worst(controller->turns).busy_us / 1e6;
}

static double read_longest_stall(const struct controller *controller)
{
    return (double)turns_worst(controller->turns).stall_ms / 1000;
}

static double read_node_up(const struct metrics_node *node)
{
    return node->is_up;
}

static double read_node_silence(const struct metrics_node *node)
{
    return node->silence_s;
}

static double read_node_gpus(const struct metrics_node *node)
{
    return node->n_gpus;
}

static double read_node_orphans(const struct metrics_node *node)
{
    return node->n_orphaned;
}

static double read_node_parked(const struct metrics_node *node)
{
    return (double)node->parked_bytes;
}

static double read_parking_proven(const struct metrics_node *node)
{
    return node->is_parking_proven;
}

static double read_save_rate(const struct metrics_node *node)
{
    return node->save_rate;
}

static double read_load_rate(const struct metrics_node *node)
{
    return node->load_rate;
}

static double read_parked_time(const struct controller *controller)
{
    return (double)core_counts(controller->core)->parked_ms / 1000;
}

static double read_early_starts(const struct controller *controller)
{
    return (double)core_counts(controller->core)->early_starts;
}

static double read_saved_time(const struct controller *controller)
{
    return (double)core_counts(controller->core)->saved_ms / 1000;
}

static double read_user_time(const struct account *account, int64_t now_ms)
{
    return fairshare_held(account, now_ms);
}

static double read_user_gpus(const struct account *account, int64_t now_ms)
{
    return account->gpu_milli / 1000.0;
}

static double read_user_running(const struct account *account, int64_t now_ms)
{
    return account->running;
}

static const struct metric metrics[] = {
    { "mgpu_gpu_utilization_ratio", METRIC_GAUGE, "ratio", GPU_LABELS, "DCGM_FI_DEV_GPU_UTIL (percent)",
        "Share of the last second in which the GPU was busy.", .write_gpu = metrics_write_gpu,
        .read_gpu = read_utilization },
    { "mgpu_gpu_memory_used_bytes", METRIC_GAUGE, "bytes", GPU_LABELS, "DCGM_FI_DEV_FB_USED (MiB)",
        "Memory of the GPU in use.", .write_gpu = metrics_write_gpu, .read_gpu = read_memory_used },
    { "mgpu_gpu_memory_size_bytes", METRIC_GAUGE, "bytes", GPU_LABELS, "DCGM_FI_DEV_FB_TOTAL (MiB)",
        "Memory that the GPU has.", .write_gpu = metrics_write_gpu, .read_gpu = read_memory_size },
    { "mgpu_gpu_power_watts", METRIC_GAUGE, "watts", GPU_LABELS, "DCGM_FI_DEV_POWER_USAGE (W)",
        "Power drawn by the GPU.", .write_gpu = metrics_write_gpu, .read_gpu = read_power },
    { "mgpu_gpu_power_limit_watts", METRIC_GAUGE, "watts", GPU_LABELS, "DCGM_FI_DEV_POWER_MGMT_LIMIT (W)",
        "Power limit of the GPU.", .write_gpu = metrics_write_gpu, .read_gpu = read_power_limit },
    { "mgpu_gpu_temperature_celsius", METRIC_GAUGE, "celsius", GPU_LABELS, "DCGM_FI_DEV_GPU_TEMP (C)",
        "Temperature of the GPU.", .write_gpu = metrics_write_gpu, .read_gpu = read_temperature },
    { "mgpu_gpu_energy_joules", METRIC_COUNTER, "joules", GPU_LABELS,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION (mJ)", "Energy used by the GPU since its driver was loaded.",
        .write_gpu = metrics_write_gpu, .read_gpu = read_energy },
    { "mgpu_gpu_sm_clock_hertz", METRIC_GAUGE, "hertz", GPU_LABELS, "DCGM_FI_DEV_SM_CLOCK (MHz)",
        "Clock of the GPU's processors.", .write_gpu = metrics_write_gpu, .read_gpu = read_sm_clock },
    { "mgpu_gpu_memory_clock_hertz", METRIC_GAUGE, "hertz", GPU_LABELS, "DCGM_FI_DEV_MEM_CLOCK (MHz)",
        "Clock of the GPU's memory.", .write_gpu = metrics_write_gpu, .read_gpu = read_memory_clock },
    { "mgpu_gpu_ecc_errors", METRIC_COUNTER, "", GPU_LABELS ", kind: corrected, uncorrected",
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "Memory errors of the GPU since its driver was loaded.", .write_gpu = metrics_write_ecc },
    { "mgpu_gpu_driver_errors", METRIC_COUNTER, "", GPU_LABELS,
        "DCGM_FI_DEV_XID_ERRORS (number of the last one)",
        "Errors (Xid) that the driver reported for the GPU since the agent of its node started.",
        .write_gpu = metrics_write_gpu, .read_gpu = read_xids },
    { "mgpu_gpu_test_passed", METRIC_GAUGE, "", GPU_LABELS, "",
        "1: the last scheduled test of the GPU passed; 0: it failed, or the GPU is slow.",
        .write_gpu = metrics_write_test },
    { "mgpu_gpu_test_speed_ratio", METRIC_GAUGE, "", GPU_LABELS, "",
        "Worst figure of the last scheduled test as a part of the median of the GPUs of the model.",
        .write_gpu = metrics_write_speed },
    { "mgpu_gpu_lost", METRIC_GAUGE, "", GPU_LABELS, "", "1: the GPU was there and does not answer any more.",
        .write_gpu = metrics_write_gpu, .read_gpu = read_lost },
    { "mgpu_gpu_open", METRIC_GAUGE, "", GPU_LABELS, "",
        "1: jobs can start on the GPU; 0: it is paused, drained, lost, unclean or used by others.",
        .write_gpu = metrics_write_open },
    { "mgpu_gpu_allocated_ratio", METRIC_GAUGE, "ratio", GPU_LABELS, "",
        "Part of the GPU that jobs hold, whether or not they use it.", .write_gpu = metrics_write_allocated },
    { "mgpu_node_up", METRIC_GAUGE, "", "node", "", "1: the agent of the node is connected and responds.",
        metrics_write_nodes, .read_node = read_node_up },
    { "mgpu_node_silence_seconds", METRIC_GAUGE, "seconds", "node", "",
        "Time since the last message of the node's agent, or since mgpud started.", metrics_write_nodes,
        .read_node = read_node_silence },
    { "mgpu_node_gpus", METRIC_GAUGE, "", "node", "", "GPUs that the node last reported.",
        metrics_write_nodes, .read_node = read_node_gpus },
    { "mgpu_node_orphaned_attempts", METRIC_GAUGE, "", "node", "",
        "Attempts that the node still has and no job needs; nothing new starts there before they end.",
        metrics_write_nodes, .read_node = read_node_orphans },
    { "mgpu_node_parked_bytes", METRIC_GAUGE, "bytes", "node", "",
        "Contents of GPU memory that the node keeps for parked jobs (`park-max`).", metrics_write_nodes,
        .read_node = read_node_parked },
    { "mgpu_node_parking_proven", METRIC_GAUGE, "", "node", "",
        "1: parking was tested on the node with the driver that it has now, and passed.", metrics_write_nodes,
        .read_node = read_parking_proven },
    { "mgpu_node_park_save_rate", METRIC_GAUGE, "", "node", "",
        "Bytes per second at which the last test of parking saved GPU memory; 0: not measured.",
        metrics_write_nodes, .read_node = read_save_rate },
    { "mgpu_node_park_load_rate", METRIC_GAUGE, "", "node", "",
        "Bytes per second at which the last test of parking restored GPU memory; 0: not measured.",
        metrics_write_nodes, .read_node = read_load_rate },
    { "mgpu_jobs", METRIC_GAUGE, "", "state: queued, starting, running, stopping", "",
        "Jobs by state; an array counts as its elements.", metrics_write_jobs },
    { "mgpu_jobs_ended", METRIC_COUNTER, "", "result: done, failed, cancelled; reason: `ended_by` of the API",
        "", "Jobs that have ended since mgpud started.", metrics_write_ended },
    { "mgpu_job_requeues", METRIC_COUNTER, "",
        "cause: preempted, requested, time_limit, failed, node_lost, gpu_oom", "",
        "Attempts whose job went back to the queue, since mgpud started.", metrics_write_requeues },
    { "mgpu_job_parks", METRIC_COUNTER, "", "cause: asked, preempted, time_limit, found, shorter, due", "",
        "Jobs that were parked, since mgpud started.", metrics_write_parks },
    { "mgpu_job_park_refusals", METRIC_COUNTER, "", "action: park, return", "",
        "Parks that were refused, and returns of parked jobs that were refused or failed, since mgpud "
        "started.",
        metrics_write_park_refusals },
    { "mgpu_job_parked_seconds", METRIC_COUNTER, "seconds", "", "",
        "Time for which jobs were parked, of periods that have ended since mgpud started.", metrics_write_one,
        .read = read_parked_time },
    { "mgpu_job_early_starts", METRIC_COUNTER, "", "", "",
        "Jobs that were given GPUs before which they had started on the CPU, since mgpud started.",
        metrics_write_one, .read = read_early_starts },
    { "mgpu_job_early_saved_seconds", METRIC_COUNTER, "seconds", "", "",
        "GPU time saved by early starts since mgpud started: what jobs did on the CPU before they had or "
        "needed "
        "their GPUs.",
        metrics_write_one, .read = read_saved_time },
    { "mgpu_job_wait_seconds", METRIC_HISTOGRAM, "seconds", "", "",
        "Time from submission or requeue to the start of an attempt.", metrics_write_waits },
    { "mgpu_job_run_seconds", METRIC_HISTOGRAM, "seconds", "", "", "Time that ended attempts ran.",
        metrics_write_runs },
    { "mgpu_user_gpu_seconds", METRIC_COUNTER, "seconds", "user", "",
        "GPU time that jobs of the user have held since mgpud started; divide by 3600 for GPU-hours.",
        metrics_write_users, .read_user = read_user_time },
    { "mgpu_user_gpus", METRIC_GAUGE, "", "user", "", "GPUs that jobs of the user hold.", metrics_write_users,
        .read_user = read_user_gpus },
    { "mgpu_user_running_jobs", METRIC_GAUGE, "", "user", "", "Jobs of the user that have started.",
        metrics_write_users, .read_user = read_user_running },
    { "mgpu_scheduler_pass_seconds", METRIC_HISTOGRAM, "seconds", "", "",
        "Time for the end of a turn of mgpud's loop in which something happened: the scheduler's pass and "
        "the batch of its changes.",
        metrics_write_passes },
    { "mgpu_turn_seconds", METRIC_HISTOGRAM, "seconds", "", "",
        "Processor time of the turns of mgpud's loop; nothing else is answered during one.",
        metrics_write_turns },
    { "mgpu_turn_longest_seconds", METRIC_GAUGE, "seconds", "", "",
        "Processor time of the longest turn of mgpud's loop in the last ten to twenty minutes.",
        metrics_write_one, .read = read_longest_turn },
    { "mgpu_turn_longest_step_seconds", METRIC_GAUGE, "seconds", "step", "",
        "Processor time of the longest part of that turn: a request, a message, a pass of the scheduler.",
        metrics_write_step },
    { "mgpu_turn_stall_longest_seconds", METRIC_GAUGE, "seconds", "", "",
        "The longest delay of the end of a turn in that time: the longest wait of all users.",
        metrics_write_one, .read = read_longest_stall },
    { "mgpu_commit_seconds", METRIC_HISTOGRAM, "seconds", "", "",
        "Time from handing a batch of changes to the store until it is on disk.", metrics_write_commits },
    { "mgpu_commit_pending_seconds", METRIC_GAUGE, "seconds", "", "",
        "Age of the batch that is being written; 0: none is.", metrics_write_one, .read = read_pending },
    { "mgpu_events", METRIC_COUNTER, "", "", "", "Events in the store, over all starts of mgpud.",
        metrics_write_one, .read = read_events },
    { "mgpu_store_full", METRIC_GAUGE, "", "", "", "1: the disk of the store is full; submits are refused.",
        metrics_write_one, .read = read_full },
    { "mgpu_store_findings", METRIC_GAUGE, "", "", "",
        "Findings of the last check of the store; above 0 it is damaged, and `mgpu doctor` names the first.",
        metrics_write_one, .read = read_findings },
    { "mgpu_start_time_seconds", METRIC_GAUGE, "seconds", "", "",
        "When mgpud started, in seconds since 1970.", metrics_write_one, .read = read_start },
    { "mgpu_build_info", METRIC_GAUGE, "", "version, instance", "", "1; its labels describe this mgpud.",
        metrics_write_build },
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

const struct metric *metrics_all(size_t *ret_count)
{
    *ret_count = METRICS;
    return metrics;
}

char *metrics_row(const struct metric *metric)
{
    static const char *const types[] = { "gauge", "counter", "histogram" };
    bool is_counter = metric->type == METRIC_COUNTER;
    return xasprintf("| `%s%s` | %s | %s | %s | %s |\n", metric->name, is_counter ? "_total" : "",
        types[metric->type], metric->labels, metric->help, metric->dcgm);
}

/* --- the answer, in parts --- */

struct scrape {
    struct slices slices;
    struct metrics_reader reader;
    size_t metric, gpu; // the next row, and the GPU within it
};

static void release_scrape(struct request *request)
{
    struct scrape *scrape = request->work;
    slices_clear(request);
    metrics_reader_clear(&scrape->reader);
    free(scrape);
}

/* True when the row is written; false when the slice is full. */
static bool write_row(struct scrape *scrape, const struct metric *metric)
{
    struct metrics_reader *reader = &scrape->reader;
    if (scrape->gpu == 0)
        exposition_begin(&reader->out, metric);
    if (metric->write_gpu == NULL) {
        metric->write(reader, metric);
        return true;
    }
    while (scrape->gpu < reader->n_gpus && !slices_is_full(&scrape->slices))
        metric->write_gpu(&reader->out, metric, &reader->gpus[scrape->gpu++]);
    if (scrape->gpu < reader->n_gpus)
        return false;
    scrape->gpu = 0;
    return true;
}

static void fill(struct request *request)
{
    struct scrape *scrape = request->work;
    while (scrape->metric < METRICS && !slices_is_full(&scrape->slices))
        scrape->metric += write_row(scrape, &metrics[scrape->metric]);
    scrape->slices.is_last = scrape->metric == METRICS;
    if (scrape->slices.is_last)
        exposition_end(&scrape->reader.out);
    slices_send(request);
}

static void collect(struct request *request)
{
    struct scrape *scrape = request->work;
    int64_t until_us = clock_boot_us() + SLICE_US;
    bool is_more = true;
    while (is_more && clock_boot_us() < until_us)
        is_more = metrics_reader_next(&scrape->reader);
    if (is_more)
        fair_queue_add(request, collect);
    else
        slices_begin(request, fill);
}

void handle_metrics(struct request *request)
{
    struct scrape *scrape = xcalloc(1, sizeof(*scrape));
    const char *accept = http_message_header(&request->message, "accept");
    bool is_openmetrics = accept != NULL && strstr(accept, OPENMETRICS) != NULL;
    request->work = scrape;
    request->release = release_scrape;
    scrape->slices.is_immediate = true;
    scrape->slices.type = is_openmetrics ? OPENMETRICS_TYPE : PLAIN_TYPE;
    metrics_reader_init(&scrape->reader, request->serve, &scrape->slices.bytes);
    scrape->reader.out.is_openmetrics = is_openmetrics;
    collect(request);
}
