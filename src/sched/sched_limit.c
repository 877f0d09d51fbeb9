/* SPDX-License-Identifier: MIT */
/*
 * Limits of users and groups. A class whose owner has reached a limit moves from the tree to its account's
 * list of parked classes, so that passes do not visit it, and returns when a job of that account ends.
 */
#include <errno.h>

#include "sched/sched_private.h"

struct account *sched_limiting(const struct sched *sched, const struct class_key *key, struct account *user,
    struct account *group, char *text, size_t size)
{
    uint32_t gpu_milli = (uint32_t)request_gpu_milli(&sched->cluster, &key->request);
    if (fairshare_is_limited(&sched->fairshare, user, sched->now_ms, gpu_milli, text, size))
        return user;
    if (fairshare_is_limited(&sched->fairshare, group, sched->now_ms, gpu_milli, text, size))
        return group;
    return NULL;
}

int sched_check_limits(const struct sched *sched, const struct class_key *key, struct error *err)
{
    int64_t gpu_milli = request_gpu_milli(&sched->cluster, &key->request);
    const struct {
        uint32_t id;
        enum account_kind kind;
        const char *whose, *key;
    } rows[] = { { key->uid, ACCOUNT_USER, "owner", "user" }, { key->gid, ACCOUNT_GROUP, "group", "group" } };
    for (size_t i = 0; i < 2; i++) {
        const struct account_limits *limits = fairshare_limits(&sched->fairshare, rows[i].id, rows[i].kind);
        if (!account_limits_exclude(limits, gpu_milli))
            continue;
        (void)error_set(err, -ERANGE, "requested %g GPUs; the limit of its %s is %g at a time",
            (double)gpu_milli / SHARE_WHOLE, rows[i].whose, (double)limits->gpu_milli / SHARE_WHOLE);
        return error_hint(
            err, "request fewer GPUs; administrators set the limit: --%s-max-gpus of mgpud", rows[i].key);
    }
    return 0;
}

int64_t sched_limit_ends(
    const struct sched *sched, const struct class_key *key, const struct account *account)
{
    if (account_limits_exclude(&account->limits, request_gpu_milli(&sched->cluster, &key->request)))
        return TIME_NEVER;
    return fairshare_limit_ends(&sched->fairshare, account, sched->now_ms);
}

uint64_t sched_position(const struct sched *sched, const struct sched_job *job)
{
    const struct queue_class *class = job->entry.class;
    char text[160];
    if (class == NULL || class->is_parked ||
        sched_limiting(sched, &class->key, class->account, class->group, text, sizeof(text)) != NULL)
        return 0;
    return queue_position(&sched->queue, &job->entry);
}

/* It has no more at a time than it may have, nothing else limits it, and no other class waits for it. */
static bool is_within(const struct account *account, const struct queue_class *waiting)
{
    const struct account_limits *limits = &account->limits;
    return limits->gpu_seconds <= 0 &&
           (limits->jobs == 0 || account->running + account->aside <= limits->jobs) &&
           (limits->gpu_milli == 0 ||
               (uint64_t)account->gpu_milli + account->aside_milli <= limits->gpu_milli) &&
           (account->parked == NULL || (account->parked == waiting && waiting->parked_next == NULL));
}

bool sched_limit_is_own(const struct queue_class *class, const struct queue_class *waiting)
{
    return is_within(class->account, waiting) && is_within(class->group, waiting);
}

/* A limit on GPU-seconds ends by decay alone: checked again at that time. */
static void arm(struct sched *sched, const struct account *account)
{
    int64_t ends = fairshare_limit_ends(&sched->fairshare, account, sched->now_ms);
    if (sched->limit_timer == 0 || ends < sched->limit_ms) {
        sched->limit_ms = ends;
        timers_set(&sched->timers, ends, TIMER_LIMIT, sched, &sched->limit_timer);
    }
}

void sched_park(struct sched *sched, struct queue_class *class, struct account *account)
{
    queue_park(&sched->queue, class);
    sched_own_changed(sched, class);
    sched_begin_turns(sched);
    class->parked_next = account->parked;
    account->parked = class;
    arm(sched, account);
}

void sched_unpark(struct sched *sched, struct account *account)
{
    while (account->parked != NULL) {
        struct queue_class *class = account->parked;
        account->parked = class->parked_next;
        class->parked_next = NULL;
        queue_unpark(&sched->queue, class);
        if (class->first != NULL)
            sched_rank_head(sched, class);
        sched->is_dirty = true;
    }
}

void sched_unpark_all(struct sched *sched)
{
    for (struct account *account = sched->fairshare.first; account != NULL; account = account->next)
        sched_unpark(sched, account);
}

static bool unlink_from(struct account *account, const struct queue_class *class)
{
    for (struct queue_class **link = &account->parked; *link != NULL; link = &(*link)->parked_next) {
        if (*link != class)
            continue;
        *link = class->parked_next;
        return true;
    }
    return false;
}

void sched_unpark_one(struct sched *sched, struct queue_class *class)
{
    if (!class->is_parked)
        return;
    if (!unlink_from(class->account, class))
        (void)unlink_from(class->group, class);
    class->parked_next = NULL;
    queue_unpark(&sched->queue, class);
}
