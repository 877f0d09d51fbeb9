/* SPDX-License-Identifier: MIT */
/* mgpu-sim check: random cases that check the scheduler's properties. */
#include <stdio.h>

#include "base/option_values.h"
#include "lab/sim/check_run.h"
#include "lab/sim/talk.h"

#define RUNS_DEFAULT 1000
#define RUNS_MAX     1000000000

struct check_call {
    int64_t seed, runs;
    const char *replay;
    bool is_shrink, is_help;
};

static const struct option_row rows[] = {
    { 0, "seed", "N", "of the first case (1)", OPTION_VALUE(integer, struct check_call, seed),
        OPTION_RANGE(0, INT64_MAX / 2) },
    { 0, "runs", "N", "number of cases, each with the next seed (1000)",
        OPTION_VALUE(integer, struct check_call, runs), OPTION_RANGE(1, RUNS_MAX) },
    { 0, "shrink", NULL, "reduce a failing case and print it for --replay",
        OPTION_VALUE(flag, struct check_call, is_shrink) },
    { 0, "replay", "FILE", "run this case instead of random ones",
        OPTION_VALUE(word, struct check_call, replay) },
    { 'h', "help", NULL, "this text", OPTION_VALUE(flag, struct check_call, is_help) },
    { 0 },
};

/* The case goes to standard output, what is wrong with it to standard error. */
static int report(struct sim_case *of, const struct check_call *call, const char *name, struct error *err)
{
    (void)fprintf(stderr, "mgpu-sim: %s: %s\n", name, err->message);
    if (call->is_shrink) {
        check_shrink(of, NULL);
        (void)check_run(of, NULL, err);
        (void)fprintf(stderr, "mgpu-sim: reduced to %zu jobs and %zu events: %s\n", of->n_jobs, of->n_events,
            err->message);
        case_write(of, stdout);
    }
    case_clear(of);
    return SIM_FAILED;
}

static int replay(const struct check_call *call)
{
    struct sim_case of = { 0 };
    struct error err = { 0 };
    if (case_read(&of, call->replay, &err) < 0) {
        case_clear(&of);
        return talk_error(&err, SIM_FAILED);
    }
    if (check_run(&of, NULL, &err) < 0)
        return report(&of, call, call->replay, &err);
    (void)printf("%s: %zu jobs, %zu events, all promises kept\n", call->replay, of.n_jobs, of.n_events);
    case_clear(&of);
    return SIM_OK;
}

static int run(int argc, char **argv)
{
    struct check_call call = { .seed = 1, .runs = RUNS_DEFAULT };
    struct error err = { 0 };
    int first = 0;
    if (talk_parse(&command_check, argc, argv, rows, &call, 0, 0, &first, &err) < 0)
        return talk_error(&err, SIM_USAGE);
    if (call.is_help) {
        talk_help(&command_check, rows);
        return SIM_OK;
    }
    if (call.replay != NULL)
        return replay(&call);
    size_t jobs = 0;
    for (int64_t seed = call.seed; seed < call.seed + call.runs; seed++) {
        struct sim_case of;
        char name[64];
        case_make(&of, (uint64_t)seed);
        jobs += of.n_jobs;
        (void)snprintf(name, sizeof(name), "check --seed %lld --runs 1", (long long)seed);
        if (check_run(&of, NULL, &err) < 0)
            return report(&of, &call, name, &err);
        case_clear(&of);
    }
    (void)printf("%lld cases with %zu jobs, seeds %lld to %lld: all promises kept\n", (long long)call.runs,
        jobs, (long long)call.seed, (long long)(call.seed + call.runs - 1));
    return SIM_OK;
}

const struct sim_command command_check = {
    .name = "check",
    .summary = "run random workloads against the scheduler's promises",
    .usage = "check [--seed N] [--runs N] [--shrink] [--replay FILE]",
    .run = run,
};
