/* SPDX-License-Identifier: MIT */
/* mgpu-sim run: replays a trace through the scheduler on a cluster and prints the results. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/option_values.h"
#include "base/parse.h"
#include "lab/sim/engine.h"
#include "lab/sim/metrics.h"
#include "lab/sim/report.h"
#include "lab/sim/svg_gantt.h"
#include "lab/sim/svg_plot.h"
#include "lab/sim/synthetic.h"
#include "lab/sim/talk.h"

#define TICK_MS          60000 // of the LAS reference
#define RESERVATIONS_MAX 1000
#define FORECASTS_MAX    100000
#define PARK_MAX         1000
#define REPAIR_MS        (INT64_C(4) * 3600 * 1000)

struct run_call {
    const struct policy *policy;
    const struct placement *placement; // NULL: the default
    const char *cluster, *gantt, *plot;
    struct trace_options trace;
    enum estimate_source estimate;
    int64_t reservations;                     // -1: the default
    int64_t preempt_cost_ms, preempt_wide_ms; // -1: the default
    int64_t half_life_ms, age_cap_ms;         // -1: the default
    uint64_t seed;
    int64_t forecasts, failure_ms, repair_ms;
    struct parking_options parking;
    int64_t park_bound, park_ratio, park_layers, park_margin; // -1: the default
    bool is_park_auto;
    bool has_estimate, is_reference, is_json, no_timing, no_progress, no_limits, is_help;
};

static const char *const estimate_names[] = { "history", "exact", "walltime", "trace", NULL };

/* --- options --- */

static int set_policy(void *target, const char *value, struct error *err)
{
    return talk_policy("--policy", value, &((struct run_call *)target)->policy, err);
}

static int set_placement(void *target, const char *value, struct error *err)
{
    return talk_placement("--placement", value, &((struct run_call *)target)->placement, err);
}

static int set_estimate(void *target, const char *value, struct error *err)
{
    struct run_call *call = target;
    for (unsigned i = 0; estimate_names[i] != NULL; i++)
        if (strcmp(value, estimate_names[i]) == 0) {
            call->estimate = (enum estimate_source)i;
            call->has_estimate = true;
            return 0;
        }
    return talk_unknown("--estimate", value, estimate_names, err);
}

static int set_preempt_cost(void *target, const char *value, struct error *err)
{
    struct run_call *call = target;
    int result = parse_duration(value, "--preempt-cost", &call->preempt_cost_ms, err);
    if (result < 0)
        return result;
    call->preempt_wide_ms = call->preempt_cost_ms;
    return 0;
}

static int set_park(void *target, const char *value, struct error *err)
{
    return parking_options_read(&((struct run_call *)target)->parking, value, err);
}

static const struct option_row rows[] = {
    { 'c', "cluster", "NxG", "64x8, pool:128 (one node), or a CSV list of nodes",
        OPTION_VALUE(word, struct run_call, cluster) },
    { 'p', "policy", "NAME", "order of the queue (default)", set_policy },
    { 0, "placement", "NAME", "placement of GPUs", set_placement },
    { 'e', "estimate", "KIND", "estimates used by the scheduler: history, exact, walltime, trace",
        set_estimate },
    { 0, "reference", NULL, "like the reference simulators: consolidated, no fair share, no age cap",
        OPTION_VALUE(flag, struct run_call, is_reference) },
    { 0, "reservations", "K", "number of blocked jobs with a reservation",
        OPTION_VALUE(integer, struct run_call, reservations), OPTION_RANGE(0, RESERVATIONS_MAX) },
    { 0, "preempt-cost", "TIME", "extra work of a preempted job (40s; 60s above 8 GPUs)", set_preempt_cost },
    { 0, "park", "MODEL", "park preempted jobs: where=gpu|node|any,room=R,save=TIME,load=TIME,refuse=P",
        set_park },
    { 0, "park-auto", NULL, "the scheduler parks jobs for those that will probably end much sooner",
        OPTION_VALUE(flag, struct run_call, is_park_auto) },
    { 0, "park-bound", "N", "a job is parked for at most N times as long as it has run (4)",
        OPTION_VALUE(integer, struct run_call, park_bound), OPTION_RANGE(1, PARK_MAX) },
    { 0, "park-ratio", "N", "for jobs that take at most 1/N of what it still needs (2)",
        OPTION_VALUE(integer, struct run_call, park_ratio), OPTION_RANGE(1, PARK_MAX) },
    { 0, "park-layers", "N", "at most N jobs are parked from a GPU for others (2)",
        OPTION_VALUE(integer, struct run_call, park_layers), OPTION_RANGE(1, 2) },
    { 0, "park-margin", "N",
        "what refuses borrows owed GPUs if they are due in N times what it needs (20; 0: never)",
        OPTION_VALUE(integer, struct run_call, park_margin), OPTION_RANGE(0, PARK_MAX) },
    { 0, "half-life", "TIME", "half-life of usage", OPTION_VALUE(duration, struct run_call, half_life_ms) },
    { 0, "age-cap", "TIME", "a job is not overtaken by jobs submitted that much later; 0: no bound",
        OPTION_VALUE(duration, struct run_call, age_cap_ms) },
    { 0, "no-limits", NULL, "do not use the wall times of the trace as time limits",
        OPTION_VALUE(flag, struct run_call, no_limits) },
    { 0, "users-from", "COLUMN", "column of a CSV trace with the user",
        OPTION_VALUE(word, struct run_call, trace.users_from) },
    { 0, "skip-bad", NULL, "skip invalid lines of the trace",
        OPTION_VALUE(flag, struct run_call, trace.skip_bad) },
    { 0, "max-jobs", "N", "use only the first N jobs of the trace",
        OPTION_VALUE(integer, struct run_call, trace.max_jobs), OPTION_RANGE(1, UINT32_MAX - 1) },
    { 0, "node-failures", "TIME", "mean time between failures of each node",
        OPTION_VALUE(duration, struct run_call, failure_ms) },
    { 0, "repair", "TIME", "a failed node returns after this time (4h)",
        OPTION_VALUE(duration, struct run_call, repair_ms) },
    { 0, "seed", "N", "seed of a synthetic trace and of failures",
        OPTION_VALUE(integer, struct run_call, seed), OPTION_RANGE(0, INT64_MAX) },
    { 0, "gantt", "FILE", "draw the use of each GPU over time, as SVG",
        OPTION_VALUE(word, struct run_call, gantt) },
    { 0, "plot", "FILE", "draw queue length, GPUs in use and waiting times, as SVG",
        OPTION_VALUE(word, struct run_call, plot) },
    { 0, "forecasts", "N", "forecast starts about N times, and compare with the actual starts",
        OPTION_VALUE(integer, struct run_call, forecasts), OPTION_RANGE(0, FORECASTS_MAX) },
    { 0, "json", NULL, "print figures as JSON", OPTION_VALUE(flag, struct run_call, is_json) },
    { 0, "no-timing", NULL, "omit figures that depend on this machine",
        OPTION_VALUE(flag, struct run_call, no_timing) },
    { 0, "no-progress", NULL, "no progress bar", OPTION_VALUE(flag, struct run_call, no_progress) },
    { 'h', "help", NULL, "this text", OPTION_VALUE(flag, struct run_call, is_help) },
    { 0 },
};

/* --- the run --- */

static void choose_settings(const struct run_call *call, struct sched_settings *settings)
{
    sched_settings_init(settings);
    if (call->policy != NULL)
        settings->policy = call->policy;
    if (call->is_reference) {
        settings->counts_gpus_only = true;
        settings->placement = &placement_consolidate;
        settings->reservations = 1;
        settings->age_cap_ms = 0;
        settings->quantum_ms = 0;
        settings->preempt_grace_ms = 0;
        settings->preempt_cost_ms = 40000;
        settings->preempt_cost_wide_ms = 60000;
    }
    if (call->placement != NULL)
        settings->placement = call->placement;
    if (call->reservations >= 0)
        settings->reservations = (uint32_t)call->reservations;
    if (call->preempt_cost_ms >= 0) {
        settings->preempt_cost_ms = call->preempt_cost_ms;
        settings->preempt_cost_wide_ms = call->preempt_wide_ms;
    }
    if (call->parking.is_on)
        parking_set_cost(&call->parking, settings);
    if (call->is_park_auto) {
        settings->parking = PARKING_AUTO;
        settings->preempt_grace_ms = 0; // who is preempted stops at once
    }
    if (call->park_bound >= 0)
        settings->park_bound = (uint32_t)call->park_bound;
    if (call->park_ratio >= 0)
        settings->park_ratio = (uint32_t)call->park_ratio;
    if (call->park_layers >= 0)
        settings->park_layers = (uint32_t)call->park_layers;
    if (call->park_margin >= 0)
        settings->park_margin = (uint32_t)call->park_margin;
    if (call->half_life_ms >= 0)
        settings->half_life_ms = call->half_life_ms;
    if (call->age_cap_ms >= 0)
        settings->age_cap_ms = call->age_cap_ms;
}

/* As in the reference: uses the trace's predictions if it has them, otherwise learns. */
static void choose_estimate(
    struct run_call *call, const struct sched_settings *settings, const struct workload *workload)
{
    if (settings->policy->is_oracle && call->estimate != ESTIMATE_TRACE)
        call->estimate = ESTIMATE_EXACT;
    else if (!call->has_estimate && call->is_reference && workload->has_pred)
        call->estimate = ESTIMATE_TRACE;
}

static int check_estimate(const struct run_call *call, const struct workload *workload, struct error *err)
{
    const struct policy *policy = call->policy;
    bool is_learnt = call->estimate == ESTIMATE_HISTORY || call->estimate == ESTIMATE_WALLTIME;
    if (policy != NULL && policy->is_oracle && call->has_estimate && is_learnt)
        return error_set(err, -EINVAL,
            "--policy %s is an oracle; it cannot be used with --estimate %s, only with exact or trace",
            policy->name, estimate_names[call->estimate]);
    if (call->estimate == ESTIMATE_WALLTIME && !workload->has_wall)
        return error_set(err, -EINVAL, "--estimate walltime: the trace has no wall times");
    if (call->estimate == ESTIMATE_TRACE && !workload->has_pred)
        return error_set(
            err, -EINVAL, "--estimate trace: the trace has no predictions (column pred_duration)");
    return 0;
}

static int check_parking(
    const struct run_call *call, const struct sched_settings *settings, struct error *err)
{
    bool has_rule =
        call->park_bound >= 0 || call->park_ratio >= 0 || call->park_layers >= 0 || call->park_margin >= 0;
    if (has_rule && !call->is_park_auto)
        return error_set(err, -EINVAL,
            "--park-bound, --park-ratio, --park-layers and --park-margin have no effect without --park-auto");
    if (settings->park_bound < settings->park_layers + 2)
        return error_set(err, -EINVAL,
            "--park-bound %u does not suffice for --park-layers %u: the jobs of a GPU could not take turns; "
            "it "
            "is %u or more",
            settings->park_bound, settings->park_layers, settings->park_layers + 2);
    if (call->is_park_auto &&
        (settings->policy->preempting != PREEMPT_NONE || settings->policy->backfill == BACKFILL_NONE))
        return error_set(err, -EINVAL, "--park-auto: policy %s %s; choose another, such as --policy default",
            settings->policy->name,
            settings->policy->preempting != PREEMPT_NONE ? "preempts by its own rule"
                                                         : "keeps a strict order");
    if (!call->parking.is_on)
        return 0;
    if (settings->policy->preempting == PREEMPT_NONE && !call->is_park_auto)
        return error_set(err, -EINVAL,
            "--park: policy %s preempts no job; choose a preemptive one, such as --policy learnt",
            settings->policy->name);
    if (call->is_reference || call->preempt_cost_ms >= 0)
        return error_set(err, -EINVAL, "--park cannot be used with %s",
            call->is_reference ? "--reference" : "--preempt-cost, which it replaces");
    return 0;
}

static int draw(const struct run_call *call, const struct engine *engine, const char *path, struct error *err)
{
    char title[200];
    (void)snprintf(title, sizeof(title), "%.90s on %.40s, policy %s", path, call->cluster,
        engine->options.settings->policy->name);
    int result = call->gantt == NULL ? 0 : svg_gantt(engine, title, call->gantt, err);
    if (result < 0)
        return result;
    return call->plot == NULL ? 0 : svg_plot(engine, title, call->plot, err);
}

static void print(const struct run_call *call, struct engine *engine, const char *path)
{
    struct metrics metrics;
    metrics_make(engine, &metrics);
    const struct sched_settings *settings = engine->options.settings;
    struct report report = {
        .trace = path,
        .cluster = call->cluster,
        .policy = settings->policy,
        .placement = settings->placement,
        .estimate = estimate_names[call->estimate],
        .is_oracle = call->estimate == ESTIMATE_EXACT,
        .is_reference = call->is_reference,
        .has_timing = !call->no_timing,
        .bad_lines = engine->workload->n_bad,
        .nodes = engine->nodes->count,
        .gpus = engine->nodes->gpus,
        .metrics = &metrics,
        .counts = &engine->counts,
        .first_refusal = engine->first_refusal,
    };
    if (call->is_json)
        report_json(&report, stdout);
    else
        report_table(&report, stdout);
}

static void print_bad_lines(const struct workload *workload)
{
    for (size_t i = 0; i < workload->bad.count; i++)
        (void)fprintf(stderr, "mgpu-sim: %s\n", workload->bad.items[i]);
    if (workload->n_bad > 0)
        (void)fprintf(stderr, "mgpu-sim: skipped %llu invalid line%s\n", (unsigned long long)workload->n_bad,
            workload->n_bad == 1 ? "" : "s");
}

static int replay(struct run_call *call, const char *path, struct workload *workload, struct sim_nodes *nodes,
    struct engine *engine, struct error *err)
{
    struct sched_settings settings;
    if (call->is_park_auto && !call->parking.is_on && parking_options_read(&call->parking, "", err) < 0)
        return err->code;
    call->parking.is_auto = call->is_park_auto;
    choose_settings(call, &settings);
    int result = check_parking(call, &settings, err);
    if (result < 0)
        return result;
    result = synthetic_is(path) ? synthetic_make(workload, path, nodes, call->seed, err)
                                : workload_read(workload, path, &call->trace, err);
    if (result < 0)
        return result;
    print_bad_lines(workload);
    result = check_estimate(call, workload, err);
    if (result < 0)
        return result;
    choose_estimate(call, &settings, workload);
    struct engine_options options = {
        .settings = &settings,
        .estimate = call->estimate,
        .tick_ms = call->is_reference && settings.policy->preempting == PREEMPT_LAS ? TICK_MS : 0,
        .has_limits = !call->no_limits && !call->is_reference,
        .draws = call->gantt != NULL,
        .plots = call->plot != NULL,
        .is_timed = !call->no_timing,
        .forecasts = (uint64_t)call->forecasts,
        .failure_ms = call->failure_ms,
        .repair_ms = call->repair_ms,
        .seed = call->seed,
        .parking = call->parking,
        .is_progress = !call->no_progress && isatty(STDERR_FILENO) == 1,
    };
    result = engine_run(engine, workload, nodes, &options, err);
    if (result < 0)
        return result;
    print(call, engine, path);
    return draw(call, engine, path, err);
}

static int run(int argc, char **argv)
{
    struct run_call call = { .reservations = -1,
        .preempt_cost_ms = -1,
        .half_life_ms = -1,
        .age_cap_ms = -1,
        .repair_ms = REPAIR_MS,
        .seed = 1 };
    call.park_bound = call.park_ratio = call.park_layers = call.park_margin = -1;
    struct error err = { 0 };
    int first = 0;
    if (talk_parse(&command_run, argc, argv, rows, &call, 0, 1, &first, &err) < 0)
        return talk_error(&err, SIM_USAGE);
    if (call.is_help) {
        talk_help(&command_run, rows);
        return SIM_OK;
    }
    if (first == argc || call.cluster == NULL) {
        (void)error_set(&err, -EINVAL,
            first == argc ? "run requires a trace" : "run requires a cluster, such as --cluster 64x8");
        (void)error_hint(&err, "usage: mgpu-sim %s", command_run.usage);
        return talk_error(&err, SIM_USAGE);
    }
    struct workload workload = { 0 };
    struct sim_nodes nodes = { 0 };
    struct engine engine = { 0 };
    if (nodes_read(&nodes, call.cluster, &err) < 0) {
        nodes_clear(&nodes);
        return talk_error(&err, SIM_USAGE);
    }
    int result = replay(&call, argv[first], &workload, &nodes, &engine, &err);
    engine_clear(&engine);
    workload_clear(&workload);
    nodes_clear(&nodes);
    return result < 0 ? talk_error(&err, SIM_FAILED) : SIM_OK;
}

const struct sim_command command_run = {
    .name = "run",
    .summary = "replay a trace through the scheduler on a cluster",
    .usage = "run TRACE --cluster NODESxGPUS [OPTIONS]",
    .run = run,
};
