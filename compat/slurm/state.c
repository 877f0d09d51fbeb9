/* SPDX-License-Identifier: MIT */
/* The tables of docs/slurm.md, "States and reasons". */
#include "compat/slurm/state.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/submit/slurm_option.h"
#include "compat/slurm/steps.h"
#include "job/why_code.h"

enum {
    PENDING,
    CONFIGURING,
    RUNNING,
    SUSPENDED,
    COMPLETING,
    COMPLETED,
    CANCELLED,
    FAILED,
    TIMEOUT,
    NODE_FAIL,
    PREEMPTED,
    BOOT_FAIL,
    DEADLINE,
    OUT_OF_MEMORY,
    REQUEUED,
    STATES,
};

static const struct slurm_state states[STATES] = {
    [PENDING] = { "PENDING", "PD", false },
    [CONFIGURING] = { "CONFIGURING", "CF", false },
    [RUNNING] = { "RUNNING", "R", false },
    [SUSPENDED] = { "SUSPENDED", "S", false },
    [COMPLETING] = { "COMPLETING", "CG", false },
    [COMPLETED] = { "COMPLETED", "CD", true },
    [CANCELLED] = { "CANCELLED", "CA", true },
    [FAILED] = { "FAILED", "F", true },
    [TIMEOUT] = { "TIMEOUT", "TO", true },
    [NODE_FAIL] = { "NODE_FAIL", "NF", true },
    [PREEMPTED] = { "PREEMPTED", "PR", true },
    [BOOT_FAIL] = { "BOOT_FAIL", "BF", true },
    [DEADLINE] = { "DEADLINE", "DL", true },
    [OUT_OF_MEMORY] = { "OUT_OF_MEMORY", "OOM", true },
    [REQUEUED] = { "REQUEUED", "RQ", true },
};

/* How a job ended: its state, and its reason in squeue. */
static const struct {
    const char *ended_by;
    int state;
    const char *reason;
} ends[] = {
    { "time_limit", TIMEOUT, "TimeLimit" },
    { "oom", OUT_OF_MEMORY, "OutOfMemory" },
    { "gpu_oom", OUT_OF_MEMORY, "OutOfMemory" },
    { "gpu_mem", OUT_OF_MEMORY, "OutOfMemory" },
    { "deadline", DEADLINE, "DeadLine" },
    { "node_lost", NODE_FAIL, "NodeDown" },
    { "reboot", NODE_FAIL, "NodeDown" },
    { "unknown", NODE_FAIL, "NodeDown" },
    { "gpu_fault", NODE_FAIL, "NodeDown" },
    { "start_failed", FAILED, "JobLaunchFailure" },
    { "setup_failed", FAILED, "JobLaunchFailure" },
    { "dependency", CANCELLED, "DependencyNeverSatisfied" },
    { "idle_timeout", CANCELLED, "InactiveLimit" },
    { "budget", CANCELLED, "AssocGrpGRESMinutes" },
    { "cancelled", CANCELLED, "None" },
    { "released", COMPLETED, "None" },
    { "signal", FAILED, "RaisedSignal" },
    { "preempted", PREEMPTED, "None" }, // of attempts before the last one
    { "requeued", REQUEUED, "None" },
};

static const struct {
    const char *state;
    int slurm;
} present[] = {
    { "queued", PENDING },
    { "starting", CONFIGURING },
    { "running", RUNNING },
    { "stopping", COMPLETING },
    { "done", COMPLETED },
    { "cancelled", CANCELLED },
    { "failed", FAILED },
};

/* Why a job waits. */
#define REASON_RESOURCES                "Resources"
#define REASON_GPU_MEMORY               "Resources"
#define REASON_GPU_EXTERNAL             "Resources"
#define REASON_GPU_PAUSED               "ReqNodeNotAvail"
#define REASON_NODE_DOWN                "ReqNodeNotAvail"
#define REASON_NODE_DRAINED             "ReqNodeNotAvail"
#define REASON_PRIORITY                 "Priority"
#define REASON_USER_LIMIT               "QOSMaxJobsPerUserLimit"
#define REASON_GROUP_LIMIT              "AssocGrpGRES"
#define REASON_QUOTA                    "AssocGrpGRESMinutes"
#define REASON_DEPENDENCY               "Dependency"
#define REASON_DEPENDENCY_NEVER         "DependencyNeverSatisfied"
#define REASON_BEGIN_TIME               "BeginTime"
#define REASON_RESERVATION              "Reservation"
#define REASON_HELD_USER                "JobHeldUser"
#define REASON_HELD_ADMIN               "JobHeldAdmin"
#define REASON_BACKOFF                  "BeginTime"
#define REASON_STARTING                 "None"
#define REASON_PARTITION                "PartitionNodeLimit"
#define REASON_NODE_STARTING            "Resources"
#define REASON_NEVER_FITS               "BadConstraints"
#define ROW(code, name, title, meaning) [WHY_##code] = REASON_##code,
static const char *const waits[WHY_CODES] = { WHY_TABLE(ROW) };

const struct slurm_state *slurm_state_of(const json_t *job)
{
    bool is_over = field_is(job, "state", "failed") || field_is(job, "state", "cancelled");
    bool is_signalled = field_is(job, "ended_by", "signal") && field_is_known(job, SLURM_STEP_WORD);
    if (is_over && is_signalled) // a step, regardless of who sent the signal
        return &states[CANCELLED];
    for (size_t i = 0; is_over && i < sizeof(ends) / sizeof(ends[0]); i++)
        if (field_is(job, "ended_by", ends[i].ended_by))
            return &states[ends[i].state];
    bool stands_still = field_is_known(job, "suspended_at") || field_is_known(job, "parked_at");
    if (field_is(job, "state", "running") && stands_still)
        return &states[SUSPENDED];
    for (size_t i = 0; i < sizeof(present) / sizeof(present[0]); i++)
        if (field_is(job, "state", present[i].state))
            return &states[present[i].slurm];
    return &states[PENDING];
}

const struct slurm_state *slurm_state_find(const char *name)
{
    for (size_t i = 0; i < STATES; i++)
        if (strcasecmp(states[i].name, name) == 0 || strcasecmp(states[i].compact, name) == 0)
            return &states[i];
    return NULL;
}

int slurm_state_refuse(const char *program, const char *word, struct error *err)
{
    _cleanup_free_ char *shown = text_escape(word, 60);
    (void)fprintf(stderr,
        "%s: error: Invalid job state specified: %s\n"
        "%s: error: Valid job states include: PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,"
        "NODE_FAIL,PREEMPTED,BOOT_FAIL,DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,"
        "REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED\n\n",
        program, shown, program);
    return error_mark(err, SLURM_SAID, error_set(err, -EINVAL, "invalid state %s", shown));
}

const char *slurm_reason_of(const json_t *job)
{
    const char *hold = field_text(job, "hold");
    if (hold != NULL && field_is(job, "state", "queued"))
        return strcmp(hold, "admin") == 0 ? "JobHeldAdmin" : "JobHeldUser";
    const char *text = field_text(job, "reason_text");
    if (field_is(job, "reason", "user_limit") && text != NULL && strstr(text, " of this array run") != NULL)
        return "JobArrayTaskLimit";
    enum why_code why = why_code_find(field_text(job, "reason"));
    if (why < WHY_CODES)
        return waits[why];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        if (field_is(job, "ended_by", ends[i].ended_by))
            return ends[i].reason;
    return field_is(job, "state", "failed") ? "NonZeroExitCode" : "None";
}

/* Commands that could not be started: Slurm's status is the errno, and 0:53 if it could not prepare the
 * start. */
static const struct {
    int64_t code; // mgpu's
    int slurm_code, slurm_signal;
} starts[] = { { 125, 0, 53 }, { 126, EACCES, 0 }, { 127, ENOENT, 0 } };
enum { STARTS = sizeof(starts) / sizeof(starts[0]) };

void slurm_exit_of(const json_t *job, int *ret_code, int *ret_signal)
{
    int64_t signal = field_integer(job, "signal", 0), code = field_integer(job, "exit_code", 0);
    bool is_limit = field_is(job, "ended_by", "time_limit") || field_is(job, "ended_by", "cancelled");
    /* The SIGTERM of a cancellation ends processes of the job, not the job. */
    bool is_cancelled_job = field_is(job, "ended_by", "cancelled") && !field_is_known(job, SLURM_STEP_WORD);
    *ret_signal = is_cancelled_job && signal == SIGTERM ? 0 : (int)signal;
    *ret_code = signal != 0 || is_limit ? 0 : (int)code;
    for (size_t i = 0; field_is(job, "ended_by", "start_failed") && i < STARTS; i++)
        if (starts[i].code == code) {
            *ret_code = starts[i].slurm_code;
            *ret_signal = starts[i].slurm_signal;
        }
    if (field_is(job, "ended_by", "oom")) {
        *ret_code = 0;
        *ret_signal = 125; // as in Slurm
    }
}
