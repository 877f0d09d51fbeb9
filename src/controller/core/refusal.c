/* SPDX-License-Identifier: MIT */
/*
 * Nodes that cannot run a job are excluded for that job. Nodes that cannot start jobs for a reason that is
 * not the job's get no jobs for a time that doubles with each failure. Such a trouble is one cause on one
 * node. It excludes the jobs of one user, or all jobs if it affects the node as a whole; it excludes all only
 * after a second user's job failed too, so that no user can close a node to others with requests that it
 * cannot carry out.
 *
 * A job may be left only with nodes that are down, possibly for ever. If they still are when the site's time
 * limit for this has passed, the nodes that refused it are tried once more, and then only nodes that are up
 * count as alternatives.
 *
 * All of it is kept in memory: after a restart, the controller learns it again from the next failure.
 */
#include "controller/core/refusal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "controller/core/attempt.h"
#include "controller/core/change.h"
#include "controller/core/describe.h"
#include "controller/core/enqueue.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "job/start_failure.h"
#include "job/state.h"

#define BAR_FIRST_MS 1000
#define BAR_MAX_MS   30000 // upper limit, so that a repair is noticed after this time
#define STALE_MS     60000 // not seen for this long after its time: the next failure is another trouble
#define TROUBLES_MAX 4096U

struct core_trouble {
    char *node;
    uint32_t cause; // enum start_cause
    uint32_t uid;   // the first user affected
    bool is_of_all;
    int64_t since_ms;  // wall clock: the first failure
    int64_t barred_ms; // wall clock: start of the time until until_ms for which the node gets no jobs
    int64_t until_ms;
    unsigned doublings;
};

static uint32_t kept_away(const struct core_trouble *trouble)
{
    return trouble->is_of_all ? CLUSTER_ALL_USERS : trouble->uid;
}

static void drop(struct core *core, size_t at)
{
    free(core->troubles[at].node);
    core->troubles[at] = core->troubles[--core->n_troubles];
}

static bool is_stale(const struct core *core, const struct core_trouble *trouble)
{
    return core->now_ms >= trouble->until_ms + STALE_MS;
}

static void drop_stale(struct core *core)
{
    for (size_t i = core->n_troubles; i-- > 0;)
        if (is_stale(core, &core->troubles[i]) || core->n_troubles > TROUBLES_MAX)
            drop(core, i);
}

static struct core_trouble *find(struct core *core, const char *node, uint32_t cause, uint32_t uid)
{
    bool is_of_user = start_row(cause)->scope == START_OF_USER;
    for (size_t i = 0; i < core->n_troubles; i++) {
        struct core_trouble *trouble = &core->troubles[i];
        if (trouble->cause == cause && text_equal(trouble->node, node) &&
            (!is_of_user || trouble->uid == uid))
            return trouble;
    }
    return NULL;
}

static struct core_trouble *add(struct core *core, const char *node, uint32_t cause, uint32_t uid)
{
    core->troubles = xreallocarray(core->troubles, core->n_troubles + 1, sizeof(*core->troubles));
    struct core_trouble *trouble = &core->troubles[core->n_troubles++];
    *trouble =
        (struct core_trouble){ .node = xstrdup(node), .cause = cause, .uid = uid, .since_ms = core->now_ms };
    return trouble;
}

/* The failure of an attempt that was allocated before that time proves nothing new. */
static void leave_alone(const struct core *core, const struct core_entry *entry, struct core_trouble *trouble)
{
    if (trouble->doublings > 0 && core_extra(entry)->active_ms < trouble->barred_ms)
        return;
    int64_t wait_ms = trouble->doublings < 5 ? (int64_t)BAR_FIRST_MS << trouble->doublings : BAR_MAX_MS;
    trouble->doublings++;
    trouble->barred_ms = core->now_ms;
    trouble->until_ms = core->now_ms + (wait_ms < BAR_MAX_MS ? wait_ms : BAR_MAX_MS);
}

static bool has_lasted(const struct core *core, const struct job *job, const struct core_trouble *trouble)
{
    int64_t patience_ms = core->options.start_patience_ms;
    int64_t queued_ms = job->queued_ms != 0 ? job->queued_ms : job->submitted_ms;
    int64_t since_ms = trouble->since_ms > queued_ms ? trouble->since_ms : queued_ms;
    return patience_ms > 0 && core->now_ms - since_ms >= patience_ms;
}

static void record_bar(struct core *core, const struct core_trouble *trouble, uint32_t uid, int64_t until_ms)
{
    struct cluster_change change = {
        .kind = CHANGE_NODE_BAR, .node = trouble->node, .uid = uid, .until_ms = until_ms
    };
    core_change_cluster(core, &change);
}

static void bar(struct core *core, const struct core_trouble *trouble, const char *why)
{
    record_bar(core, trouble, kept_away(trouble), trouble->until_ms);
    sched_bar(core->sched, core->now_ms, trouble->node, kept_away(trouble), trouble->until_ms, why);
}

static void unbar(struct core *core, const struct core_trouble *trouble, uint32_t uid)
{
    record_bar(core, trouble, uid, 0);
    sched_unbar(core->sched, core->now_ms, trouble->node, uid);
}

/* True while the job is to wait for the node; false if the trouble has lasted longer than the site's time
 * limit, and the job has waited that long. */
static bool note_trouble(
    struct core *core, const struct core_entry *entry, const char *node, uint32_t cause, const char *text)
{
    const struct job *job = entry->job;
    if (start_row(cause)->scope == START_OF_JOB)
        return true;
    drop_stale(core);
    struct core_trouble *trouble = find(core, node, cause, job->uid);
    if (trouble == NULL)
        trouble = add(core, node, cause, job->uid);
    trouble->is_of_all |= start_row(cause)->scope == START_OF_NODE && trouble->uid != job->uid;
    leave_alone(core, entry, trouble);
    bool is_over = has_lasted(core, job, trouble);
    if (trouble->until_ms > core->now_ms)
        bar(core, trouble, text != NULL ? text : start_row(cause)->meaning);
    return !is_over;
}

/* --- nodes that cannot run it --- */

static void exclude(struct sched_request *request, const char *node)
{
    char *all = request->exclude == NULL ? xstrdup(node) : xasprintf("%s,%s", request->exclude, node);
    free(request->exclude);
    request->exclude = all;
}

/* The nodes that start no jobs now: down, drained, or not connected since mgpud started. */
static void exclude_absent(const struct core *core, struct sched_request *request)
{
    const struct cluster *known = sched_known(core->sched), *cluster = sched_cluster(core->sched);
    for (size_t i = 0; i < cluster->n_nodes; i++)
        if (!cluster->nodes[i].is_up || cluster->nodes[i].is_drained)
            exclude(request, cluster->nodes[i].name);
    for (size_t i = 0; i < known->n_nodes; i++)
        if (cluster_find(sched_cluster(core->sched), known->nodes[i].name) == NULL)
            exclude(request, known->nodes[i].name);
}

static bool has_waited_for_others(const struct core *core, const struct core_extra *extra)
{
    int64_t patience_ms = core->options.start_patience_ms;
    return patience_ms > 0 && core->now_ms - extra->refused_since_ms >= patience_ms;
}

static bool could_run_elsewhere(const struct core *core, const struct core_entry *entry)
{
    const struct job *job = entry->job;
    const struct core_facts none = { 0 };
    struct description description;
    struct error err = { 0 };
    struct job_ask ask = *job->ask;
    ask.after = NULL; // it has started before
    struct job waiting = *job;
    waiting.ask = &ask;
    if (core_describe(core, &waiting, &none, &description, &err) < 0)
        return false;
    if (has_waited_for_others(core, core_extra(entry)))
        exclude_absent(core, &description.spec.key.request);
    int r = sched_check(core->sched, &description.spec, &err);
    description_clear(&description);
    return r == 0;
}

static void record_refusal(struct core *core, const struct core_entry *entry)
{
    struct cluster_change change = {
        .kind = CHANGE_JOB_REFUSED, .job = entry->job->id, .text = core_extra(entry)->refused_by
    };
    core_change_cluster(core, &change);
}

static void set_readmission(const struct core *core, struct core_extra *extra)
{
    int64_t patience_ms = core->options.start_patience_ms;
    extra->readmits_ms = patience_ms > 0 ? core->now_ms + patience_ms : 0;
}

/* The attempt never ran. True if it is requeued for the other nodes; false if none of them could run it. */
static bool leave_out(struct core *core, struct core_entry *entry, const char *node, const char *text)
{
    bool is_stopping = entry->job->state == JOB_STOPPING;
    struct core_extra *extra = core_make_extra(entry);
    char *all = extra->refused_by == NULL ? xstrdup(node) : xasprintf("%s,%s", extra->refused_by, node);
    free(extra->refused_by);
    extra->refused_by = all;
    if (extra->refused_since_ms == 0)
        extra->refused_since_ms = core->now_ms;
    if (is_stopping || !could_run_elsewhere(core, entry)) {
        core_admit_again(entry);
        return false;
    }
    set_readmission(core, extra);
    record_refusal(core, entry);
    core_give_back_paced(core, entry, text);
    return true;
}

void core_readmit_nodes(struct core *core, struct core_entry *entry)
{
    struct core_extra *extra = core_make_extra(entry);
    const struct job_ask *asked = entry->job->ask;
    struct job_ask ask = *asked;
    if (could_run_elsewhere(core, entry)) { // once other jobs have freed resources
        set_readmission(core, extra);
        return;
    }
    free(take_ptr(extra->refused_by));
    extra->readmits_ms = 0;
    record_refusal(core, entry);
    ask.after = NULL; // it has started before
    entry->job->ask = &ask;
    core_enqueue(core, entry, NULL, true);
    entry->job->ask = asked;
}

/* Its node cannot start it now: the job waits, or is sent to other nodes after it has waited too long. */
static void wait_for_node(
    struct core *core, struct core_entry *entry, const char *node, uint32_t cause, const char *text)
{
    if (entry->job->state == JOB_STOPPING || start_row(cause)->scope == START_OF_JOB) {
        core_give_back(core, entry, text);
        return;
    }
    if (note_trouble(core, entry, node, cause, text)) {
        core_give_back_paced(core, entry, text);
        return;
    }
    if (leave_out(core, entry, node, text))
        return;
    char patience[32];
    format_duration(core->options.start_patience_ms, patience, sizeof(patience));
    _cleanup_free_ char *sentence = xasprintf("given up after its starts have failed for %s: %.800s",
        patience, text != NULL ? text : start_row(cause)->meaning);
    core_end_attempt(core, entry, END_START_FAILED, sentence);
}

bool core_start_failed(struct core *core, struct core_entry *entry, const char *node, enum start_class class,
    uint32_t cause, const char *text)
{
    switch (class) {
    case START_SOON: // its node has waited
    case START_ELSEWHERE: return leave_out(core, entry, node, text);
    case START_WAITS: wait_for_node(core, entry, node, cause, text); return true;
    default: return false;
    }
}

enum start_class core_start_class(const struct launch_exit *record)
{
    if (record->cause != START_UNNAMED && record->cause < START_CAUSES)
        return start_row(record->cause)->class;
    if (record->end == END_UNKNOWN)
        return START_WAITS;
    return record->is_refused != 0 ? START_ELSEWHERE : START_FINAL;
}

/* --- the end of trouble --- */

static void forget_on(struct core *core, const char *node, uint32_t uid)
{
    for (size_t i = core->n_troubles; i-- > 0;) {
        const struct core_trouble *trouble = &core->troubles[i];
        const struct start_row *row = start_row(trouble->cause);
        bool is_met = row->scope == START_OF_NODE || trouble->uid == uid;
        if (!row->is_met_by_all || !is_met || !text_equal(trouble->node, node))
            continue;
        unbar(core, trouble, trouble->uid);
        if (trouble->is_of_all)
            unbar(core, trouble, CLUSTER_ALL_USERS);
        drop(core, i);
    }
}

void core_forget_trouble(struct core *core, const struct job *job)
{
    for (size_t i = 0; core->n_troubles > 0 && i < job_node_count(job); i++)
        forget_on(core, job_node_name(job, i), job->uid);
}

void core_clear_troubles(struct core *core)
{
    while (core->n_troubles > 0)
        drop(core, core->n_troubles - 1);
    free(core->troubles);
}
