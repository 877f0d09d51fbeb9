/* SPDX-License-Identifier: MIT */
/* mgpu-sim journal: replays the journal of a live system through the scheduler and compares each decision. */
#include <errno.h>
#include <stdio.h>

#include "base/memory.h"
#include "lab/sim/replay/replay.h"
#include "lab/sim/talk.h"

static void print_counts(const struct replay_counts *counts, bool is_same)
{
    if (is_same)
        (void)printf("%zu decisions, all identical (%zu events, %zu start%s of mgpud)\n", counts->decisions,
            counts->events, counts->starts, counts->starts == 1 ? "" : "s");
    else if (counts->decisions > 0)
        (void)printf("%zu identical decisions; the next one differs\n", counts->decisions);
}

static int set_help(void *target, const char *value, struct error *err)
{
    *(bool *)target = true;
    return 0;
}

static const struct option_row rows[] = { { 'h', "help", NULL, "this text", set_help }, { 0 } };

static int run(int argc, char **argv)
{
    bool is_help = false;
    struct error err = { 0 };
    int first = 0;
    if (talk_parse(&command_journal, argc, argv, rows, &is_help, 0, 1, &first, &err) < 0)
        return talk_error(&err, SIM_USAGE);
    if (is_help) {
        talk_help(&command_journal, rows);
        return SIM_OK;
    }
    if (first == argc) {
        (void)error_set(&err, -EINVAL, "journal requires a file");
        return talk_error(&err, SIM_USAGE);
    }
    _cleanup_(replay_freep) struct replay *replay = replay_new();
    int result = replay_file(replay, argv[first], &err);
    struct replay_counts counts = replay_counts(replay);
    if (result == 0 || result == -EBADMSG)
        print_counts(&counts, result == 0);
    return result < 0 ? talk_error(&err, SIM_FAILED) : SIM_OK;
}

const struct sim_command command_journal = {
    .name = "journal",
    .summary = "replay the journal of an mgpud and compare the decisions",
    .usage = "journal FILE",
    .run = run,
};
