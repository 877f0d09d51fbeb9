/* SPDX-License-Identifier: MIT */
/*
 * Slurm's deadline is the time by which a job must have ended, and mgpu's the time by which it must have
 * started. The difference is the minimum time that the job needs: --time-min, else --time, else a minute. It
 * is stored with the job, so that the deadline is displayed as it was given.
 */
#include "cli/submit/slurm_times.h"

#include <errno.h>
#include <inttypes.h>

#include "base/memory.h"
#include "base/utc.h"
#include "cli/options/ask.h"
#include "cli/submit/slurm_values.h"
#include "job/slurm.h"

#define MILLI         1000
#define MINUTE_S      60
#define LEAST_USUAL_S 60

#define NO_SUCH_LIMIT "Requested time limit is invalid (missing or exceeds some limit)"
#define NO_SUCH_LEAST "Invalid time-min specification (exceeds job's time or other limits)"

static void note_seconds(struct slurm_job *job, const char *name, int64_t seconds)
{
    _cleanup_free_ char *text = xasprintf("%" PRId64, seconds);
    slurm_job_note_set(job, name, text);
}

static int64_t least_of(const struct slurm_job *job)
{
    return job->least_s > 0 ? job->least_s : job->time_s > 0 ? job->time_s : LEAST_USUAL_S;
}

/* What slurmctld refuses, and what it ends at --begin. */
static int check(const struct slurm_job *job, int64_t earliest_ms, struct error *err)
{
    int64_t left_s = job->deadline_ms / MILLI - earliest_ms / MILLI;
    if (job->deadline_ms != 0 && job->begin_ms > job->deadline_ms)
        return error_mark(
            err, SLURM_BOTH, error_set(err, -EINVAL, "Incompatible begin and deadline time specification"));
    if (job->time_s > 0 && job->least_s > job->time_s)
        return error_set(err, -EINVAL, "%s", NO_SUCH_LEAST);
    if (job->deadline_ms == 0)
        return 0;
    if (left_s >= 0 && left_s < job->least_s)
        return error_set(err, -EINVAL, "%s", NO_SUCH_LEAST);
    return left_s <= 0 || (job->least_s == 0 && left_s < job->time_s)
               ? error_set(err, -EINVAL, "%s", NO_SUCH_LIMIT)
               : 0;
}

static int set_latest_start(struct slurm_job *job, int64_t wall_ms, const char *option, struct error *err)
{
    char utc[32];
    utc_format(wall_ms, utc, sizeof(utc));
    return ask_set(job->submit.ask, NULL, "deadline", option, utc, err);
}

/* A limit that would end after the deadline however early the job starts is shortened, to whole minutes. A
 * job that must start at once has one second to do so. */
static int resolve_deadline(struct slurm_job *job, int64_t earliest_ms, struct error *err)
{
    int64_t start_ms = job->deadline_ms - least_of(job) * MILLI;
    int64_t most_s = (job->deadline_ms - earliest_ms) / MILLI;
    if (most_s > MINUTE_S)
        most_s -= most_s % MINUTE_S;
    if (start_ms < earliest_ms + MILLI)
        start_ms = earliest_ms + MILLI;
    if (job->time_s > most_s || job->time_s == SLURM_NO_LIMIT)
        job->time_s = most_s;
    note_seconds(job, SLURM_NOTE_LEFT_AT_DEADLINE, (job->deadline_ms - start_ms) / MILLI);
    return set_latest_start(job, start_ms, "--deadline", err);
}

int slurm_settle_times(struct slurm_job *job, int64_t now_ms, struct error *err)
{
    int64_t earliest_ms = job->begin_ms > now_ms ? job->begin_ms : now_ms;
    int r = check(job, earliest_ms, err);
    if (r == 0 && job->deadline_ms != 0)
        r = resolve_deadline(job, earliest_ms, err);
    if (r == 0 && job->immediate_s > 0) {
        job->immediate_until_ms = now_ms + job->immediate_s * MILLI;
        r = set_latest_start(job, job->immediate_until_ms, "--immediate", err);
    }
    if (job->least_s > 0)
        note_seconds(job, SLURM_NOTE_TIME_MIN, job->least_s);
    if (job->time_s == SLURM_NO_LIMIT)
        (void)json_object_set_new(job->submit.ask, "no_time_limit", json_true());
    else if (job->time_s != SLURM_UNSET)
        (void)json_object_set_new(job->submit.ask, "time_limit", json_integer(job->time_s));
    return r;
}
