/* SPDX-License-Identifier: MIT */
/* Cancels. For a job that is already being stopped, a cancel can change the grace period. */
#include <errno.h>
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
#include "job/behind.h"

enum extent { WHOLE, WAITING };

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

/* Of an array: elements that are no jobs of their own yet. */
static bool is_within(enum extent extent, const struct job *job)
{
    if (extent == WHOLE)
        return job->state != JOB_DONE;
    return job_is_array(job) ? job->array_left[0] != '\0' : job_shown_state(job) == JOB_QUEUED;
}

static void cancel(struct core *core, const struct identity *who, uint64_t id, const struct job_event *terms,
    enum extent extent, void *request)
{
    struct core_entry *entry = core_find(core, id), *after = NULL;
    bool is_any = false;
    struct core_answer answer = { .job = id };
    answer.code = core_check_control(core, who, id, entry, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return;
    }
    struct core_entry *member = core_extra(entry)->members;
    if (is_within(extent, entry->job)) {
        cancel_one(core, entry, who, terms);
        is_any = true;
    }
    for (; member != NULL; member = after) {
        after = core_extra(member)->member_after;
        if (!is_within(extent, member->job))
            continue;
        cancel_one(core, member, who, terms);
        is_any = true;
    }
    if (!is_any)
        answer.code = error_set(&answer.err, -EALREADY, "job %" PRIu64 " is not waiting any more", id);
    core_reply(core, request, &answer);
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
    cancel(core, who, id, &terms, WHOLE, request);
}

void core_cancel_process(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t id, int64_t grace_ms, void *request)
{
    struct job_event terms = stop_of(who, grace_ms);
    terms.stop_terms |= STOP_TERMS_PROCESS;
    core_begin(core, boot_ms, wall_ms);
    cancel(core, who, id, &terms, WHOLE, request);
}

void core_cancel_waiting(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t id, void *request)
{
    const struct job_event terms = stop_of(who, -1);
    core_begin(core, boot_ms, wall_ms);
    cancel(core, who, id, &terms, WAITING, request);
}
