/* SPDX-License-Identifier: MIT */
/*
 * The loop of a replay. The scheduler's id of a job is its index in the workload plus one. A preempted job
 * stops at once, inside the pass; it keeps its work and is charged the cost of the preemption as additional
 * work. A job whose node fails starts again from the beginning, also one that is parked there.
 */
#include "lab/sim/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/memory.h"
#include "lab/sim/names.h"
#include "lab/sim/talk.h"
#include "sched/cluster/node_index.h"

#define ROUNDS_MAX 1000U  // passes of one instant
#define IDLE_MAX   10000U // times that the scheduler's own timers may come to nothing on an idle cluster

static int64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void note(uint32_t **list, size_t *count, size_t *room, uint32_t job)
{
    if (*count == *room) {
        *room = *room == 0 ? 64 : *room * 2;
        *list = xreallocarray(*list, *room, sizeof(**list));
    }
    (*list)[(*count)++] = job;
}

/* --- drawing --- */

static void open_segments(struct engine *engine, uint32_t job, const struct allocation *allocation)
{
    engine->open_segment[job] = (uint32_t)engine->n_segments + 1;
    for (size_t i = 0; i < allocation->n_gpus; i++) {
        size_t n = engine->n_segments;
        if ((n & (n - 1)) == 0)
            engine->segments = xreallocarray(engine->segments, n == 0 ? 1 : 2 * n, sizeof(*engine->segments));
        engine->segments[engine->n_segments++] = (struct segment){
            .job = job,
            .node = allocation->gpus[i].node,
            .gpu = allocation->gpus[i].gpu,
            .share = allocation->gpus[i].slot == 0 ? 0 : allocation->gpus[i].share,
            .start_ms = engine->now_ms,
            .end_ms = -1,
        };
    }
}

static void close_segments(struct engine *engine, uint32_t job)
{
    for (size_t i = engine->open_segment[job] - 1U; i < engine->n_segments; i++) {
        if (engine->segments[i].job != job || engine->segments[i].end_ms >= 0)
            break;
        engine->segments[i].end_ms = engine->now_ms;
    }
}

static void add_point(struct engine *engine)
{
    struct curve_point point = {
        .at_ms = engine->now_ms, .waiting = engine->n_waiting, .gpu_milli = engine->gpu_milli
    };
    size_t n = engine->n_curve;
    if (n > 0 && engine->curve[n - 1].at_ms == point.at_ms) {
        engine->curve[n - 1] = point;
        return;
    }
    if ((n & (n - 1)) == 0)
        engine->curve = xreallocarray(engine->curve, n == 0 ? 1 : 2 * n, sizeof(*engine->curve));
    engine->curve[engine->n_curve++] = point;
}

/* --- reports to the scheduler --- */

static void fill_spec(const struct engine *engine, uint32_t number, struct sched_job_spec *ret)
{
    const struct sim_job *job = &engine->workload->jobs[number];
    const struct engine_options *options = &engine->options;
    uint32_t group = job->group + 1;
    *ret = (struct sched_job_spec){
        .id = (uint64_t)number + 1,
        .submit_ms = job->submit_ms,
        .key = {
            .uid = job->user + 1,
            .gid = group,
            .limit_ms = options->has_limits ? job->wall_ms : 0,
            .command_hash = hash_bytes(hash_bytes(job->command_hash, &group, sizeof(group)), &job->gpus, sizeof(job->gpus)),
            .request = {
                .gpus = job->gpus,
                .share = job->share,
                .cpu_milli = job->cpu_milli,
                .memory = job->memory,
                .model = job->model == 0 ? NULL : engine->workload->models.items[job->model],
            },
        },
    };
    if (options->estimate == ESTIMATE_TRACE)
        ret->key.estimate_ms = job->pred_ms;
    else if (options->settings->policy->is_oracle || options->estimate == ESTIMATE_EXACT)
        ret->key.estimate_ms = job->duration_ms > 0 ? job->duration_ms : 1;
    else if (options->estimate == ESTIMATE_WALLTIME)
        ret->key.estimate_ms = job->wall_ms;
    if (options->parking.is_on && !options->parking.is_auto) // the scheduler binds what it parks
        parking_bind(&engine->parking, number, &ret->key.request);
}

/* --- what the scheduler decides --- */

/* It starts, or returns: of all jobs, what part of its own run was one parked for at most? */
static void note_parked(struct engine *engine, struct job_result *result)
{
    if (!result->is_parked)
        return;
    result->is_parked = false;
    result->parked_ms += engine->now_ms - result->since_ms;
    double part = (double)result->parked_ms / (double)(result->ran_ms > 0 ? result->ran_ms : 1);
    engine->most_parked = part > engine->most_parked ? part : engine->most_parked;
}

static uint64_t on_start(void *arg, uint64_t id, const struct allocation *allocation)
{
    struct engine *engine = arg;
    uint32_t number = (uint32_t)(id - 1);
    struct job_result *result = &engine->results[number];
    result->wait_ms += engine->now_ms - result->since_ms;
    note_parked(engine, result);
    if (result->start_ms < 0) {
        result->start_ms = engine->now_ms;
        result->estimate_ms = sched_likely_ms(engine->sched, id);
        if (engine->options.forecasts > 0)
            made_forecasts_start(&engine->made, number, engine->now_ms);
    }
    result->since_ms = engine->now_ms;
    result->is_running = true;
    result->generation++;
    result->gpu_milli = 0;
    if (engine->options.parking.is_on) {
        parking_remove(&engine->parking, number);
        allocation_clear(&engine->places[number]);
        allocation_copy(&engine->places[number], allocation);
        result->delay_ms = parking_delay(&engine->parking, allocation, engine->now_ms);
    }
    for (size_t i = 0; i < allocation->n_gpus; i++)
        result->gpu_milli += allocation->gpus[i].slot == 0 ? SHARE_WHOLE : allocation->gpus[i].share;
    engine->gpu_milli += result->gpu_milli;
    engine->n_waiting--;
    if (engine->options.draws)
        open_segments(engine, number, allocation);
    note(&engine->started, &engine->n_started, &engine->started_room, number);
    return id;
}

/* It holds nothing any more. */
static void leave(struct engine *engine, uint32_t number)
{
    struct job_result *result = &engine->results[number];
    engine->gpu_milli -= result->gpu_milli;
    result->is_running = false;
    result->generation++;
    if (engine->options.draws)
        close_segments(engine, number);
}

/* --- parking --- */

/* Since it runs; while the contents of others leave its GPUs it does nothing. */
static int64_t worked_ms(const struct engine *engine, const struct job_result *result)
{
    int64_t ms = engine->now_ms - result->since_ms - result->delay_ms;
    return ms > 0 ? ms : 0;
}

static bool on_may_preempt(void *arg, uint64_t id)
{
    const struct engine *engine = arg;
    uint32_t number = (uint32_t)(id - 1);
    return parking_allows(&engine->parking, sched_cluster(engine->sched), number, &engine->places[number]);
}

/* From now on it waits for its place of return, or no longer. */
static void bind_place(struct engine *engine, uint32_t number)
{
    struct sched_job_spec spec;
    if (engine->options.parking.where == PARKING_ANY || engine->options.parking.is_auto)
        return;
    fill_spec(engine, number, &spec);
    sched_edit(engine->sched, engine->now_ms, &spec);
}

/* What was parked there is lost. Those jobs start again, anywhere. */
static void lose_parked(struct engine *engine, uint32_t node)
{
    for (uint32_t number = 0; number < engine->next_arrival; number++) {
        struct job_result *result = &engine->results[number];
        const struct parked *parked = &engine->parking.jobs[number];
        if (parked->node_name == NULL || parked->node != node)
            continue;
        int64_t done_ms = engine->workload->jobs[number].duration_ms - result->work_ms;
        engine->lost_gpu_ms += (double)(done_ms > 0 ? done_ms : 0) * (double)parked->gpu_milli / SHARE_WHOLE;
        parking_remove(&engine->parking, number);
        result->is_parked = false;
        result->ran_ms = result->parked_ms = 0;
        struct sched_job_spec spec;
        fill_spec(engine, number, &spec);
        result->work_ms = engine->workload->jobs[number].duration_ms;
        engine->n_interruptions++;
        sched_withdraw(engine->sched, engine->now_ms, spec.id);
        sched_submit(engine->sched, engine->now_ms, &spec);
    }
}

/* It leaves its GPUs, with its work. Returns how much it has done. */
static int64_t give_way(struct engine *engine, uint32_t number, bool is_parked)
{
    struct job_result *result = &engine->results[number];
    const struct sim_job *job = &engine->workload->jobs[number];
    int64_t cost_ms = is_parked ? parking_add(&engine->parking, sched_cluster(engine->sched), number,
                                      &engine->places[number], engine->now_ms)
                                : sched_preempt_cost(engine->options.settings, job->gpus);
    leave(engine, number);
    result->work_ms += cost_ms - worked_ms(engine, result);
    result->ran_ms += engine->now_ms - result->since_ms;
    result->preemptions++;
    result->since_ms = engine->now_ms;
    engine->n_preemptions++;
    engine->n_waiting++;
    engine->lost_gpu_ms += (double)cost_ms * result->gpu_milli / SHARE_WHOLE;
    /* Work kept, less what giving way costs: so the scheduler's "left" is the truth of this clock. */
    return job->duration_ms - result->work_ms;
}

/* By the rule of the scheduler (sched/sched_guest.c). */
static bool on_may_park(void *arg, uint64_t id)
{
    const struct engine *engine = arg;
    uint32_t number = (uint32_t)(id - 1);
    if (!engine->results[number].is_running)
        return !engine->parking.refuses[number];
    return parking_allows(&engine->parking, sched_cluster(engine->sched), number, &engine->places[number]);
}

/* At most once does it lose its work because of parked jobs. */
static bool on_may_borrow(void *arg, uint64_t id)
{
    const struct engine *engine = arg;
    uint32_t number = (uint32_t)(id - 1);
    return engine->parking.refuses[number] && engine->results[number].reclaims == 0;
}

static void on_park(void *arg, uint64_t id, uint64_t guest)
{
    struct engine *engine = arg;
    uint32_t number = (uint32_t)(id - 1);
    int64_t done_ms = give_way(engine, number, true);
    engine->results[number].is_parked = true;
    sched_parked(engine->sched, engine->now_ms, id, done_ms);
}

/* All that it has done is lost. Returns what it has done. */
static int64_t start_over(struct engine *engine, uint32_t number, int64_t done_ms)
{
    struct job_result *result = &engine->results[number];
    int64_t lost_ms = done_ms > 0 ? done_ms : 0;
    engine->lost_gpu_ms += (double)lost_ms * result->gpu_milli / SHARE_WHOLE;
    result->work_ms += lost_ms;
    result->ran_ms = result->parked_ms = 0;
    return done_ms - lost_ms;
}

/* At once: the scheduler may then count on its GPUs in the same pass. A policy preempts only jobs that keep
 * their work. */
static void on_preempt(void *arg, uint64_t id, const char *why)
{
    struct engine *engine = arg;
    uint32_t number = (uint32_t)(id - 1);
    bool is_parked = engine->options.parking.is_on && !engine->options.parking.is_auto;
    int64_t done_ms = give_way(engine, number, is_parked);
    if (engine->options.parking.is_auto)
        done_ms = start_over(engine, number, done_ms);
    sched_stopped(engine->sched, engine->now_ms, id, done_ms);
    if (is_parked)
        bind_place(engine, number);
}

/* Of one that cannot be parked, by the rule of the scheduler. */
static void on_reclaim(void *arg, uint64_t id, uint64_t parked)
{
    struct engine *engine = arg;
    engine->results[id - 1].reclaims++;
    engine->n_reclaims++;
    on_preempt(engine, id, NULL);
}

/* --- nodes that fail --- */

static bool is_on_node(const struct allocation *allocation, uint32_t node)
{
    for (size_t i = 0; i < allocation->n_nodes; i++)
        if (allocation->nodes[i].node == node)
            return true;
    return false;
}

static void interrupt_job(struct engine *engine, uint32_t number)
{
    struct job_result *result = &engine->results[number];
    engine->lost_gpu_ms += (double)(engine->now_ms - result->since_ms) * result->gpu_milli / SHARE_WHOLE;
    leave(engine, number);
    result->work_ms = engine->workload->jobs[number].duration_ms;
    result->ran_ms = result->parked_ms = 0;
    result->since_ms = engine->now_ms;
    engine->n_interruptions++;
    engine->n_waiting++;
    sched_stopped(engine->sched, engine->now_ms, (uint64_t)number + 1, 0);
    if (engine->options.parking.is_on)
        bind_place(engine, number);
}

/* Failures are rare, so no list of the jobs of each node is kept. */
static void interrupt_node(struct engine *engine, uint32_t node)
{
    struct sched_job_status status;
    for (uint32_t number = 0; number < engine->next_arrival; number++)
        if (engine->results[number].is_running &&
            sched_job_status(engine->sched, (uint64_t)number + 1, engine->now_ms, &status) &&
            is_on_node(status.allocation, node))
            interrupt_job(engine, number);
}

static void on_failures(struct engine *engine)
{
    uint32_t number;
    bool is_up;
    while (failures_take(&engine->failures, engine->now_ms, &number, &is_up)) {
        struct cluster *cluster = sched_cluster(engine->sched);
        struct cluster_node *node = &cluster->nodes[number];
        node->is_up = is_up;
        cluster_touch(cluster, node);
        if (!is_up)
            interrupt_node(engine, number);
        if (!is_up && engine->options.parking.is_on)
            lose_parked(engine, number);
    }
}

/* --- one instant --- */

static void on_ends(struct engine *engine)
{
    while (engine->ends.count > 0 && engine->ends.items[0].at_ms <= engine->now_ms) {
        struct heap_item event = heap_pop(&engine->ends);
        struct job_result *result = &engine->results[event.number];
        if (result->generation != event.detail)
            continue;
        leave(engine, event.number);
        result->end_ms = engine->now_ms;
        engine->n_done++;
        sched_ended(engine->sched, engine->now_ms, (uint64_t)event.number + 1,
            engine->workload->jobs[event.number].duration_ms);
    }
}

static void on_arrivals(struct engine *engine)
{
    const struct workload *workload = engine->workload;
    while (engine->next_arrival < workload->n_jobs &&
           workload->jobs[engine->next_arrival].submit_ms <= engine->now_ms) {
        uint32_t number = (uint32_t)engine->next_arrival++;
        struct sched_job_spec spec;
        struct error err = { 0 };
        fill_spec(engine, number, &spec);
        if (sched_check(engine->sched, &spec, &err) < 0) {
            if (engine->n_refused++ == 0)
                (void)snprintf(engine->first_refusal, sizeof(engine->first_refusal), "%s", err.message);
            engine->results[number].is_refused = true;
            continue;
        }
        engine->results[number].since_ms = engine->now_ms;
        engine->results[number].work_ms = workload->jobs[number].duration_ms;
        if (engine->options.parking.is_on)
            parking_know(&engine->parking, number, workload->jobs[number].command_hash);
        engine->n_waiting++;
        sched_submit(engine->sched, engine->now_ms, &spec);
    }
}

static bool is_pass_due(const struct engine *engine)
{
    if (engine->options.tick_ms > 0 && engine->now_ms % engine->options.tick_ms != 0)
        return false;
    return sched_is_dirty(engine->sched) || sched_next_ms(engine->sched) <= engine->now_ms;
}

/* One pass and what follows from it. */
static void pass(struct engine *engine)
{
    engine->n_started = 0;
    int64_t before_ns = engine->options.is_timed ? clock_ns() : 0;
    sched_pass(engine->sched, engine->now_ms);
    if (engine->options.is_timed)
        samples_add(&engine->pass_ns, (double)(clock_ns() - before_ns));
    for (size_t i = 0; i < engine->n_started; i++) {
        uint32_t number = engine->started[i];
        struct job_result *result = &engine->results[number];
        if (!result->is_running) // it was preempted in the same pass
            continue;
        sched_started(engine->sched, engine->now_ms, (uint64_t)number + 1);
        struct heap_item event = { .at_ms = engine->now_ms + result->delay_ms + result->work_ms,
            .number = number,
            .detail = result->generation };
        heap_push(&engine->ends, event);
    }
}

static int decide(struct engine *engine, struct error *err)
{
    for (unsigned round = 0; is_pass_due(engine); round++) {
        if (round == ROUNDS_MAX)
            return error_set(err, -EPROTO,
                "the scheduler still changes its decisions after %u passes at %lld ms", ROUNDS_MAX,
                (long long)engine->now_ms);
        pass(engine);
        /* A timer that is due again at once would repeat forever; a decision was made, so continue. */
        if (!sched_is_dirty(engine->sched))
            break;
    }
    return 0;
}

/* --- time --- */

static int64_t next_ms(struct engine *engine)
{
    const struct workload *workload = engine->workload;
    int64_t next = failures_next_ms(&engine->failures);
    while (engine->ends.count > 0 &&
           engine->results[engine->ends.items[0].number].generation != engine->ends.items[0].detail)
        (void)heap_pop(&engine->ends);
    if (engine->ends.count > 0 && engine->ends.items[0].at_ms < next)
        next = engine->ends.items[0].at_ms;
    if (engine->next_arrival < workload->n_jobs && workload->jobs[engine->next_arrival].submit_ms < next)
        next = workload->jobs[engine->next_arrival].submit_ms;
    int64_t pass_ms = TIME_NEVER, tick_ms = engine->options.tick_ms;
    if (engine->n_waiting > 0 || engine->gpu_milli > 0)
        pass_ms = sched_is_dirty(engine->sched) ? engine->now_ms + 1 : sched_next_ms(engine->sched);
    if (pass_ms <= engine->now_ms)
        pass_ms = engine->now_ms + 1;
    if (tick_ms > 0 && pass_ms != TIME_NEVER)
        pass_ms = (pass_ms + tick_ms - 1) / tick_ms * tick_ms;
    return pass_ms < next ? pass_ms : next;
}

static void advance(struct engine *engine, int64_t to_ms)
{
    const struct workload *workload = engine->workload;
    double elapsed = (double)(to_ms - engine->now_ms);
    int64_t last_ms = workload->jobs[workload->n_jobs - 1].submit_ms;
    if (engine->now_ms < last_ms)
        engine->busy_until_last += (double)engine->gpu_milli / SHARE_WHOLE *
                                   (double)((to_ms < last_ms ? to_ms : last_ms) - engine->now_ms);
    if (engine->n_waiting > 0) {
        double total = (double)engine->nodes->gpus * SHARE_WHOLE;
        engine->waiting_ms += elapsed;
        engine->free_while_waiting += (total - (double)engine->gpu_milli) / SHARE_WHOLE * elapsed;
        engine->gang_while_waiting += node_index_most_whole(sched_cluster(engine->sched)->index) * elapsed;
    }
    engine->now_ms = to_ms;
}

static int loop(struct engine *engine, struct progress *progress, struct error *err)
{
    const struct workload *workload = engine->workload;
    for (unsigned idle = 0; idle < IDLE_MAX;) {
        on_ends(engine);
        on_failures(engine);
        on_arrivals(engine);
        int result = decide(engine, err);
        if (result < 0)
            return result;
        if (engine->options.plots)
            add_point(engine);
        if (engine->options.forecasts > 0)
            made_forecasts_add(&engine->made, engine->sched, engine->now_ms, (uint32_t)engine->next_arrival);
        size_t over = engine->n_done + engine->n_refused;
        progress_show(progress, over, workload->n_jobs);
        if (over == workload->n_jobs)
            return 0;
        int64_t to_ms = next_ms(engine);
        if (to_ms == TIME_NEVER)
            break;
        idle = engine->ends.count == 0 && engine->next_arrival == workload->n_jobs ? idle + 1 : 0;
        advance(engine, to_ms);
    }
    return error_set(err, -EDEADLK, "%zu jobs are waiting and can never start (from %lld s on)",
        engine->n_waiting, (long long)(engine->now_ms / 1000));
}

int engine_run(struct engine *engine, const struct workload *workload, const struct sim_nodes *nodes,
    const struct engine_options *options, struct error *err)
{
    *engine = (struct engine){ .workload = workload, .nodes = nodes, .options = *options };
    struct sched_callbacks callbacks = { .arg = engine, .start = on_start, .preempt = on_preempt };
    if (options->parking.is_auto) {
        callbacks.park = on_park;
        callbacks.may_park = on_may_park;
        callbacks.may_borrow = on_may_borrow;
        callbacks.reclaim = on_reclaim;
    } else if (options->parking.is_on) {
        callbacks.may_preempt = on_may_preempt;
    }
    if (options->parking.is_on) {
        engine->places = xcalloc(workload->n_jobs, sizeof(*engine->places));
    }
    parking_init(&engine->parking, &options->parking, nodes->count, workload->n_jobs);
    int64_t begin_ns = clock_ns();
    engine->sched = sched_new(options->settings, &callbacks);
    nodes_fill_cluster(nodes, sched_cluster(engine->sched));
    engine->results = xcalloc(workload->n_jobs, sizeof(*engine->results));
    for (size_t i = 0; i < workload->n_jobs; i++)
        engine->results[i].start_ms = engine->results[i].end_ms = -1;
    if (options->draws)
        engine->open_segment = xcalloc(workload->n_jobs, sizeof(*engine->open_segment));
    if (options->forecasts > 0)
        made_forecasts_init(&engine->made, workload->n_jobs, workload->jobs[workload->n_jobs - 1].submit_ms,
            options->forecasts);
    failures_init(&engine->failures, nodes->count, options->failure_ms, options->repair_ms,
        workload->jobs[workload->n_jobs - 1].submit_ms, options->seed);
    struct progress progress;
    progress_begin(&progress, options->is_progress);
    int result = loop(engine, &progress, err);
    progress_end(&progress);
    engine->counts = *sched_counts(engine->sched);
    engine->wall_s = (double)(clock_ns() - begin_ns) / 1e9;
    for (size_t i = 0; i < engine->pass_ns.count; i++)
        engine->sched_s += engine->pass_ns.values[i] / 1e9;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        engine->peak_memory_bytes = (size_t)usage.ru_maxrss * 1024;
    return result;
}

void engine_clear(struct engine *engine)
{
    sched_free(engine->sched);
    heap_clear(&engine->ends);
    failures_clear(&engine->failures);
    for (size_t i = 0; engine->places != NULL && i < engine->workload->n_jobs; i++)
        allocation_clear(&engine->places[i]);
    free(engine->places);
    parking_clear(&engine->parking);
    samples_clear(&engine->pass_ns);
    free(engine->results);
    free(engine->started);
    free(engine->segments);
    free(engine->open_segment);
    free(engine->curve);
    made_forecasts_clear(&engine->made);
    *engine = (struct engine){ 0 };
}
