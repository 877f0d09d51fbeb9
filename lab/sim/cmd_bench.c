/* SPDX-License-Identifier: MIT */
/*
 * mgpu-sim bench: the scheduler with a queue much longer than the cluster is wide. It fills a cluster, loads
 * a queue of many classes, then ends one running job after the other and measures each pass: its CPU time and
 * the number of objects visited. Once with a small and once with a large cluster, to show the growth.
 *
 * In both, jobs run for half an hour on average, so that the number of other events between two ends (a job
 * reaches another stage, or exceeds its estimate) is the same: a cluster 100 times as large has 100 times as
 * many ends in the same time.
 */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "lab/sim/engine.h"
#include "lab/sim/random.h"
#include "lab/sim/samples.h"
#include "lab/sim/synthetic.h"
#include "lab/sim/talk.h"
#include "sched/sched.h"

#define SHAPES    10U
#define RUN_MAX_S 3600 // jobs run for up to so long, evenly
#define STEPS     60U  // in which the cluster was filled over the same time

struct bench_call {
    int64_t jobs, users, nodes, passes, replay, seed, shrink;
    bool is_json, is_help;
};

struct bench_figures {
    size_t jobs, nodes, classes, running;
    double load_s, bytes_per_job;
    struct summary pass_us, examined; // examined: queue and index work of one pass
    double starts_per_pass;
};

struct bench {
    struct sched *sched;
    uint64_t *running; // ids
    size_t n_running, room;
    struct random random;
    uint64_t last_id;
};

/* CPU time: others on the machine do not count. */
static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static uint64_t on_start(void *arg, uint64_t id, const struct allocation *allocation)
{
    struct bench *bench = arg;
    if (bench->n_running == bench->room) {
        bench->room = bench->room == 0 ? 1024 : bench->room * 2;
        bench->running = xreallocarray(bench->running, bench->room, sizeof(*bench->running));
    }
    bench->running[bench->n_running++] = id;
    return id;
}

static void on_preempt(void *arg, uint64_t id, const char *why)
{
    (void)arg, (void)id, (void)why; // no job here is preemptible
}

/* One class for each user and shape: widths, memory and CPUs differ. */
static void submit(struct bench *bench, uint32_t user, uint32_t shape, int64_t now_ms)
{
    static const uint32_t widths[SHAPES] = { 1, 2, 4, 8, 1, 1, 2, 4, 16, 1 };
    struct sched_job_spec spec = {
        .id = ++bench->last_id,
        .submit_ms = now_ms,
        .key = { .uid = user + 1,
            .gid = user % 20 + 1,
            .command_hash = shape,
            .request = { .gpus = widths[shape],
                .share = shape == 4 ? 500 : 0,
                .gpu_mem = shape == 5 ? 20ULL << 30 : 0,
                .cpu_milli = 1000 * (1 + shape) } },
    };
    sched_submit(bench->sched, now_ms, &spec);
}

/* Returns the time at which all is loaded. */
static int64_t load(
    struct bench *bench, const struct bench_call *call, int64_t scale, struct bench_figures *ret)
{
    uint32_t users = (uint32_t)(call->users / scale > 0 ? call->users / scale : 1);
    /* Jobs of one GPU until nothing fits any more: the queue's head waits. */
    int64_t gpus = call->nodes / scale * 8, jobs = call->jobs / scale, now_ms = 1, n_filled = 0;
    for (unsigned step = 1; step <= STEPS; step++, now_ms += RUN_MAX_S * INT64_C(1000) / STEPS) {
        for (; n_filled < gpus * step / STEPS; n_filled++)
            submit(bench, (uint32_t)random_below(&bench->random, users), 0, now_ms);
        sched_pass(bench->sched, now_ms);
    }
    size_t before = heap_bytes();
    double begin_s = now_s();
    for (int64_t i = 0; i < jobs; i++)
        submit(bench, (uint32_t)(i % users), (uint32_t)(i / users % SHAPES), now_ms++);
    sched_pass(bench->sched, now_ms);
    ret->load_s = now_s() - begin_s;
    ret->bytes_per_job = ((double)heap_bytes() - (double)before) / (double)jobs;
    ret->classes = users * SHAPES;
    ret->running = bench->n_running;
    return now_ms;
}

static void measure(const struct bench_call *call, int64_t scale, struct bench_figures *ret)
{
    struct bench bench = { .random = { .state = (uint64_t)call->seed } };
    struct sched_callbacks callbacks = { .arg = &bench, .start = on_start, .preempt = on_preempt };
    struct sched_settings settings;
    _cleanup_(nodes_clear) struct sim_nodes nodes = { 0 };
    struct samples pass_us = { 0 }, work = { 0 };
    char text[32];
    struct error err;
    sched_settings_init(&settings);
    (void)snprintf(text, sizeof(text), "%lldx8", (long long)(call->nodes / scale));
    (void)nodes_read(&nodes, text, &err);
    bench.sched = sched_new(&settings, &callbacks);
    nodes_fill_cluster(&nodes, sched_cluster(bench.sched));
    ret->jobs = (size_t)(call->jobs / scale);
    ret->nodes = nodes.count;
    int64_t now_ms = load(&bench, call, scale, ret);
    int64_t passes = (int64_t)ret->jobs / 4; // the queue stays long
    struct sched_counts before = *sched_counts(bench.sched);
    uint64_t starts = before.starts;
    for (int64_t i = 0; i < call->passes && i < passes && bench.n_running > 0; i++) {
        size_t at = random_below(&bench.random, bench.n_running);
        uint64_t id = bench.running[at];
        bench.running[at] = bench.running[--bench.n_running];
        now_ms += RUN_MAX_S * INT64_C(500) / (int64_t)bench.n_running + 1;
        double begin_s = now_s();
        sched_ended(bench.sched, now_ms, id, 1000 + (int64_t)random_below(&bench.random, RUN_MAX_S * 1000));
        sched_pass(bench.sched, now_ms);
        samples_add(&pass_us, (now_s() - begin_s) * 1e6);
        const struct sched_counts *counts = sched_counts(bench.sched);
        samples_add(&work, (double)(counts->queue_work + counts->index_work + counts->examined -
                                    before.queue_work - before.index_work - before.examined));
        before = *counts;
    }
    ret->starts_per_pass = pass_us.count > 0 ? (double)(before.starts - starts) / (double)pass_us.count : 0;
    samples_summarize(&pass_us, &ret->pass_us);
    samples_summarize(&work, &ret->examined);
    samples_clear(&pass_us);
    samples_clear(&work);
    sched_free(bench.sched);
    free(bench.running);
}

static int replay(const struct bench_call *call, double *ret_s, struct error *err)
{
    _cleanup_(workload_clear) struct workload workload = { 0 };
    _cleanup_(nodes_clear) struct sim_nodes nodes = { 0 };
    _cleanup_(engine_clear) struct engine engine = { 0 };
    struct sched_settings settings;
    struct engine_options options = { .settings = &settings };
    char text[40], trace[40];
    sched_settings_init(&settings);
    (void)snprintf(text, sizeof(text), "%lldx8", (long long)call->nodes);
    (void)snprintf(trace, sizeof(trace), "synthetic:%lld", (long long)call->replay);
    int result = nodes_read(&nodes, text, err);
    if (result == 0)
        result = synthetic_make(&workload, trace, &nodes, (uint64_t)call->seed, err);
    if (result == 0)
        workload_sort(&workload);
    double begin_s = now_s();
    if (result == 0)
        result = engine_run(&engine, &workload, &nodes, &options, err);
    *ret_s = now_s() - begin_s;
    return result;
}

static void print_json(const char *name, const struct bench_figures *figures)
{
    (void)printf(
        "  \"%s\": {\"queued_jobs\": %zu, \"classes\": %zu, \"nodes\": %zu, \"running_jobs\": %zu, "
        "\"load_s\": %.3f, \"bytes_per_job\": %.1f, \"median_pass_us\": %.2f, \"p99_pass_us\": %.2f, "
        "\"max_pass_us\": %.2f, \"median_work\": %.0f, \"p99_work\": %.0f, \"starts_per_pass\": %.3f},\n",
        name, figures->jobs, figures->classes, figures->nodes, figures->running, figures->load_s,
        figures->bytes_per_job, figures->pass_us.median, figures->pass_us.p99, figures->pass_us.max,
        figures->examined.median, figures->examined.p99, figures->starts_per_pass);
}

static void print_row(const char *name, const struct bench_figures *figures)
{
    (void)printf("%-6s %9zu %8zu %6zu %9.2f %10.0f %10.1f %10.1f %10.0f %10.0f\n", name, figures->jobs,
        figures->classes, figures->nodes, figures->load_s, figures->bytes_per_job, figures->pass_us.median,
        figures->pass_us.p99, figures->examined.median, figures->examined.p99);
}

static double ratio(double large, double small)
{
    return small > 0 ? large / small : 0;
}

static void print(const struct bench_call *call, const struct bench_figures *small,
    const struct bench_figures *large, double replay_s)
{
    double time = ratio(large->pass_us.median, small->pass_us.median);
    double mean = ratio(large->pass_us.mean, small->pass_us.mean);
    double work = ratio(large->examined.median, small->examined.median);
    if (call->is_json) {
        (void)printf("{\n");
        print_json("small", small);
        print_json("large", large);
        (void)printf("  \"growth\": {\"scale\": %lld, \"median_pass\": %.3f, \"mean_pass\": %.3f, "
                     "\"median_work\": %.3f},\n"
                     "  \"replay\": {\"jobs\": %lld, \"nodes\": %lld, \"cpu_s\": %.3f}\n}\n",
            (long long)call->shrink, time, mean, work, (long long)call->replay, (long long)call->nodes,
            replay_s);
        return;
    }
    (void)printf("%-6s %9s %8s %6s %9s %10s %10s %10s %10s %10s\n", "", "queued", "classes", "nodes",
        "load s", "bytes/job", "median us", "p99 us", "work", "p99 work");
    print_row("small", small);
    print_row("large", large);
    (void)printf("\nqueue and cluster %lld times as large: the median pass takes %.2f times as long (mean "
                 "%.2f), does %.2f "
                 "times as much\n",
        (long long)call->shrink, time, mean, work);
    if (call->replay > 0)
        (void)printf("%lld jobs replayed on %lld nodes in %.1f s of CPU time\n", (long long)call->replay,
            (long long)call->nodes, replay_s);
}

#define SET_NUMBER(member_, name_, least_, most_)                                                            \
    static int set_##member_(void *target, const char *value, struct error *err)                             \
    {                                                                                                        \
        return parse_integer(value, name_, least_, most_, &((struct bench_call *)target)->member_, err);     \
    }
SET_NUMBER(jobs, "--jobs", 100, 100000000)
SET_NUMBER(users, "--users", 1, 1000000)
SET_NUMBER(nodes, "--nodes", 1, SIM_NODES_MAX)
SET_NUMBER(passes, "--passes", 1, 10000000)
SET_NUMBER(replay, "--replay", 0, 100000000)
SET_NUMBER(seed, "--seed", 0, INT64_MAX)
SET_NUMBER(shrink, "--scale", 1, 10000)

static const struct option_row rows[] = {
    { 0, "jobs", "N", "waiting jobs (1000000)", set_jobs },
    { 0, "users", "N", "users, with 10 classes of requests each (1000)", set_users },
    { 0, "nodes", "N", "nodes of 8 GPUs (10000)", set_nodes },
    { 0, "passes", "N", "jobs that end, each followed by a pass (10000)", set_passes },
    { 0, "scale", "N", "divisor for the small queue and cluster (100)", set_shrink },
    { 0, "replay", "N", "synthetic jobs to replay at the end; 0: none (1000000)", set_replay },
    { 0, "seed", "N", "seed of the random numbers (1)", set_seed },
    { 0, "json", NULL, "print figures as JSON", OPTION_VALUE(flag, struct bench_call, is_json) },
    { 'h', "help", NULL, "this text", OPTION_VALUE(flag, struct bench_call, is_help) },
    { 0 },
};

static int run(int argc, char **argv)
{
    struct bench_call call = { .jobs = 1000000,
        .users = 1000,
        .nodes = 10000,
        .passes = 10000,
        .shrink = 100,
        .replay = 1000000,
        .seed = 1 };
    struct error err = { 0 };
    int first = 0;
    if (talk_parse(&command_bench, argc, argv, rows, &call, 0, 0, &first, &err) < 0)
        return talk_error(&err, SIM_USAGE);
    if (call.is_help) {
        talk_help(&command_bench, rows);
        return SIM_OK;
    }
    if (call.shrink > call.nodes || call.shrink > call.jobs) {
        (void)error_set(&err, -EINVAL, "--scale %lld leaves no nodes or no jobs", (long long)call.shrink);
        return talk_error(&err, SIM_USAGE);
    }
    struct bench_figures small = { 0 }, large = { 0 };
    double replay_s = 0;
    measure(&call, call.shrink, &small);
    measure(&call, 1, &large);
    if (call.replay > 0 && replay(&call, &replay_s, &err) < 0)
        return talk_error(&err, SIM_FAILED);
    print(&call, &small, &large, replay_s);
    return SIM_OK;
}

const struct sim_command command_bench = {
    .name = "bench",
    .summary = "measure the scheduler under a long queue on a large cluster",
    .usage = "bench [--jobs N] [--users N] [--nodes N] [--json] [OPTIONS]",
    .run = run,
};
