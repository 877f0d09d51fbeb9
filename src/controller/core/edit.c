/* SPDX-License-Identifier: MIT */
/* Changes of a waiting job: hold, release, edit; and of the time limit and notes of a running one. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/utc.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/describe.h"
#include "controller/core/enqueue.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/submit.h"
#include "controller/core/tables.h"
#include "job/after.h"
#include "job/array.h"
#include "job/behind.h"

static int check_waiting(const struct core *core, const struct identity *who, uint64_t id,
    const struct core_entry *entry, const char *what, struct error *err)
{
    int r = core_check_control(core, who, id, entry, err);
    if (r < 0)
        return r;
    if (entry->job->state == JOB_QUEUED && !job_is_split_up(entry->job))
        return 0;
    if (job_waits_behind(entry->job)) { // and could not be taken back
        (void)error_set(err, -EALREADY, "job %" PRIu64 " is about to start on node %s: it cannot be %s now",
            id, entry->job->node, what);
        return error_hint(err, "try again");
    }
    (void)error_set(err, -EALREADY, "job %" PRIu64 " is no longer waiting: it cannot be %s", id, what);
    return error_hint(err, "mgpu cancel %" PRIu64 " ends it", id);
}

static const struct core_entry *first_waiting_element(const struct core_entry *array)
{
    const struct core_entry *member = core_extra(array)->members;
    while (member != NULL && member->job->state != JOB_QUEUED)
        member = core_extra(member)->member_after;
    return member;
}

/* An array all of whose elements are jobs, some of which wait: to be tried again, or for the GPUs of others.
 */
static bool has_only_elements(const struct core_entry *entry)
{
    return job_is_split_up(entry->job) && first_waiting_element(entry) != NULL;
}

/* The holds that a hold need not set, or that a release may clear. */
static uint32_t holds_of(const struct core_entry *entry, bool is_release)
{
    uint32_t any = 0, all = HOLD_USER | HOLD_ADMIN;
    if (!has_only_elements(entry))
        return entry->job->hold;
    for (const struct core_entry *member = core_extra(entry)->members; member != NULL;
         member = core_extra(member)->member_after) {
        any |= member->job->state == JOB_QUEUED ? member->job->hold : 0;
        all &= member->job->state == JOB_QUEUED ? member->job->hold : all;
    }
    return is_release ? any : all;
}

/* The bits that this caller sets or clears. */
static int find_hold(const struct core *core, const struct identity *who, const struct core_entry *entry,
    bool is_release, uint32_t *ret, struct error *err)
{
    const struct job *job = entry->job;
    uint32_t held = holds_of(entry, is_release);
    if (!is_release) {
        *ret = core_hold_of(who, job) & ~held;
        return 0;
    }
    *ret = held & (core_may(who, ACTION_MANAGE, NULL) ? HOLD_USER | HOLD_ADMIN : HOLD_USER);
    if (*ret == 0 && held != 0) {
        (void)error_set(err, -EPERM, "job %" PRIu64 " is held by an operator", job->id);
        return error_hint(err, "ask an operator to release it");
    }
    return 0;
}

/* Elements that are jobs already and wait, to be tried again for example, are held and released with their
 * array. */
static void hold_elements(struct core *core, const struct core_entry *array, const struct job_event *event)
{
    for (struct core_entry *member = core_extra(array)->members; member != NULL;
         member = core_extra(member)->member_after) {
        const struct job *job = member->job;
        struct job_event own = { .type = event->type, .uid = event->uid };
        own.hold = event->type == EVENT_RELEASED ? event->hold & job->hold : event->hold & ~job->hold;
        if (job->state == JOB_QUEUED && own.hold != 0)
            core_change(core, member, &own, NULL);
    }
}

void core_hold(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id,
    bool is_release, void *request)
{
    struct core_entry *entry = core_find(core, id);
    struct core_answer answer = { .job = id };
    uint32_t hold = 0;
    core_begin(core, boot_ms, wall_ms);
    bool goes_back = entry != NULL && entry->job->state == JOB_STOPPING && entry->job->is_requeued;
    bool is_split = entry != NULL && has_only_elements(entry);
    bool is_free = entry != NULL && is_release && job_waits_behind(entry->job); // none of these is held
    answer.code = goes_back || is_split || is_free
                      ? core_check_control(core, who, id, entry, &answer.err)
                      : check_waiting(core, who, id, entry, is_release ? "released" : "held", &answer.err);
    if (answer.code == 0)
        answer.code = find_hold(core, who, entry, is_release, &hold, &answer.err);
    if (answer.code == 0 && hold != 0)
        answer.code = core_check_change(core, who, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return;
    }
    struct job_event event = {
        .type = is_release ? EVENT_RELEASED : EVENT_HELD,
        .attempt = goes_back ? entry->job->attempt : 0,
        .uid = who->uid,
        .hold = hold,
    };
    if (hold != 0 && !is_split)
        core_change(core, entry, &event, NULL);
    hold_elements(core, entry, &event);
    core_reply_ok(core, request, id);
}

static int check_array(const struct job *job, const struct job_ask *ask, struct error *err)
{
    if (job->array_job != 0 && ask->array != NULL)
        return error_set(
            err, -EINVAL, "job %" PRIu64 " is an element of an array and cannot be one", job->id);
    if (job->array_job != 0 || text_equal(job->ask->array, ask->array))
        return 0;
    _cleanup_free_ char *before = job->ask->array != NULL ? array_indexes(job->ask->array) : NULL;
    _cleanup_free_ char *after = ask->array != NULL ? array_indexes(ask->array) : NULL;
    if (before != NULL && text_equal(before, after))
        return 0;
    (void)error_set(err, -EINVAL, "the indexes of an array cannot be edited");
    return error_hint(err, "only the number of elements at a time can be edited, after '%%'");
}

static int check_adopted(const struct job *job, const struct job_ask *ask, struct error *err)
{
    if (ask->adopted_pid == job->ask->adopted_pid && ask->adopted_start == job->ask->adopted_start &&
        text_equal(ask->adopted_boot, job->ask->adopted_boot))
        return 0;
    (void)error_set(err, -EINVAL, "the process of an adoption cannot be changed");
    return error_hint(err, "cancel it and adopt the other process");
}

/* Checked together with its directories and files, which cannot change either. */
static int check_files(const struct job *job, const struct job_ask *ask, struct error *err)
{
    bool is_moved = ask->private_tmp != job->ask->private_tmp;
    if (!is_moved && ask->split_log == job->ask->split_log)
        return 0;
    (void)error_set(err, -EINVAL, "%s cannot be edited", is_moved ? "private_tmp" : "split_log");
    return error_hint(err, "cancel it and submit it again");
}

/* Whether it is interactive or in a container was checked with its request. */
static int check_early(const struct job *job, const struct job_ask *ask, struct error *err)
{
    if (!ask->early || job->ask->early)
        return 0;
    (void)error_set(err, -EINVAL, "early cannot be set by an edit, only withdrawn");
    return error_hint(err, "cancel it and submit it again");
}

static int check_log_max(const struct core *core, const struct job_ask *ask, struct error *err)
{
    char text[32];
    uint64_t most = core->options.log_max;
    if (most == 0 || (ask->log_max != 0 && ask->log_max <= most))
        return 0;
    format_size(most, text, sizeof(text));
    return error_set(err, -ERANGE, "log_max: at most %s of the output of a job are kept here", text);
}

int core_check_changed(const struct core *core, const struct job *job, const struct job_ask *ask,
    const struct core_facts *facts, uint32_t *ret_gpus, struct error *err)
{
    static const struct core_facts none = { 0 };
    struct description description;
    struct job edited = *job; // borrowed: none of it is freed
    edited.ask = ask;
    int r = core_describe(core, &edited, facts != NULL ? facts : &none, &description, err);
    if (r < 0)
        return r;
    description.spec.n_after = description.n_open;
    *ret_gpus = description.spec.key.request.gpus;
    r = sched_check(core->sched, &description.spec, err);
    description_clear(&description);
    if (r != -ENOENT)
        return r;
    err->code = -EINVAL;
    return -EINVAL;
}

/* Later jobs may already depend on this one. */
static int check_singleton(const struct job_ask *ask, struct error *err)
{
    if (ask->after == NULL || strstr(ask->after, AFTER_SINGLETON) == NULL)
        return 0;
    (void)error_set(err, -EINVAL, "after: singleton is possible at a submit only");
    return error_hint(err, "name the jobs");
}

static int check_edit(const struct core *core, const struct identity *who, const struct job *job,
    const struct job_ask *ask, const struct core_facts *facts, uint32_t *ret_gpus, struct error *err)
{
    int r = job_ask_validate(ask, err);
    if (r == 0)
        r = check_array(job, ask, err);
    if (r == 0)
        r = check_adopted(job, ask, err);
    if (r == 0)
        r = check_files(job, ask, err);
    if (r == 0)
        r = check_early(job, ask, err);
    if (r == 0)
        r = check_log_max(core, ask, err);
    if (r == 0)
        r = check_singleton(ask, err);
    if (r == 0)
        r = core_check_ask(core, who, ask, err);
    return r < 0 ? r : core_check_changed(core, job, ask, facts, ret_gpus, err);
}

/* True if the two differ in anything that a running job cannot change. The notes of Slurm's commands are only
 * displayed. */
static bool differs_for_running(const struct job_ask *ask, const struct job_ask *now)
{
    struct job_ask same = *ask; // borrowed
    same.time_limit_ms = now->time_limit_ms;
    same.no_time_limit = now->no_time_limit;
    same.no_park = now->no_park;
    same.slurm = now->slurm;
    return !job_ask_equal(&same, now);
}

/* A limit that has already passed would end the job at once, which cannot be intended by an edit. */
static int check_limit_is_ahead(
    const struct core *core, const struct job *job, int64_t limit_ms, struct error *err)
{
    char ran[32], limit[32];
    int64_t ran_ms = core->now_ms - job->started_ms - job_park(job)->total_ms;
    if (limit_ms == 0 || limit_ms == job->ask->time_limit_ms || limit_ms > ran_ms ||
        job_park(job)->phase != PARK_NONE)
        return 0;
    format_duration(ran_ms, ran, sizeof(ran));
    format_duration(limit_ms, limit, sizeof(limit));
    (void)error_set(err, -EINVAL, "job %" PRIu64 " has run for %s: a time limit of %s would end it at once",
        job->id, ran, limit);
    return error_hint(err, "mgpu cancel %" PRIu64 " ends it", job->id);
}

/* Only an operator may give a running job more time than other users could expect. */
static int check_running(const struct core *core, const struct identity *who, const struct job *job,
    const struct job_ask *ask, const char *name, struct error *err)
{
    int r = core_check_control(core, who, job->id, core_find(core, job->id), err);
    if (r < 0)
        return r;
    if (name != NULL || differs_for_running(ask, job->ask)) {
        (void)error_set(err, -EALREADY,
            "job %" PRIu64 " is running: only its time limit and no_park can be edited", job->id);
        return error_hint(err, "mgpu edit %" PRIu64 " time=2h", job->id);
    }
    r = job_ask_validate(ask, err);
    if (r == 0)
        r = check_limit_is_ahead(core, job, ask->time_limit_ms, err);
    if (r < 0)
        return r;
    int64_t limit_ms = ask->time_limit_ms, before_ms = job->ask->time_limit_ms;
    bool is_longer = before_ms != 0 && (limit_ms == 0 || limit_ms > before_ms);
    if (!is_longer || core_may(who, ACTION_MANAGE, NULL))
        return 0;
    (void)error_set(err, -EPERM,
        "job %" PRIu64 " is running, and other jobs are planned by its time limit: it can only be shortened",
        job->id);
    return error_hint(err, "operators can extend it");
}

/* The scheduler lets a job start on a GPU to which a parked job returns if it has certainly left by then. */
static int check_debts(struct core *core, const struct job *job, const struct job_ask *ask, struct error *err)
{
    struct sched_debt debt;
    bool is_longer = ask->time_limit_ms == 0 || ask->time_limit_ms > job->ask->time_limit_ms;
    bool refuses = ask->no_park && !job->ask->no_park;
    if ((job->ask->time_limit_ms == 0 || !is_longer) && !refuses)
        return 0;
    if (sched_may_stay(core->sched, job->id, ask->time_limit_ms, ask->no_park, &debt))
        return 0;
    char due[32];
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[debt.gpu.node];
    utc_format(debt.due_ms, due, sizeof(due));
    (void)error_set(err, -EBUSY,
        "job %" PRIu64 " has GPU %s:%u, to which parked job %" PRIu64
        " returns at %s: changed like this, it could still have it then",
        job->id, node->name, node->gpus[debt.gpu.gpu].index, debt.job, due);
    return error_hint(err, "a time limit that ends before that is possible");
}

static void edit_running(struct core *core, struct core_entry *entry, const struct identity *who,
    const struct job_ask *ask, const char *name, void *request)
{
    struct core_answer answer = { .job = entry->job->id };
    answer.code = check_running(core, who, entry->job, ask, name, &answer.err);
    bool is_change = answer.code == 0 && !job_ask_equal(ask, entry->job->ask);
    if (is_change)
        answer.code = check_debts(core, entry->job, ask, &answer.err);
    if (is_change && answer.code == 0)
        answer.code = core_check_change(core, who, &answer.err);
    if (is_change && answer.code == 0) {
        struct job_ask copy;
        job_ask_copy(&copy, ask);
        struct job_event event = {
            .type = EVENT_EDITED,
            .attempt = entry->job->attempt,
            .uid = who->uid,
            .ask = { .items = &copy, .count = 1 },
        };
        core_change(core, entry, &event, NULL);
        job_ask_clear(&copy);
    }
    core_reply(core, request, &answer);
}

void core_edit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id,
    const struct job_ask *ask, const char *name, const struct core_facts *facts, void *request)
{
    static const struct core_facts none = { 0 };
    struct core_entry *entry = core_find(core, id);
    struct core_answer answer = { .job = id };
    uint32_t gpus = 0;
    core_begin(core, boot_ms, wall_ms);
    if (entry != NULL && entry->job->state == JOB_RUNNING) {
        edit_running(core, entry, who, ask, name, request);
        return;
    }
    answer.code = check_waiting(core, who, id, entry, "edited", &answer.err);
    if (answer.code == 0)
        answer.code = core_check_change(core, who, &answer.err);
    if (answer.code == 0)
        answer.code = check_edit(core, who, entry->job, ask, facts, &gpus, &answer.err);
    if (answer.code < 0) {
        core_reply(core, request, &answer);
        return;
    }
    struct job_ask copy;
    job_ask_copy(&copy, ask);
    copy.gpus = gpus;
    const struct core_partition_terms terms = core_partition_terms(core, ask);
    copy.time_limit_ms = core_limit_of(core, ask, &terms);
    if (copy.partition == NULL)
        copy.partition = xstrdup(terms.name);
    copy.own_priority = core_priority_is_own(core, who, ask, entry->job->ask);
    struct job_event event = {
        .type = EVENT_EDITED,
        .uid = who->uid,
        .name = xstrdup(name),
        .ask = { .items = &copy, .count = 1 },
    };
    core_change(core, entry, &event, NULL);
    free(event.name);
    job_ask_clear(&copy);
    core_admit_again(entry);
    core_enqueue(core, entry, facts != NULL ? facts : &none, true);
    core_reply_ok(core, request, id);
}
