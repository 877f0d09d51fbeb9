/* SPDX-License-Identifier: MIT */
/*
 * Each replay runs in a child, which writes its outcome into memory that is shared with the parent: several
 * run at the same time, and one that aborts costs its own variant alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "lab/sim/engine.h"
#include "lab/sim/tune/tune.h"

static size_t outcome_size(const struct workload *workload)
{
    return sizeof(struct tune_outcome) + workload->n_jobs * sizeof(struct tune_job);
}

static struct tune_outcome *outcome_new(const struct workload *workload)
{
    void *memory =
        mmap(NULL, outcome_size(workload), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        abort(); // memory
    struct tune_outcome *outcome = memory;
    outcome->status = -EINPROGRESS;
    return outcome;
}

static void write_outcome(const struct engine *engine, struct tune_outcome *outcome)
{
    for (size_t i = 0; i < engine->workload->n_jobs; i++)
        outcome->jobs[i] = (struct tune_job){ engine->results[i].wait_ms, engine->results[i].end_ms };
    if (engine->waiting_ms > 0)
        outcome->idle_gpus = engine->free_while_waiting / engine->waiting_ms;
}

bool tune_parks(const struct sched_settings *settings)
{
    return settings->parking == PARKING_AUTO && settings->policy->preempting == PREEMPT_NONE &&
           settings->policy->backfill != BACKFILL_NONE;
}

/* What parking costs is what the site has measured, or what the model assumes. */
static void assume_parking(struct sched_settings *settings, struct parking_options *ret)
{
    struct error ignored;
    if (!tune_parks(settings) || parking_options_read(ret, "", &ignored) < 0)
        return;
    ret->is_auto = true;
    if (settings->park_cost_ms > 0) {
        ret->save_ms = settings->park_cost_ms / 2;
        ret->load_ms = settings->park_cost_ms - ret->save_ms;
        ret->save_gpu_ms = ret->load_gpu_ms = 0;
    }
    parking_set_cost(ret, settings);
    settings->preempt_grace_ms = 0; // who is preempted stops at once
}

static _Noreturn void replay(const struct workload *workload, const struct sim_nodes *nodes,
    const struct sched_settings *settings, struct tune_outcome *outcome)
{
    struct engine engine = { 0 };
    struct error err = { 0 };
    struct sched_settings assumed = *settings;
    struct engine_options options = { .settings = &assumed, .has_limits = true };
    assume_parking(&assumed, &options.parking);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int r = engine_run(&engine, workload, nodes, &options, &err);
    if (r == 0)
        write_outcome(&engine, outcome);
    (void)snprintf(outcome->problem, sizeof(outcome->problem), "%.255s", err.message);
    outcome->status = r;
    engine_clear(&engine);
    _exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* One child less; -EIO when it did not complete its replay. */
static int wait_for_one(const struct tune_variant *variants, size_t n_variants, const pid_t *pids,
    struct tune_outcome *const *outcomes, struct error *err)
{
    int status = 0;
    pid_t pid = 0;
    do
        pid = waitpid(-1, &status, 0);
    while (pid < 0 && errno == EINTR);
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot wait for a replay");
    for (size_t i = 0; i < n_variants; i++) {
        if (pids[i] != pid || outcomes[i]->status == 0)
            continue;
        if (WIFSIGNALED(status))
            return error_set(
                err, -EIO, "%s: the replay was ended by signal %d", variants[i].text, WTERMSIG(status));
        return error_set(err, -EIO, "%s: %s", variants[i].text, outcomes[i]->problem);
    }
    return 0;
}

int tune_run(const struct workload *workload, const struct sim_nodes *nodes,
    const struct tune_variant *variants, size_t n_variants, unsigned parallel,
    struct tune_outcome **ret_outcomes, struct error *err)
{
    pid_t pids[TUNE_VARIANTS_MAX] = { 0 };
    unsigned running = 0;
    int r = 0;
    for (size_t i = 0; i < n_variants; i++)
        ret_outcomes[i] = outcome_new(workload);
    (void)fflush(NULL);
    for (size_t i = 0; i < n_variants && r == 0; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            replay(workload, nodes, &variants[i].settings, ret_outcomes[i]);
        if (pids[i] < 0)
            r = error_set_errno(err, -errno, "cannot start a replay");
        else if (++running >= parallel) {
            r = wait_for_one(variants, n_variants, pids, ret_outcomes, err);
            running--;
        }
    }
    while (running-- > 0) {
        struct error later = { 0 };
        int one = wait_for_one(variants, n_variants, pids, ret_outcomes, r == 0 ? err : &later);
        r = r == 0 ? one : r;
    }
    return r;
}

void tune_free(struct tune_outcome **outcomes, size_t n_variants, const struct workload *workload)
{
    for (size_t i = 0; i < n_variants; i++)
        if (outcomes[i] != NULL)
            (void)munmap(outcomes[i], outcome_size(workload));
}
