/* SPDX-License-Identifier: MIT */
/* How a job ended: one row for each kind of end. */
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/show/job_columns.h"
#include "cli/show/ps_arrays.h"
#include "job/state.h"

#define NAME_MAX_BYTES 256

static char *outcome_exit(const json_t *job)
{
    bool is_array = field_is_known(job, "array") && !field_is_known(job, "array_job");
    if (is_array && field_integer(job, "exit_code", 0) == 0)
        return xstrdup("all of its elements are done");
    if (is_array) {
        _cleanup_free_ char *counts = elements_counts(job);
        return counts == NULL ? xstrdup("some of its elements failed")
                              : xasprintf("some of its elements failed: %s", counts);
    }
    return xasprintf("exit %" PRId64, field_integer(job, "exit_code", 0));
}

static char *outcome_signal(const json_t *job)
{
    int number = (int)field_integer(job, "signal", 0);
    const char *name = sigabbrev_np(number);
    return xasprintf("killed by signal %d%s%s%s", number, name == NULL ? "" : " (SIG",
        name == NULL ? "" : name, name == NULL ? "" : ")");
}

static char *outcome_cancelled(const json_t *job)
{
    if (field_text(job, "stopped_by") == NULL)
        return xstrdup("cancelled");
    _cleanup_free_ char *user = field_shown(job, "stopped_by");
    return xasprintf("cancelled by %s", user);
}

static char *outcome_start(const json_t *job)
{
    return xasprintf("did not start, exit %" PRId64, field_integer(job, "exit_code", 125));
}

static char *outcome_setup(const json_t *job)
{
    return xasprintf("setup failed, exit %" PRId64, field_integer(job, "exit_code", 125));
}

static char *outcome_time_limit(const json_t *job)
{
    char limit[32];
    if (!field_is_known(job, "time_limit_s"))
        return xstrdup("reached its time limit");
    format_duration((int64_t)(field_number(job, "time_limit_s", 0) * 1000), limit, sizeof(limit));
    return xasprintf("reached its time limit of %s", limit);
}

/* The message contains the amount. */
static char *outcome_oom(const json_t *job)
{
    return xstrdup(field_text(job, "message") == NULL ? "out of memory" : "killed");
}

/* The message names the GPU and the error. */
static char *outcome_gpu_fault(const json_t *job)
{
    return field_integer(job, "signal", 0) != 0 ? outcome_signal(job) : outcome_exit(job);
}

char *job_outcome(const json_t *job)
{
    static const struct {
        const char *text; // NULL: the text of the function
        char *(*describe)(const json_t *job);
    } outcomes[END_KINDS] = {
        [END_EXIT] = { .describe = outcome_exit },
        [END_SIGNAL] = { .describe = outcome_signal },
        [END_CANCELLED] = { .describe = outcome_cancelled },
        [END_START_FAILED] = { .describe = outcome_start },
        [END_SETUP_FAILED] = { .describe = outcome_setup },
        [END_UNKNOWN] = { "ended, result unknown" },
        [END_REBOOT] = { "its node rebooted" },
        [END_TIME_LIMIT] = { .describe = outcome_time_limit },
        [END_DEADLINE] = { "could not start before its deadline" },
        [END_DEPENDENCY] = { "its dependency could never be satisfied" },
        [END_OOM] = { .describe = outcome_oom },
        [END_GPU_FAULT] = { .describe = outcome_gpu_fault },
        [END_IDLE_TIMEOUT] = { "ended because it was idle" }, // the message contains the GPUs and the time
        [END_RELEASED] = { "released" },
        [END_NODE_LOST] = { "its node was lost" },
        [END_GPU_OOM] = { "ran out of GPU memory" }, // the message contains the amount and the source of the
                                                     // report
        [END_GPU_MEM] = { "exceeded its share of GPU memory" }, // the message contains both amounts
        [END_BUDGET] = { "ended because the GPU-hours of its token are used up" },
    };
    const char *name = field_text(job, "ended_by");
    enum job_end end = name == NULL ? END_NONE : job_end_from_name(name);
    if (end == END_NONE)
        return NULL;
    char *text = end >= END_KINDS             ? text_escape(name, NAME_MAX_BYTES)
                 : outcomes[end].text != NULL ? xstrdup(outcomes[end].text)
                                              : outcomes[end].describe(job);
    if (field_text(job, "message") == NULL)
        return text;
    _cleanup_free_ char *message = field_shown(job, "message"), *start = text;
    return xasprintf("%s: %s", start, message);
}
