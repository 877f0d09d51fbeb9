/* SPDX-License-Identifier: MIT */
/*
 * Short jobs go first. A waiting job that is blocked, the guest, may have the GPUs of running ones, its hosts
 * (sched_hosts.c), which are parked for it. It has certainly ended by the time that they must return, or can
 * be parked itself (fit.c), or the parked jobs will have other GPUs (sched_debts.c). After a blocked job that
 * cannot be parked and has no time limit, no job is a guest: the blocked job needs GPUs that are not owed,
 * and there would be fewer and fewer. Order, shares, limits and holds apply as to all waiting jobs: the guest
 * is the first blocked job for which there is a host.
 *
 * Such a job may also borrow GPUs that stay owed to a parked job, its lender, if its command is known to
 * refuse and if it has, probably, ended long before they are due. If it still runs then, it is preempted
 * (sched_return.c) and starts again from the beginning. Its caller lets a job borrow until that has happened
 * to it (may_borrow), so it happens once.
 */
#include "base/memory.h"
#include "sched/sched_private.h"

#define ASK_AGAIN_MS 600000 // a host is already being parked for this guest

bool sched_guest_has_asked(const struct sched *sched, const struct queue_class *class)
{
    return class->asked_ms != 0 && sched->now_ms - class->asked_ms < ASK_AGAIN_MS;
}

const char *sched_guest_bar(const struct queue_class *class)
{
    const struct sched_request *request = &class->key.request;
    const struct {
        bool is_so;
        const char *why;
    } rows[] = {
        { request->gpus == 0, "it needs no GPU" },
        { class->key.is_preemptible, "it is preemptible" },
        { request->nodes > 1, "it needs several nodes" },
        { request_is_shared(request), "it needs only a part of a GPU" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_so)
            return rows[i].why;
    return NULL;
}

/* --- jobs that borrow --- */

static bool may_borrow(const struct sched *sched, const struct sched_job *job)
{
    const struct job_rules *rules = job->rules;
    bool is_part = rules != NULL && (rules->is_array || rules->array != 0);
    bool has_work = rules != NULL && (rules->ran_ms > 0 || rules->parked != NULL);
    return job->class->key.limit_ms == 0 && !job->class->key.is_preemptible && !is_part && !has_work &&
           sched->callbacks.may_borrow(sched->callbacks.arg, job->entry.job);
}

static bool are_gpus_lent(const struct sched *sched)
{
    return sched_parks(sched) && sched->settings.park_margin > 0 && sched->callbacks.may_borrow != NULL;
}

/* Has it ended, as expected, long before the GPUs are due? */
bool sched_borrow_fit(
    const struct sched *sched, const struct queue_class *class, const struct fit *fit, struct fit *ret)
{
    bool may_be = are_gpus_lent(sched) && fit->give_back_ms == 0 && sched_class_is_plain(sched, class);
    const struct sched_job *job = may_be ? sched_find(sched, class->first->job) : NULL;
    if (job == NULL || !may_borrow(sched, job))
        return false;
    int64_t needs_ms = sched_job_needs(sched, job), slot_ms = sched_park_slot(sched);
    int64_t least_ms = needs_ms > TIME_NEVER / sched->settings.park_margin
                           ? TIME_NEVER
                           : needs_ms * sched->settings.park_margin;
    least_ms = least_ms > slot_ms ? least_ms : slot_ms; // as the jobs of a GPU take turns
    *ret = *fit;
    ret->give_back_ms = least_ms < TIME_NEVER - sched->now_ms ? sched->now_ms + least_ms : TIME_NEVER;
    return true;
}

bool sched_may_borrow(const struct sched *sched, uint64_t id)
{
    const struct sched_job *job = sched_find(sched, id);
    return job != NULL && job->run == NULL && are_gpus_lent(sched) &&
           sched_class_is_plain(sched, job->class) && may_borrow(sched, job);
}

static const struct parked_job *lender_of(const struct sched *sched, const struct sched_run *run)
{
    const struct parked_job *first = NULL;
    int64_t limit_ms = run->job->class->key.limit_ms;
    if (sched->n_parked == 0 || run->job->class->key.is_preemptible || sched_run_can_park(sched, run))
        return NULL;
    for (size_t i = 0; i < sched->n_parked; i++) {
        const struct parked_job *parked = sched->parked[i];
        bool is_over = sched_run_ends_by(sched, run, limit_ms, parked->due_ms);
        if (!is_over && !sched_parked_is_held(parked) && sched_shares_gpu(&run->allocation, &parked->owed) &&
            (first == NULL || parked->due_ms < first->due_ms))
            first = parked;
    }
    return first;
}

uint64_t sched_lender(const struct sched *sched, uint64_t id, int64_t *ret_due_ms)
{
    const struct sched_job *job = sched_find(sched, id);
    const struct parked_job *parked =
        job != NULL && job->run != NULL && sched_parks(sched) ? lender_of(sched, job->run) : NULL;
    if (parked == NULL)
        return 0;
    *ret_due_ms = parked->due_ms;
    return parked->job->entry.job;
}

uint64_t sched_borrower(const struct sched *sched, uint64_t id)
{
    const struct sched_job *job = sched_find(sched, id);
    const struct parked_job *parked = job != NULL && job->rules != NULL ? job->rules->parked : NULL;
    for (size_t i = 0; parked != NULL && sched_parks(sched) && i < sched->n_runs; i++)
        if (sched_shares_gpu(&sched->runs[i]->allocation, &parked->owed) &&
            lender_of(sched, sched->runs[i]) == parked)
            return sched->runs[i]->job->entry.job;
    return 0;
}

/* --- guests --- */

static bool never_leaves(const struct queue_class *class, const struct fit *fit)
{
    return class->key.request.gpus > 0 && class->key.limit_ms == 0 && fit->give_back_ms == 0;
}

static bool park_hosts(struct sched *sched, struct queue_class *class, struct fit *fit)
{
    struct sched_run *hosts[TRIAL_MAX];
    uint64_t job = class->first->job;
    struct guest guest = { .sched = sched, .class = class, .fit = fit };
    guest.needs_ms = sched_job_needs(sched, sched_find(sched, job));
    int64_t end_ms = fit->end_ms;
    fit->end_ms = sched->now_ms + guest.needs_ms;
    size_t count = sched_hosts_choose(&guest, hosts);
    if (count > 0) {
        class->asked_ms = sched->now_ms;
        return sched_give_back_all(sched, hosts, count, job, job);
    }
    fit->end_ms = end_ms;
    return false;
}

/* Of GPUs that its hosts leave, and that stay owed to them. */
static bool park_lenders(struct sched *sched, struct queue_class *class, struct fit *fit)
{
    struct fit borrowing;
    if (!sched_borrow_fit(sched, class, fit, &borrowing) || !park_hosts(sched, class, &borrowing))
        return false;
    *fit = borrowing;
    return true;
}

bool sched_guest_make_way(struct sched *sched, struct queue_class *class, struct fit *fit)
{
    bool may_ask =
        sched->guests_over == 0 && !sched_guest_has_asked(sched, class) && sched_guest_bar(class) == NULL;
    uint64_t job = class->first->job;
    bool are_parked = may_ask && (park_hosts(sched, class, fit) || (!sched_guest_has_asked(sched, class) &&
                                                                       park_lenders(sched, class, fit)));
    if (!are_parked && sched->guests_over == 0 && never_leaves(class, fit))
        sched->guests_over = job;
    return are_parked;
}

/* All its hosts are parked: their GPUs are open again. */
static void open_for(struct sched *sched, uint64_t guest)
{
    for (size_t i = 0; i < sched->n_parked; i++)
        if (sched->parked[i]->is_guest_due && sched->parked[i]->guest == guest) {
            sched->parked[i]->is_guest_due = false;
            sched_parked_keep(sched, sched->parked[i], false);
        }
}

void sched_guests_first(struct sched *sched)
{
    for (size_t i = 0; i < sched->n_parked; i++) {
        struct parked_job *parked = sched->parked[i];
        if (!parked->is_guest_due)
            continue;
        if (sched_is_awaited(sched, parked->guest)) {
            sched_parked_keep(sched, parked, true);
            continue;
        }
        const struct sched_job *job = sched_find(sched, parked->guest);
        struct queue_class *class = job != NULL ? job->entry.class : NULL;
        open_for(sched, parked->guest);
        if (class == NULL || class->is_parked)
            continue;
        (void)sched_try_class(sched, class);
        i = SIZE_MAX; // the list of parked jobs may have changed: start again
    }
}

int64_t sched_guest_change(const struct sched *sched, const struct sched_run *run)
{
    int64_t ran_ms = sched->now_ms - run->allocated_ms, next_ms = sched->settings.quantum_ms;
    while (next_ms <= ran_ms)
        next_ms += next_ms / 4; // the time for which it may be parked grows with it
    return run->allocated_ms + next_ms;
}
