/* SPDX-License-Identifier: MIT */
/* Cancels. For a job that is already being stopped, a cancel can change the grace period. */
#include <inttypes.h>

#include "base/memory.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

/* A later cancel does not spare a process that is to be killed. */
static void cancel_one(
    struct core *core, struct core_entry *entry, const struct identity *who, const struct job_event *terms)
{
    const struct job *job = entry->job;
    const struct job_run *run = job_run(job);
    struct job_event event = *terms;
    event.attempt = job->attempt;
    if (!core_may(who, ACTION_KILL, job))
        event.stop_terms &= ~STOP_TERMS_PROCESS;
    event.stop_terms |= run->stop_terms & STOP_TERMS_PROCESS;
    bool is_stopped = job->state == JOB_STOPPING && !job->is_requeued;
    if (is_stopped && event.stop_terms == run->stop_terms && event.stop_grace_ms == run->stop_grace_ms)
        core_act(core, entry); // sends it again
    else if (!job_is_array(job) || job->stop_reason == END_NONE)
        core_change(core, entry, &event, NULL);
}

static void cancel(
    struct core *core, const struct identity *who, uint64_t id, const struct job_event *terms, void *request)
{
    struct core_entry *entry = core_find(core, id), *after = NULL;
    struct core_answer answer = { .job = id };
    answer.code = core_check_control(core, who, id, entry, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return;
    }
    cancel_one(core, entry, who, terms);
    for (struct core_entry *member = core_extra(entry)->members; member != NULL; member = after) {
        after = core_extra(member)->member_after;
        if (member->job->state != JOB_DONE)
            cancel_one(core, member, who, terms);
    }
    core_reply_ok(core, request, id);
}

static struct job_event stop_of(const struct identity *who, int64_t grace_ms)
{
    return (struct job_event){ .type = EVENT_STOP,
        .uid = who->uid,
        .reason = END_CANCELLED,
        .stop_terms = STOP_TERMS_USER | (grace_ms >= 0 ? STOP_TERMS_GRACE : 0),
        .stop_grace_ms = grace_ms >= 0 ? grace_ms : 0 };
}

void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id,
    int64_t grace_ms, void *request)
{
    const struct job_event terms = stop_of(who, grace_ms);
    core_begin(core, boot_ms, wall_ms);
    cancel(core, who, id, &terms, request);
}

void core_cancel_process(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t id, int64_t grace_ms, void *request)
{
    struct job_event terms = stop_of(who, grace_ms);
    terms.stop_terms |= STOP_TERMS_PROCESS;
    core_begin(core, boot_ms, wall_ms);
    cancel(core, who, id, &terms, request);
}
