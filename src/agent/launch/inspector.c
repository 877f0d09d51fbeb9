/* SPDX-License-Identifier: MIT */
#include "agent/launch/inspector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/host/process_facts.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"

/* A process whose adoption waits for GPUs. */
struct waiting {
    struct inspector *looks;
    uint64_t job;
    uint32_t pid;
    int pidfd;
    struct event *event;
    struct waiting *next, **where;
};

struct inspector {
    struct event_base *base;
    const struct job_users *users;
    struct usage_watch *watch;
    inspected_fn *on_seen;
    void *arg;
    struct waiting *first;
    size_t count;
};

static void waiting_free(struct waiting *waiting)
{
    *waiting->where = waiting->next;
    if (waiting->next != NULL)
        waiting->next->where = waiting->where;
    waiting->looks->count--;
    usage_watch_unawait(waiting->looks->watch, waiting->job);
    event_free(waiting->event);
    closep(&waiting->pidfd);
    free(waiting);
}

void inspector_forget(struct inspector *looks, uint64_t job)
{
    struct waiting *after = NULL;
    for (struct waiting *waiting = looks->first; waiting != NULL; waiting = after) {
        after = waiting->next;
        if (waiting->job == job)
            waiting_free(waiting);
    }
}

static void report_ended(struct inspector *looks, uint64_t job, uint32_t pid)
{
    _cleanup_free_ char *text = xasprintf("process %" PRIu32 " ended while it waited to be adopted", pid);
    struct message_process_info over = { .job = job, .error = ESRCH, .pid = pid, .text = text };
    looks->on_seen(looks->arg, &over);
}

static void on_over(evutil_socket_t fd, short what, void *arg)
{
    struct waiting *waiting = arg;
    struct inspector *looks = waiting->looks;
    uint64_t job = waiting->job;
    uint32_t pid = waiting->pid;
    waiting_free(waiting);
    report_ended(looks, job, pid);
}

static void await(struct inspector *looks, const struct message_inspect *request)
{
    inspector_forget(looks, request->job);
    if (request->pid == 0)
        return;
    if (looks->count >= ADOPT_WAITS_MAX)
        return; // its end will be noticed in its turn
    int pidfd = process_open((pid_t)request->pid, request->start);
    if (pidfd < 0)
        return report_ended(looks, request->job, request->pid);
    struct waiting *waiting = xcalloc(1, sizeof(*waiting));
    *waiting = (struct waiting){
        .looks = looks,
        .job = request->job,
        .pid = request->pid,
        .pidfd = pidfd,
        .event = event_new(looks->base, pidfd, EV_READ, on_over, waiting),
        .next = looks->first,
        .where = &looks->first,
    };
    if (waiting->next != NULL)
        waiting->next->where = &waiting->next;
    looks->first = waiting;
    looks->count++;
    (void)event_add(waiting->event, NULL);
    usage_watch_await(looks->watch, request->job, (pid_t)request->pid, request->start);
}

/* Rejects processes that no user may adopt. */
static int check(struct inspector *looks, const struct process_facts *facts, struct error *err)
{
    pid_t pid = facts->pid;
    if (geteuid() != 0 && facts->uid != geteuid() && !looks->users->adopts_any_user)
        return error_set(err, -EPERM,
            "process %d belongs to uid %" PRIu32 ", but this instance serves uid %" PRIu32 " only", (int)pid,
            facts->uid, (uint32_t)geteuid());
    if (job_user_check_adopted(looks->users, facts->uid, NULL) < 0) {
        (void)error_set(err, -EPERM,
            "process %d belongs to root, and jobs of root are not allowed on node %s", (int)pid,
            looks->users->node);
        return error_hint(err, "its mgpu-agent was started without --allow-root-jobs");
    }
    uint64_t job = usage_watch_job_of(looks->watch, pid, clock_boot_ms(), clock_wall_ms());
    if (job != 0) {
        (void)error_set(err, -EEXIST, "process %d belongs to job %" PRIu64 " already", (int)pid, job);
        return error_hint(err, "mgpu show %" PRIu64, job);
    }
    if (process_facts_is_below(getpid(), pid) || process_facts_is_below(pid, getpid()))
        return error_set(err, -EINVAL, "process %d is part of mgpu or its ancestor", (int)pid);
    return 0;
}

static void answer(struct inspector *looks, const struct message_inspect *request)
{
    _cleanup_(process_facts_clear) struct process_facts facts = { 0 };
    struct error err = { 0 };
    int r = process_facts_read((pid_t)request->pid, request->start, &facts, &err);
    if (r == 0)
        r = check(looks, &facts, &err);
    struct message_process_info seen = {
        .question = request->question,
        .error = -r,
        .text = r < 0 ? err.message : NULL,
        .hint = r < 0 && err.hint[0] != '\0' ? err.hint : NULL,
        .pid = request->pid,
        .start = facts.start,
        .uid = facts.uid,
        .gid = facts.gid,
        .command = r == 0 ? facts.command : (struct strings){ 0 },
    };
    _cleanup_free_ char *gpu_ids = r == 0 ? usage_watch_gpus_of(looks->watch, facts.pid, facts.start) : NULL;
    seen.gpu_ids = gpu_ids;
    looks->on_seen(looks->arg, &seen);
}

void inspector_take(struct inspector *looks, const struct message_inspect *request)
{
    if (request->question != 0)
        answer(looks, request);
    else
        await(looks, request);
}

struct inspector *inspector_new(struct event_base *base, const struct job_users *users,
    struct usage_watch *watch, inspected_fn *on_seen, void *arg)
{
    struct inspector *looks = xcalloc(1, sizeof(*looks));
    *looks =
        (struct inspector){ .base = base, .users = users, .watch = watch, .on_seen = on_seen, .arg = arg };
    return looks;
}

void inspector_free(struct inspector *looks)
{
    if (looks == NULL)
        return;
    while (looks->first != NULL)
        waiting_free(looks->first);
    free(looks);
}
