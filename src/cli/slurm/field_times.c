/* SPDX-License-Identifier: MIT */
/* Times and durations of a job in Slurm's format. */
#include "cli/slurm/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/term/field.h"
#include "cli/term/time_text.h"

#define MINUTE_S 60
#define MILLI    1000

#define TEXT(name) char *slurm_text_##name(const json_t *job, int64_t now_ms)

static char *number(int64_t value)
{
    return xasprintf("%" PRId64, value);
}

static int64_t run_seconds(const json_t *job)
{
    return (int64_t)field_number(job, "run_seconds", 0);
}

TEXT(limit)
{
    double limit = field_number(job, "time_limit", 0);
    (void)now_ms;
    return limit > 0 ? slurm_duration_text((int64_t)limit, false) : xstrdup("UNLIMITED");
}

TEXT(limit_raw)
{
    double limit = field_number(job, "time_limit", 0);
    (void)now_ms;
    return limit > 0 ? number((int64_t)limit / MINUTE_S) : xstrdup("UNLIMITED");
}

TEXT(used)
{
    (void)now_ms;
    return slurm_duration_text(run_seconds(job), false);
}

TEXT(left)
{
    int64_t limit = (int64_t)field_number(job, "time_limit", 0), used = run_seconds(job);
    (void)now_ms;
    return limit == 0 ? xstrdup("UNLIMITED") : slurm_duration_text(limit > used ? limit - used : 0, false);
}

TEXT(elapsed)
{
    (void)now_ms;
    return slurm_duration_text(run_seconds(job), true);
}

TEXT(elapsed_raw)
{
    (void)now_ms;
    return number(run_seconds(job));
}

/* Slurm's CPUTime is the time that the CPUs were allocated, whatever they did (sacct(1)). */
static int64_t allocated_cpu_s(const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *cpus = slurm_text_cpus(job, now_ms);
    return run_seconds(job) * strtoll(cpus, NULL, 10);
}

TEXT(cpu_time)
{
    return slurm_duration_text(allocated_cpu_s(job, now_ms), true);
}

TEXT(cpu_time_raw)
{
    return xasprintf("%" PRId64, allocated_cpu_s(job, now_ms));
}

static int64_t moment(const json_t *job, const char *key)
{
    return field_text(job, key) != NULL ? time_parse(field_text(job, key)) : 0;
}

TEXT(submitted)
{
    (void)now_ms;
    return slurm_time_shown(moment(job, "submitted_at"), "N/A");
}

TEXT(started)
{
    (void)now_ms;
    return slurm_time_shown(moment(job, "started_at"), "N/A");
}

/* Of a job that waits: when it is expected to start. */
TEXT(expected)
{
    int64_t started = moment(job, "started_at"), eta = moment(job, "eta"), begin = moment(job, "begin");
    (void)now_ms;
    return slurm_time_shown(started != 0 ? started : eta != 0 ? eta : begin, "N/A");
}

TEXT(ended)
{
    int64_t ended = moment(job, "ended_at"), started = moment(job, "started_at");
    int64_t limit = (int64_t)(field_number(job, "time_limit", 0) * MILLI);
    (void)now_ms;
    return slurm_time_shown(ended != 0 ? ended : started != 0 && limit != 0 ? started + limit : 0, "N/A");
}

TEXT(account_start)
{
    (void)now_ms;
    return slurm_time_shown(moment(job, "started_at"), "Unknown");
}

TEXT(account_end)
{
    (void)now_ms;
    return slurm_time_shown(moment(job, "ended_at"), "Unknown");
}

TEXT(account_limit)
{
    double limit = field_number(job, "time_limit", 0);
    (void)now_ms;
    return limit > 0 ? slurm_duration_text((int64_t)limit, true) : xstrdup("UNLIMITED");
}

TEXT(pending_time)
{
    int64_t submitted = moment(job, "submitted_at"), started = moment(job, "started_at");
    return number(submitted == 0 ? 0 : ((started != 0 ? started : now_ms) - submitted) / MILLI);
}

TEXT(deadline)
{
    (void)now_ms;
    return slurm_time_shown(moment(job, "deadline"), "N/A");
}

TEXT(begin)
{
    int64_t begin = moment(job, "begin");
    (void)now_ms;
    return slurm_time_shown(begin != 0 ? begin : moment(job, "submitted_at"), "N/A");
}
