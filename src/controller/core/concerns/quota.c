/* SPDX-License-Identifier: MIT */
/*
 * Quotas of the queue and of stored requests per day, for all users and for each. Requests are kept long
 * after their jobs have ended, so the rate of bytes is limited: a bucket that drains evenly within a day and
 * is empty when mgpud starts. Changes of jobs by users are also stored, as events, and go into the same
 * bucket. Some space above the limit is reserved for them, so that submitted jobs can still be held, edited
 * and signalled. A cancel is never refused. Administrators are not limited.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/rights.h"
#include "controller/core/state.h"
#include "job/event.h"
#include "job/spec.h"
#include "wire/limits.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define CHAINS 64U

#define ADMIN_PART 100 // one part in this many of the queue is reserved for administrators

/* Requests of users that change a job. */
#define CHANGES                                                                                              \
    (CORE_ON(EVENT_EDITED) | CORE_ON(EVENT_HELD) | CORE_ON(EVENT_RELEASED) | CORE_ON(EVENT_SIGNALLED) |      \
        CORE_ON(EVENT_SUSPENDED) | CORE_ON(EVENT_CONTINUED) | CORE_ON(EVENT_PARK) | CORE_ON(EVENT_UNPARK) |  \
        CORE_ON(EVENT_PREEMPTED) | CORE_ON(EVENT_STOP))
#define CHANGES_ROOM (UINT64_C(1) << 20) // bytes above the limit that only changes may use

struct quota {
    struct quota *next;
    uint32_t uid;
    size_t open;     // jobs not done
    uint64_t stored; // bytes in the bucket at `at_ms`
    int64_t at_ms;   // boot clock
};

struct core_quotas {
    size_t n_undone; // jobs of all users that have not ended
    struct quota *chains[CHAINS];
};

static struct quota *find(const struct core *core, uint32_t uid)
{
    struct quota *quota = core->quotas->chains[uid % CHAINS];
    while (quota != NULL && quota->uid != uid)
        quota = quota->next;
    return quota;
}

static struct quota *make(struct core *core, uint32_t uid)
{
    struct quota *quota = find(core, uid), **chain = &core->quotas->chains[uid % CHAINS];
    if (quota == NULL) {
        quota = xcalloc(1, sizeof(*quota));
        *quota = (struct quota){ .uid = uid, .next = *chain };
        *chain = quota;
    }
    return quota;
}

static uint64_t stored_now(const struct core *core, const struct quota *quota)
{
    double emptied = (double)core->options.user_day_bytes * (double)(core->boot_ms - quota->at_ms) / DAY_MS;
    return emptied < (double)quota->stored ? quota->stored - (uint64_t)emptied : 0;
}

/* 0 if the user may store that many more bytes within the limit plus `room`. */
static int check_stored(
    const struct core *core, const struct identity *who, uint64_t size, uint64_t room, struct error *err)
{
    uint64_t limit = core->options.user_day_bytes;
    const struct quota *quota = find(core, who->uid);
    uint64_t stored = quota != NULL ? stored_now(core, quota) : 0;
    if (who->role == ROLE_ADMIN || limit == 0 || stored + size <= limit + room)
        return 0;
    char most[32];
    format_size(limit, most, sizeof(most));
    return error_set(err, -EDQUOT, "your jobs have stored %s within a day, the limit per user", most);
}

static int check(const struct core *core, const struct identity *who, const struct job_spec *spec,
    size_t size, struct error *err)
{
    static const struct quota none;
    const struct core_options *options = &core->options;
    size_t reserve = who->role == ROLE_ADMIN ? 0 : options->queue_max / ADMIN_PART;
    if (core->quotas->n_undone >= options->queue_max - reserve) {
        (void)error_set(
            err, -EDQUOT, "the queue is full: %zu jobs are waiting or running", core->quotas->n_undone);
        return error_hint(err, "try again when some have ended");
    }
    const struct quota *found = find(core, who->uid), *quota = found != NULL ? found : &none;
    if (who->role == ROLE_ADMIN)
        return 0;
    if (who->is_guest && quota->open >= LIMIT_GUEST_ACQUIRES) {
        (void)error_set(
            err, -EDQUOT, "you have reached the limit of %zu waiting and granted requests here", quota->open);
        return error_hint(err, "try again when some of your commands have ended");
    }
    if (options->user_queue_max > 0 && quota->open >= options->user_queue_max) {
        (void)error_set(
            err, -EDQUOT, "you have reached the limit of %zu waiting and running jobs per user", quota->open);
        return error_hint(
            err, "submit again when some have ended, or combine similar jobs in an array (--array)");
    }
    int r = check_stored(core, who, size, 0, err);
    return r == 0 ? 0
                  : error_hint(err, "the environment is often the largest part: use `--export minimal`, or "
                                    "submit again later");
}

static int check_change(const struct core *core, const struct identity *who, struct error *err)
{
    int r = check_stored(core, who, 0, CHANGES_ROOM, err);
    return r == 0 ? 0 : error_hint(err, "changes of jobs count as well: try again later");
}

static void charge(struct core *core, uint32_t uid, size_t size)
{
    struct quota *quota = make(core, uid);
    if (core->options.user_day_bytes == 0)
        return;
    quota->stored = stored_now(core, quota) + size;
    quota->at_ms = core->boot_ms;
}

/* Changes of a job that a user requests, of any number. */
static void charge_change(struct core *core, const struct job_event *event)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    if (core->options.user_day_bytes == 0)
        return;
    record_encode(&job_event_record, event, &bytes);
    charge(core, event->uid, bytes.length);
}

static void count_open(struct core *core, uint32_t uid)
{
    core->quotas->n_undone++;
    make(core, uid)->open++;
}

static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    const struct job *job = entry->job;
    if (news->event->type == EVENT_SUBMITTED)
        count_open(core, job->uid);
    if (news->spec != NULL)
        charge(core, job->uid, news->spec->length);
    if ((news->bits & CHANGES) != 0)
        charge_change(core, news->event);
    if (job->state == JOB_DONE) {
        core->quotas->n_undone--;
        make(core, job->uid)->open--;
    }
}

static void on_load(struct core *core, struct core_entry *entry)
{
    if (entry->job->state != JOB_DONE)
        count_open(core, entry->job->uid);
}

static void init(struct core *core)
{
    core->quotas = xcalloc(1, sizeof(*core->quotas));
}

static void clear(struct core *core)
{
    for (size_t i = 0; i < CHAINS; i++) {
        while (core->quotas->chains[i] != NULL) {
            struct quota *quota = core->quotas->chains[i];
            core->quotas->chains[i] = quota->next;
            free(quota);
        }
    }
    free(core->quotas);
}

const struct core_concern core_concern_quotas = {
    .name = "quotas",
    .init = init,
    .free = clear,
    .load = on_load,
    .check = check,
    .check_change = check_change,
    .events = CORE_ON(EVENT_SUBMITTED) | CHANGES | CORE_ON_DONE,
    .event = on_event,
};
