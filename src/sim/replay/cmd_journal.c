/* SPDX-License-Identifier: MIT */
/* mgpu-sim journal: replays the journal of a live system through the scheduler and compares each decision. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim/journal.h"
#include "sim/replay.h"
#include "sim/talk.h"
#include "sim/workload.h"

static int read_line(struct line_reader *reader, char *line, struct error *err)
{
    struct replay *replay = reader->state;
    struct job_event event;
    uint64_t stem;
    reader->is_lost = true; // no line of it may be left out
    if (*line == '\0')
        return 0;
    if (reader->number == 1)
        return journal_head(line, err);
    int result = journal_line(line, &event, &stem, err);
    if (result == 0)
        result = replay_event(replay, &event, stem, err);
    job_event_clear(&event);
    return result;
}

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
    (void)value, (void)err;
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
    struct trace_options options = { 0 };
    struct workload nothing = { 0 };
    struct line_reader reader = {
        .path = argv[first], .workload = &nothing, .options = &options, .state = replay, .read = read_line
    };
    int result = lines_read(&reader, &err);
    if (result == 0)
        result = replay_end(replay, &err);
    struct replay_counts counts = replay_counts(replay);
    if (result == 0 && counts.events == 0)
        result = error_set(&err, -EINVAL, "%.300s has no events", argv[first]);
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
