/* SPDX-License-Identifier: MIT */
/* GET /jobs/ID/wait: answered when the job reaches a requested state, or on timeout. */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "job/behind.h"
#include "job/idle.h"
#include "wire/limits.h"

struct wait {
    uint32_t states;     // bits of enum job_state
    uint32_t idle_level; // a change from this level ends the wait too; IDLE_LEVELS: it does not
    int64_t timeout_ms;  // negative: none
    struct event *timer;
};

static void release_wait(struct request *request)
{
    struct wait *wait = request->work;
    if (wait->timer != NULL)
        event_free(wait->timer);
    free(wait);
}

static void on_timeout(int fd, short what, void *arg)
{
    struct request *request = arg;
    const struct wait *wait = request->work;
    struct error err = { 0 };
    core_forget(request->serve->controller->core, request);
    request->on_answer = NULL;
    (void)error_set(&err, -ETIMEDOUT, "job %" PRIu64 " did not reach the state within %" PRId64 ".%03d s",
        request->job, wait->timeout_ms / 1000, (int)(wait->timeout_ms % 1000));
    request_reply_problem(request, &err);
}

/* True if the job is in a requested state or at another level, or was (a short job may end before it is
 * checked). */
static bool has_reached(const struct wait *wait, const struct job *job)
{
    bool is_other_level = wait->idle_level != IDLE_LEVELS && wait->idle_level != job->idle_level;
    if (is_other_level || (wait->states & (1U << job_shown_state(job))) != 0)
        return true;
    return (wait->states & (1U << JOB_RUNNING)) != 0 && job->started_ms != 0;
}

static void reply_job(struct request *request, const struct job *job)
{
    struct wait *wait = request->work;
    if (wait->timer != NULL)
        (void)event_del(wait->timer);
    /* It had reached the state when the wait ended, and may have left it since, for another level or its next
     * attempt. */
    bool may_be_back = wait->idle_level != IDLE_LEVELS || job->state != JOB_DONE;
    if (may_be_back || has_reached(wait, job)) {
        jobs_reply(request, 200, job);
        return;
    }
    struct error err = { 0 };
    (void)error_set(&err, -EALREADY, "job %" PRIu64 " has ended and can no longer reach the state", job->id);
    request_reply_problem(request, &err);
}

static void on_state(struct request *request, const struct core_answer *answer)
{
    if (answer->job != 0)
        request->job = answer->job; // the job that an element has become
    if (answer->code < 0)
        request_reply_problem(request, &answer->err);
    else
        jobs_find(request, request->job, reply_job);
}

static void begin_wait(struct request *request, const struct job *job)
{
    struct wait *wait = request->work;
    struct controller *controller = request->serve->controller;
    if (job->state == JOB_DONE || has_reached(wait, job)) {
        reply_job(request, job);
        return;
    }
    request->is_patient = true;
    request->on_answer = on_state;
    if (wait->timeout_ms >= 0) {
        const struct timeval after = { .tv_sec = wait->timeout_ms / 1000,
            .tv_usec = wait->timeout_ms % 1000 * 1000 };
        wait->timer = evtimer_new(controller->loop, on_timeout, request);
        (void)event_add(wait->timer, &after);
    }
    uint32_t states = wait->states | (1U << JOB_DONE);
    if (request->has_element && job_is_array(job))
        core_wait_element(controller->core, job->id, request->element, states, request);
    else
        core_wait_idle(controller->core, job->id, states, wait->idle_level, request);
}

static int read_level(const char *word, uint32_t *ret_level, struct error *err)
{
    *ret_level = word == NULL ? IDLE_LEVELS : IDLE_NONE;
    if (word == NULL || strcmp(word, "none") == 0)
        return 0;
    for (*ret_level = IDLE_NONE + 1; *ret_level < IDLE_LEVELS; (*ret_level)++)
        if (strcmp(word, idle_level_name(*ret_level)) == 0)
            return 0;
    (void)error_set(err, -EINVAL, "idle: unknown level '%.40s'", word);
    return error_hint(err, "use none, told or yields");
}

static int read_wait(const struct request *request, struct wait *wait, struct error *err)
{
    const char *states = query_get(&request->query, "states");
    const char *timeout = query_get(&request->query, "timeout");
    uint32_t over;
    int r = jobs_parse_states(states != NULL ? states : "done", &wait->states, &over, err);
    if (r == 0)
        r = read_level(query_get(&request->query, "idle"), &wait->idle_level, err);
    wait->timeout_ms = -1;
    if (r < 0 || timeout == NULL)
        return r;
    r = parse_duration(timeout, "timeout", &wait->timeout_ms, err);
    if (r == 0 && (wait->timeout_ms < 0 || wait->timeout_ms > LIMIT_WAIT_S * 1000LL))
        r = error_set(err, -ERANGE, "timeout: %.40s is outside 0 to %d s", timeout, LIMIT_WAIT_S);
    return r;
}

void handle_wait(struct request *request)
{
    struct error err = { 0 };
    struct wait *wait = xcalloc(1, sizeof(*wait));
    request->work = wait;
    request->release = release_wait;
    if (read_wait(request, wait, &err) < 0)
        request_reply_problem(request, &err);
    else
        jobs_find(request, request->job, begin_wait);
}
