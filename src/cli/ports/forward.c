/* SPDX-License-Identifier: MIT */
/* mgpu forward: ports of a running job as ports of this machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "cli/follow/follow.h"
#include "cli/ports/forwarding.h"
#include "cli/ports/ports.h"
#include "cli/ports/running.h"

#define TARGETS_MAX 64

struct forward_options {
    uint32_t rank;
};

static const struct option_row rows[] = {
    { 0, "rank", "N", "for a job on several nodes: rank N, from 0 (0)",
        OPTION_INNER(count, struct forward_options, rank), OPTION_RANGE(0, UINT32_MAX) },
    { 0 },
};

struct targets {
    struct target items[TARGETS_MAX];
    size_t count;
};

static void targets_clear(struct targets *targets)
{
    for (size_t i = 0; i < targets->count; i++)
        target_clear(&targets->items[i]);
}

static int parse(int argc, char **argv, struct targets *targets, struct error *err)
{
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no job and port given");
        return error_hint(err, "for example: mgpu forward 42 8888");
    }
    if (argc == 1) {
        (void)error_set(err, -EINVAL, "no port given");
        return error_hint(
            err, "for example: mgpu forward %.60s 8888, or 9000:8888 for port 9000 here", argv[0]);
    }
    if (argc - 1 > TARGETS_MAX)
        return error_set(err, -E2BIG, "at most %d ports in one command, not %d", TARGETS_MAX, argc - 1);
    for (int i = 1; i < argc; i++) {
        int r = target_parse(argv[i], &targets->items[targets->count], err);
        if (r < 0)
            return r;
        targets->count++;
    }
    return 0;
}

static void print(const struct call *call, const struct forwarding *forwarding)
{
    for (size_t i = 0; i < forwarding->count && !call->is_quiet; i++) {
        _cleanup_free_ char *local = target_local_name(&forwarding->targets[i]);
        _cleanup_free_ char *remote = target_remote_name(&forwarding->targets[i]);
        (void)printf("%s -> %s of job %s\n", local, remote, forwarding->job);
    }
    (void)fflush(stdout);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct forward_options *options = call->options;
    _cleanup_(targets_clear) struct targets targets = { 0 };
    _cleanup_free_ char *job = NULL;
    int r = parse(argc, argv, &targets, err);
    if (r == 0)
        r = running_job(call, argv[0], LEAVER_FORWARD, &job, err);
    if (r != 0)
        return r;
    _cleanup_(forwarding_close) struct forwarding forwarding = { .job = job, .rank = options->rank };
    r = forwarding_open(&forwarding, targets.items, targets.count, err);
    if (r < 0)
        return r;
    print(call, &forwarding);
    r = forwarding_run(call, &forwarding, err);
    return r == FORWARDING_JOB_ENDED ? running_report_end(call, job, err) : r;
}

const struct command command_forward = {
    .name = "forward",
    .aliases = { "port-forward" },
    .usage = "[OPTIONS] JOB [LOCAL:]PORT...",
    .help = "Make ports of a running job available on this machine",
    .detail =
        "PORT is a TCP port on the job's node or the path of a unix socket, LOCAL a port or path here (the\n"
        "same port; 0: any free one). Only your own processes can connect. Ctrl-C ends it, the job "
        "continues.\n"
        "Exit status: 0 after Ctrl-C, otherwise that of the job.",
    .tables = { rows },
    .options_size = sizeof(struct forward_options),
    .takes_jobs = true,
    .job_states = "running",
    .run = run,
};
