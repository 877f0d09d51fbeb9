/* SPDX-License-Identifier: MIT */
/* The jobs that precede a job in the queue and compete for its resources, and the rule by which later
 * submitted ones precede it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "sched/sched_private.h"
#include "sched/why.h"

static bool admits(const struct sched_request *request, const struct gpu_pick *pick)
{
    bool is_allowed = request->n_allow == 0, is_named = request->n_picks == 0;
    for (size_t i = 0; i < request->n_allow; i++)
        is_allowed |= request->allow[i] == pick->index;
    for (size_t i = 0; i < request->n_picks; i++) {
        const struct gpu_pick *own = &request->picks[i];
        bool is_same_node = own->node == NULL || pick->node == NULL || strcmp(own->node, pick->node) == 0;
        is_named |= own->index == pick->index && is_same_node;
    }
    return is_allowed && is_named;
}

static bool share_a_node(
    const struct cluster *cluster, const struct sched_request *a, const struct sched_request *b)
{
    bool is_whole = a->partition == NULL || b->partition == NULL || (a->partitions & b->partitions) != 0;
    for (size_t i = 0; i < cluster->n_nodes && !is_whole; i++)
        is_whole = cluster_node_admits(&cluster->nodes[i], a) && cluster_node_admits(&cluster->nodes[i], b);
    return is_whole;
}

/* The two can compete: some GPU could serve either, or both need CPUs or memory. */
static bool contend(const struct sched *sched, const struct sched_request *a, const struct sched_request *b)
{
    const struct cluster *cluster = &sched->cluster;
    bool is_strict = sched->settings.policy->backfill == BACKFILL_NONE;
    bool is_any = is_strict || sched->settings.node_jobs > 0 || (a->cpu_milli > 0 && b->cpu_milli > 0) ||
                  (a->memory > 0 && b->memory > 0);
    if (is_any || a->gpus == 0 || b->gpus == 0)
        return is_any;
    if ((cluster_models(cluster, a) & cluster_models(cluster, b)) == 0 || !share_a_node(cluster, a, b))
        return false;
    const struct sched_request *named = a->n_picks > 0 ? a : b, *other = named == a ? b : a;
    bool can_meet = named->n_picks == 0 && (a->n_allow == 0 || b->n_allow == 0);
    for (size_t i = 0; i < named->n_picks; i++)
        can_meet |= admits(other, &named->picks[i]);
    for (size_t i = 0; i < a->n_allow && named->n_picks == 0; i++)
        can_meet |= admits(b, &(struct gpu_pick){ .index = a->allow[i] });
    return can_meet;
}

static uint64_t count_jobs(
    const struct queue_class *class, const struct queue_entry *until, struct why_reason *reason)
{
    uint64_t count = until == NULL ? class->length : 0;
    for (const struct queue_entry *entry = class->first; entry != until; entry = entry->after) {
        count += until != NULL;
        if (reason->n_jobs < sizeof(reason->jobs) / sizeof(reason->jobs[0]))
            why_add_job(reason, entry->job);
        else if (until == NULL)
            break;
    }
    return count;
}

/* The jobs for which free resources are held: the head of each such class. */
static void add_keepers(const struct sched *sched, const struct sched_job *job, struct why_reason *reason)
{
    const struct sched_request *request = &job->class->key.request;
    for (size_t i = 0; i < sched->n_holds; i++) {
        const struct queue_class *class = sched->holds[i].class;
        if (class != NULL && class->first != NULL && class != job->class &&
            contend(sched, &class->key.request, request))
            why_add_job(reason, class->first->job);
    }
}

#define RULE_CLASSES 64U // examined for the rule that a list shows
#define HOUR_S       3600.0
#define MINUTE_MS    INT64_C(60000)

/* Why jobs submitted later come first: for each cause the first such job, 0: none. */
struct overtaking {
    uint64_t shorter, newcomer, poorer, preferred;
    int64_t expected_ms; // of the shorter one
    const struct queue_class *shorter_class;
    const struct account *account, *own; // of the poorer one and of this job: where they differ
};

/* The highest level at which the class has used less of its share: department, group or user. */
static bool find_poorer(
    const struct queue_class *class, const struct queue_class *own, struct overtaking *ret)
{
    const struct account *theirs[] = { class->group->parent, class->group, class->account };
    const struct account *ours[] = { own->group->parent, own->group, own->account };
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (theirs[i] == ours[i] || theirs[i] == NULL || ours[i] == NULL ||
            theirs[i]->factor >= ours[i]->factor)
            continue;
        ret->account = theirs[i];
        ret->own = ours[i];
        return true;
    }
    return false;
}

static void note_overtaking(
    const struct queue_class *class, const struct sched_job *job, struct overtaking *overtaking)
{
    const struct class_key *key = &class->key, *own = &job->class->key;
    bool is_equal =
        class_priority(class) == class_priority(job->class) && key->is_preemptible == own->is_preemptible;
    if (!is_equal || key->has_begun || class->last == NULL || class->last->submit_ms <= job->entry.submit_ms)
        return;
    bool is_preferred = class->account == job->class->account && key->own_priority > own->own_priority;
    bool is_shorter = !is_preferred && class->expected_ms < job->class->expected_ms;
    bool is_other = !is_preferred && !is_shorter && class->account != job->class->account;
    bool is_newcomer = is_other && sched_has_head_start(class) && !sched_has_head_start(job->class);
    if (is_preferred && overtaking->preferred == 0)
        overtaking->preferred = class->last->job;
    if (is_shorter && overtaking->shorter == 0) {
        overtaking->shorter = class->last->job;
        overtaking->expected_ms = class->expected_ms;
        overtaking->shorter_class = class;
    }
    if (is_newcomer && overtaking->newcomer == 0)
        overtaking->newcomer = class->last->job;
    if (is_other && !is_newcomer && overtaking->poorer == 0 && find_poorer(class, job->class, overtaking))
        overtaking->poorer = class->last->job;
}

/* "they are expected to be shorter (job 17: 3m, this one: 9h; with a time limit of 3h or less it would be
 * ahead of job 17)" */
static void shorter_text(struct sched *sched, const struct overtaking *overtaking,
    const struct sched_job *job, char *text, size_t size)
{
    char theirs[32], ours[32], limit[32], change[128] = "";
    format_duration(overtaking->expected_ms, theirs, sizeof(theirs));
    format_duration(job->class->expected_ms, ours, sizeof(ours));
    int64_t limit_ms = sched_limit_to_precede(sched, job, overtaking->shorter_class);
    if (limit_ms >= MINUTE_MS) {
        format_duration(limit_ms / MINUTE_MS * MINUTE_MS, limit, sizeof(limit));
        (void)snprintf(change, sizeof(change),
            "; with a time limit of %s or less it would be ahead of job %llu", limit,
            (unsigned long long)overtaking->shorter);
    }
    (void)snprintf(text, size, "they are expected to be shorter (job %llu: %s, this one: %s%s)",
        (unsigned long long)overtaking->shorter, theirs, ours, change);
}

static double hours_of(const struct sched *sched, const struct account *account)
{
    return fairshare_charged(&sched->fairshare, account, sched->now_ms) / HOUR_S;
}

/* "their users have less recent usage (job 17: 3.1 GPU-hours, this one: 41.0)"; of groups and departments
 * also how much of their share that is. */
static void poorer_text(
    const struct sched *sched, const struct overtaking *overtaking, char *text, size_t size)
{
    static const char *const names[] = { "users", "groups", "departments" };
    const struct account *theirs = overtaking->account, *own = overtaking->own;
    char half_life[32];
    format_duration(sched->settings.half_life_ms, half_life, sizeof(half_life));
    if (theirs->kind == ACCOUNT_USER)
        (void)snprintf(text, size,
            "their users have less recent usage (job %llu: %.1f GPU-hours, this one: %.1f; it halves in %s)",
            (unsigned long long)overtaking->poorer, hours_of(sched, theirs), hours_of(sched, own), half_life);
    else
        (void)snprintf(text, size,
            "their %s have used less of their shares (job %llu: %.1f GPU-hours, %.2f times its share; this "
            "one: %.1f, %.2f times; usage halves in %s)",
            names[theirs->kind], (unsigned long long)overtaking->poorer, hours_of(sched, theirs),
            exp2(theirs->factor), hours_of(sched, own), exp2(own->factor), half_life);
}

static void add_overtaking(struct sched *sched, const struct overtaking *overtaking,
    const struct sched_job *job, char *text, size_t size)
{
    char shorter[320] = "", newcomer[80] = "", poorer[240] = "";
    if (overtaking->shorter != 0)
        shorter_text(sched, overtaking, job, shorter, sizeof(shorter));
    if (overtaking->newcomer != 0)
        (void)snprintf(newcomer, sizeof(newcomer), "their users have nothing running (job %llu)",
            (unsigned long long)overtaking->newcomer);
    if (overtaking->poorer != 0)
        poorer_text(sched, overtaking, poorer, sizeof(poorer));
    const char *causes[] = { overtaking->preferred != 0 ? "their owner gave them a higher priority" : "",
        shorter, newcomer, poorer };
    const char *before = "; later submissions are ahead because ";
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        if (causes[i][0] == '\0')
            continue;
        size_t length = strlen(text);
        (void)snprintf(text + length, size - length, "%s%s", before, causes[i]);
        before = ", or because ";
    }
}

/* Jobs of a better rank that need the same resources: how many, and which. */
void why_order(struct sched *sched, const struct sched_job *job, bool does_fit, struct why *why)
{
    const struct queue_class *own = job->class;
    struct why_reason before = { .n_jobs = 0 };
    struct overtaking overtaking = { 0 };
    uint64_t count = 0;
    for (const struct queue_class *class = queue_first(&sched->queue); class != NULL && class != own;
         class = queue_next(class))
        if (contend(sched, &class->key.request, &own->key.request)) {
            count += count_jobs(class, NULL, &before);
            note_overtaking(class, job, &overtaking);
        }
    count += count_jobs(own, &job->entry, &before);
    struct why_reason *reason = count > 0 ? why_add(why, WHY_PRIORITY, TIME_NEVER) : NULL;
    if (reason == NULL) // it fits and is first: the next pass starts it
        return;
    if (does_fit)
        add_keepers(sched, job, reason);
    for (size_t i = 0; i < before.n_jobs && (!does_fit || sched->n_holds == 0); i++)
        why_add_job(reason, before.jobs[i]);
    if (does_fit)
        (void)snprintf(reason->text, sizeof(reason->text),
            "its resources are free, but reserved for jobs ahead of it, which it would delay");
    else
        (void)snprintf(reason->text, sizeof(reason->text), "%llu job%s ahead of it in the queue",
            (unsigned long long)count, count == 1 ? " is" : "s are");
    if (!does_fit)
        add_overtaking(sched, &overtaking, job, reason->text, sizeof(reason->text));
}

/* The rule by which the first job of a class precedes a job, in numbers. */
static void rule_text(const struct sched *sched, const struct queue_class *class, const struct sched_job *job,
    char *text, size_t size)
{
    const struct queue_class *own = job->class;
    struct overtaking rule = { 0 };
    char theirs[32], ours[32];
    note_overtaking(class, job, &rule);
    if (class_priority(class) != class_priority(own))
        (void)snprintf(text, size, "has a higher priority (%lld, this one %lld)",
            (long long)class_priority(class), (long long)class_priority(own));
    else if (class->key.is_preemptible != own->key.is_preemptible)
        (void)snprintf(text, size, "is not preemptible");
    else if (class->first->submit_ms <= job->entry.submit_ms)
        (void)snprintf(text, size, "was submitted earlier");
    else if (rule.preferred != 0)
        (void)snprintf(text, size, "has a higher priority of its owner");
    else if (rule.shorter != 0) {
        format_duration(class->expected_ms, theirs, sizeof(theirs));
        format_duration(own->expected_ms, ours, sizeof(ours));
        (void)snprintf(text, size, "is expected to take %s, this one %s", theirs, ours);
    } else if (rule.newcomer != 0)
        (void)snprintf(text, size, "is of a user with nothing running");
    else if (rule.poorer != 0)
        (void)snprintf(text, size, "is of a %s with %.1f recent GPU-hours, this one's has %.1f",
            rule.account->kind == ACCOUNT_USER    ? "user"
            : rule.account->kind == ACCOUNT_GROUP ? "group"
                                                  : "department",
            hours_of(sched, rule.account), hours_of(sched, rule.own));
}

/* Appends the first job ahead and its rule: "; after job 17, which is expected to take 3m, this one 9h". A
 * list shows this for every job, so only the beginning of the queue is examined. */
void why_add_rule(const struct sched *sched, const struct sched_job *job, char *text, size_t size)
{
    const struct queue_class *class = queue_first(&sched->queue), *own = job->class;
    char rule[160] = "";
    for (unsigned i = 0; i < RULE_CLASSES && class != NULL && class != own; i++, class = queue_next(class)) {
        if (!contend(sched, &class->key.request, &own->key.request))
            continue;
        rule_text(sched, class, job, rule, sizeof(rule));
        break;
    }
    if (rule[0] == '\0' && own->first != &job->entry) {
        class = own;
        (void)snprintf(rule, sizeof(rule), "was submitted earlier");
    }
    size_t length = strlen(text);
    if (rule[0] != '\0')
        (void)snprintf(text + length, size - length, "; after job %llu, which %s",
            (unsigned long long)class->first->job, rule);
}

void why_explain_bound(struct sched *sched, const struct sched_job *job, struct why *why)
{
    const struct sched_settings *settings = &sched->settings;
    char length[32];
    why->overtaken_until_ms = sched_overtaken_until(sched, job);
    why->promised_ms = sched_promised_until(sched, job);
    int64_t after_ms = why->promised_ms - job->entry.submit_ms;
    if (why->promised_ms == TIME_NEVER || after_ms <= 0)
        return;
    format_duration(after_ms, length, sizeof(length));
    bool is_by_age = settings->age_cap_ms > 0 && after_ms >= settings->age_cap_ms;
    if (is_by_age)
        (void)snprintf(why->promise_basis, sizeof(why->promise_basis), "%s after it, the age cap", length);
    else
        (void)snprintf(why->promise_basis, sizeof(why->promise_basis), "%s after it, %d times its time limit",
            length, POLICY_PATIENCE);
}
