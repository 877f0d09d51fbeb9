/* SPDX-License-Identifier: MIT */
/* The file of a journal, line by line, through a replay. */
#include <errno.h>

#include "lab/sim/journal.h"
#include "lab/sim/replay/replay.h"
#include "lab/sim/workload.h"

static int read_line(struct line_reader *reader, char *line, struct error *err)
{
    struct replay *replay = reader->state;
    struct job_event event;
    uint64_t command_hash;
    reader->is_lost = true; // no line of it may be left out
    if (*line == '\0')
        return 0;
    if (reader->number == 1)
        return journal_head(line, err);
    int result = journal_line(line, &event, &command_hash, err);
    if (result == 0)
        result = replay_event(replay, &event, command_hash, err);
    job_event_clear(&event);
    return result;
}

int replay_file(struct replay *replay, const char *path, struct error *err)
{
    struct trace_options options = { 0 };
    struct workload nothing = { 0 };
    struct line_reader reader = {
        .path = path, .workload = &nothing, .options = &options, .state = replay, .read = read_line
    };
    int result = lines_read(&reader, err);
    if (result == 0)
        result = replay_end(replay, err);
    if (result == 0 && replay_counts(replay).events == 0)
        result = error_set(err, -EINVAL, "%.300s has no events", path);
    return result;
}
