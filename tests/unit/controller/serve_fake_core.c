/* SPDX-License-Identifier: MIT */
/* The core that the API sees in its tests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/config/settings.h"
#include "controller/core/counts.h"
#include "controller/core/entry.h"
#include "controller/core/forecasts.h"
#include "controller/core/notification.h"
#include "controller/core/park.h"
#include "controller/core/park_proof.h"
#include "controller/core/settings.h"
#include "controller/core/tables.h"
#include "serve_later.h"

static void reply_later(void *request, const struct core_answer *answer)
{
    struct later *later = later_add(LATER_REPLY);
    later->request = request;
    later->answer = *answer;
}

void core_submit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request)
{
    struct core_answer answer = { .code = current->submit_code };
    current->asked_by = *who;
    job_spec_free(current->submitted);
    current->submitted = spec;
    if (answer.code < 0)
        (void)error_set(&answer.err, answer.code, "refused by the core");
    else if (spec->ask.adopted_pid == 0)
        answer.code = job_spec_validate(spec, &answer.err);
    if (answer.code < 0) {
        reply_later(request, &answer);
        return;
    }
    struct job *job = job_new(core->n_jobs + 1, spec);
    job->uid = who->uid;
    job->state = JOB_QUEUED;
    job->submitted_ms = wall_ms;
    core->jobs[core->n_jobs++] = job;
    answer.job = job->id;
    if (!current->is_submit_held)
        reply_later(request, &answer);
}

static void answer_waiters(struct job *job)
{
    struct waiter **link = &current->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        if (waiter->job != job->id || (waiter->states & (1U << job->state)) == 0) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        reply_later(waiter->request, &(struct core_answer){ .job = job->id });
        free(waiter);
    }
}

void harness_set_state(struct harness *harness, struct job *job, enum job_state state)
{
    job->state = state;
    answer_waiters(job);
}

void core_adopt(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    struct job_spec *spec, const struct core_facts *facts, void *request)
{
    core_submit(core, boot_ms, wall_ms, who, spec, facts, request);
}

void core_cancel(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t id,
    int64_t grace_ms, void *request)
{
    struct core_answer answer = { .job = id };
    current->asked_by = *who;
    current->grace_ms = grace_ms;
    for (size_t i = 0; i < core->n_jobs; i++) {
        if (core->jobs[i]->id != id)
            continue;
        core->jobs[i]->end = END_CANCELLED;
        core->jobs[i]->ended_ms = wall_ms;
        harness_set_state(current, core->jobs[i], JOB_DONE);
    }
    reply_later(request, &answer);
}

void core_cancel_process(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t id, int64_t grace_ms, void *request)
{
    core_cancel(core, boot_ms, wall_ms, who, id, grace_ms, request);
}

/* Nothing is behind another here. */
bool core_take_back(
    struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job)
{
    return false;
}

void core_wait_outcome(struct core *core, uint64_t job, void *request)
{
    core_wait(core, job, ~(1U << JOB_STARTING), request);
}

void core_cancel_waiting(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t id, void *request)
{
    core_cancel(core, boot_ms, wall_ms, who, id, -1, request);
}

void core_wait(struct core *core, uint64_t job, uint32_t states, void *request)
{
    const struct job *found = core_job(core, job);
    struct core_answer answer = { .job = job };
    if (found == NULL)
        answer.code = error_set(&answer.err, -ENOENT, "no such job");
    if (found == NULL || (states & (1U << found->state)) != 0) {
        reply_later(request, &answer);
        return;
    }
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){ .next = current->waiters, .request = request, .job = job, .states = states };
    current->waiters = waiter;
}

void core_barrier(struct core *core, void *request)
{
    current->barriers++;
    later_add(LATER_BARRIER)->request = request;
}

void core_forget(struct core *core, void *request)
{
    current->forgotten++;
    for (struct later *later = current->later; later != NULL; later = later->next)
        if (later->request == request)
            later->request = NULL;
    struct waiter **link = &current->waiters;
    while (*link != NULL) {
        struct waiter *waiter = *link;
        if (waiter->request != request) {
            link = &waiter->next;
            continue;
        }
        *link = waiter->next;
        free(waiter);
    }
}

static struct core_entry *entry_of(const struct core *core, size_t i)
{
    static struct core_entry entries[HARNESS_JOBS_MAX];
    entries[i].job = core->jobs[i];
    return &entries[i];
}

struct core_entry *core_find(const struct core *core, uint64_t id)
{
    for (size_t i = 0; i < core->n_jobs; i++)
        if (core->jobs[i]->id == id)
            return entry_of(core, i);
    return NULL;
}

const struct job *core_job(const struct core *core, uint64_t id)
{
    const struct core_entry *entry = core_find(core, id);
    return entry != NULL ? entry->job : NULL;
}

void core_each_job(const struct core *core, void (*visit)(void *arg, const struct job *job), void *arg)
{
    for (size_t i = core->n_jobs; i > 0; i--) // in no useful order
        visit(arg, core->jobs[i - 1]);
}

static const struct job *job_after(const struct core *core, uint64_t id)
{
    const struct job *next = NULL;
    for (size_t i = 0; i < core->n_jobs; i++)
        if (core->jobs[i]->id > id && (next == NULL || core->jobs[i]->id < next->id))
            next = core->jobs[i];
    return next;
}

uint64_t core_each_job_after(const struct core *core, uint64_t id, size_t max,
    void (*visit)(void *arg, const struct job *job), void *arg)
{
    const struct job *job = job_after(core, id);
    for (id = 0; job != NULL && max-- > 0; job = job_after(core, id)) {
        id = job->id;
        visit(arg, job);
    }
    return id;
}

/* The newest is next. */
void core_each_in_line(
    const struct core *core, const uint32_t *uid, bool (*visit)(void *arg, const struct job *job), void *arg)
{
    for (size_t i = core->n_jobs; i > 0; i--) {
        const struct job *job = core->jobs[i - 1];
        if (job->state != JOB_QUEUED || job->hold != 0 || (uid != NULL && job->uid != *uid))
            continue;
        if (!visit(arg, job))
            return;
    }
}

const struct job_usage *core_usage(const struct core_entry *entry)
{
    return job_run(entry->job)->usage;
}

const char *core_delay(
    const struct core *core, int64_t wall_ms, const struct core_entry *entry, char *text, size_t size)
{
    return NULL;
}

int64_t core_checkpoint_until(const struct core_entry *entry)
{
    return entry->job->ask->checkpoint && entry->job->is_requeued ? clock_wall_ms() + 20000 : 0;
}

struct json_rank *core_ranks_list(const struct core_entry *entry)
{
    return NULL;
}

const char *core_log_path(const struct core *core, const struct job *job, uint32_t rank)
{
    const struct job_node *node = job_node(job, rank);
    return rank == 0 ? job_run(job)->log_path : node != NULL ? node->log_path : NULL;
}

int64_t core_idle_ms(const struct core_entry *entry)
{
    const struct job_usage *usage = core_usage(entry);
    return usage != NULL ? (int64_t)usage->idle_ms : 0;
}

int64_t core_latest_return(const struct core *core, uint64_t job)
{
    return TIME_NEVER;
}

uint64_t core_park_host(const struct core *core, uint64_t guest)
{
    return 0;
}

char *core_why_not_parked(const struct core *core, const struct core_entry *entry)
{
    return NULL;
}

char *core_describe_early(const struct core *core, const struct core_entry *entry)
{
    return NULL;
}

int64_t core_idle_end_ms(const struct core *core, const struct job *job)
{
    return job->ask->idle_timeout_ms;
}

void core_wait_idle(struct core *core, uint64_t job, uint32_t states, uint32_t idle_level, void *request)
{
    core_wait(core, job, states, request);
}

int64_t core_gpu_idle_ms(const struct core_entry *entry, const char *uuid)
{
    return core_idle_ms(entry);
}

void core_each_notification(const struct core *core, uint64_t job,
    void (*visit)(void *arg, const struct notification *notice, bool is_sending), void *arg)
{
}

const char *notification_state_name(enum notification_state state)
{
    return "waiting";
}

void core_wait_element(struct core *core, uint64_t array, uint32_t index, uint32_t states, void *request)
{
    core_wait(core, array, states, request);
}

bool core_gpu_is_wasted(const struct core *core, const struct core_entry *entry, const char *uuid)
{
    return false;
}

size_t core_queue_position(const struct core *core, uint64_t id)
{
    return 3;
}

const char *core_wait_reason(
    const struct core *core, int64_t wall_ms, const struct core_entry *entry, char *text, size_t size)
{
    (void)snprintf(text, size, "waits for a GPU");
    return "resources";
}

int64_t core_now_ms(const struct core *core, int64_t wall_ms)
{
    return wall_ms;
}

void core_eta(struct core *core, int64_t wall_ms, uint64_t job, int64_t *ret_eta_ms, int64_t *ret_latest_ms)
{
    *ret_eta_ms = *ret_latest_ms = TIME_NEVER;
}

int64_t core_expected_end(const struct core *core, int64_t wall_ms, uint64_t job, int64_t eta_ms)
{
    return TIME_NEVER;
}

const char *core_department_name(const struct core *core, uint32_t number)
{
    return NULL;
}

const struct kept_forecast *core_kept_forecast(const struct core *core, size_t index)
{
    return NULL;
}

const struct calibration *core_calibration(const struct core *core)
{
    static struct calibration calibration;
    return &calibration;
}

void core_eta_interval(const struct core *core, int64_t wall_ms, int64_t eta_ms, int64_t latest_ms,
    int64_t begin_ms, int64_t *ret_from_ms, int64_t *ret_until_ms)
{
    *ret_from_ms = *ret_until_ms = 0;
}

int64_t core_version(const struct core *core)
{
    return current->version;
}

struct why_run {
    unsigned parts; // done
};

bool core_why_behind(const struct core *core, int64_t wall_ms, const struct job *job, struct why *ret)
{
    return false;
}

struct why_run *core_why_begin(const struct core *core, int64_t wall_ms, uint64_t job)
{
    const struct job *found = core_job(core, job);
    if (found == NULL || found->state != JOB_QUEUED)
        return NULL;
    current->whys++;
    return xcalloc(1, sizeof(struct why_run));
}

bool core_why_advance(struct why_run *run, size_t steps)
{
    for (int64_t end_ms = clock_boot_ms() + current->why_ms; clock_boot_ms() < end_ms;)
        continue; // as a forecast with a long queue
    return ++run->parts > current->why_parts;
}

void core_why_end(struct why_run *run, struct why *ret)
{
    free(run);
    if (ret == NULL)
        return;
    *ret = (struct why){ .n_reasons = 1, .eta_ms = 60000, .latest_ms = TIME_NEVER, .position = 3 };
    ret->reasons[0].until_ms = TIME_NEVER;
    (void)snprintf(ret->reasons[0].text, sizeof(ret->reasons[0].text), "waits for a GPU");
}

bool core_advance_forecasts(struct core *core, int64_t wall_ms, size_t steps)
{
    int64_t until_ms = clock_boot_ms() + current->look_ms;
    while (clock_boot_ms() < until_ms)
        continue;
    bool is_made = ++current->looks % 3 == 0; // in three parts; never good enough for the next list
    current->forecasts += is_made;
    return is_made;
}

uint64_t core_forecast_count(const struct core *core)
{
    return current->forecasts;
}

int core_why_not_yet(const struct core *core, int64_t wall_ms, const struct identity *who,
    const struct job_spec *spec, const struct core_facts *facts, struct why *ret, struct error *err)
{
    *ret = (struct why){ .eta_ms = wall_ms, .latest_ms = wall_ms };
    return 0;
}

uint64_t core_element(struct core *core, int64_t boot_ms, int64_t wall_ms, uint64_t array, uint32_t index,
    bool is_split, bool *ret_waits)
{
    *ret_waits = false;
    for (size_t i = 0; i < core->n_jobs; i++)
        if (core->jobs[i]->array_job == array && core->jobs[i]->array_index == index)
            return core->jobs[i]->id;
    return 0;
}

static void answer_job(uint64_t job, void *request)
{
    reply_later(request, &(struct core_answer){ .job = job });
}

void core_hold(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    bool is_release, void *request)
{
    current->held = is_release ? 0 : job;
    answer_job(job, request);
}

void core_signal(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int signal, uint32_t scope, void *request)
{
    answer_job(job, request);
}

void core_suspend(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, bool is_continue, void *request)
{
    answer_job(job, request);
}

void core_park(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    int64_t for_ms, void *request)
{
    answer_job(job, request);
}

void core_unpark(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, void *request)
{
    answer_job(job, request);
}

void core_step_begin(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *asked, bool is_resumed, void *request)
{
    answer_job(job, request);
}

void core_step_end(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, const struct job_step *how, void *request)
{
    answer_job(job, request);
}

int core_step_usage(struct core *core, const struct identity *who, uint64_t job, const struct job_step *usage,
    struct error *err)
{
    return 0;
}

const struct job_step *core_step(const struct core *core, uint64_t job, uint32_t id)
{
    return NULL;
}

void core_requeue(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t job, int64_t grace_ms, bool is_held, void *request)
{
    answer_job(job, request);
}

void core_edit(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who, uint64_t job,
    const struct job_ask *ask, const char *name, const struct core_facts *facts, void *request)
{
    for (size_t i = 0; i < core->n_jobs; i++) {
        if (core->jobs[i]->id == job)
            job_set_ask(core->jobs[i], ask);
    }
    answer_job(job, request);
}

void core_pause(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *reason, int64_t until_ms, enum gpu_action action, void *request)
{
    current->paused = gpus->count;
    answer_job(0, request);
}

void core_set_policy(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *policy, void *request)
{
    answer_job(0, request);
}

void core_drain(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const char *reason, int64_t until_ms, bool is_resume, void *request)
{
    struct core_answer answer = { 0 };
    if (core_node_named(core, node) == NULL)
        answer.code = error_set(&answer.err, -ENOENT, "there is no node %.100s", node);
    reply_later(request, &answer);
}

void core_fence(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const char *reason, void *request)
{
    struct core_answer answer = { 0 };
    if (core_node_named(core, node) == NULL)
        answer.code = error_set(&answer.err, -ENOENT, "there is no node %.100s", node);
    reply_later(request, &answer);
}

void core_note_node(struct core *core, int64_t boot_ms, int64_t wall_ms, enum change_kind kind, uint32_t uid,
    const char *name)
{
}

void core_reserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct cluster_change *asked, void *request)
{
    answer_job(1, request);
}

void core_unreserve(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    uint64_t reservation, void *request)
{
    answer_job(reservation, request);
}

const struct sched_reservation *core_reservations(const struct core *core, size_t *ret_count)
{
    *ret_count = 0;
    return NULL;
}

const struct core_gpu *core_gpu_of(
    const struct core *core, const struct alloc_gpu *place, const struct core_node **ret_node)
{
    *ret_node = &core->node;
    return NULL;
}

struct core_gpu *core_gpu_at(const struct core_node *node, size_t position)
{
    return NULL;
}

const struct cluster_change *core_gpu_fault(const struct core_node *node, const struct core_gpu *gpu)
{
    return NULL;
}

const struct cluster_change *core_gpu_mark(const struct core_node *node, const struct core_gpu *gpu)
{
    return NULL;
}

enum external_policy core_gpu_policy(const struct core *core, const struct core_gpu *gpu)
{
    return EXTERNAL_AVOID;
}

bool core_gpu_is_used_externally(const struct core_gpu *gpu)
{
    return false;
}

char *core_gpu_name(const struct core *core, const struct alloc_gpu *gpu)
{
    return xasprintf("box:%u", gpu->gpu);
}

char *core_gpu_list(const struct core *core, const struct alloc_gpu *gpus, size_t count)
{
    return count > 0 ? core_gpu_name(core, gpus) : NULL;
}

struct sched *core_sched(const struct core *core)
{
    return core->sched;
}

uint64_t core_command_hash(const struct job *job)
{
    return job->id;
}

char *core_settings_text(const struct core *core)
{
    return xstrdup("policy=fair\n");
}

void core_each_node(
    const struct core *core, void (*visit)(void *arg, const struct core_node *node), void *arg)
{
    visit(arg, &core->node);
}

const struct core_node *core_node_at(const struct core *core, size_t number)
{
    return number <= core->n_more ? &core->node : NULL;
}

const struct core_node *core_node_named(const struct core *core, const char *name)
{
    return strcmp(core->node.name, name) == 0 ? &core->node : NULL;
}

size_t core_gpu_jobs(const struct core *core, const char *node, uint32_t gpu_index,
    const struct core_entry **entries, size_t max)
{
    size_t found = 0;
    current->core.gpus_listed++;
    for (size_t i = 0; i < core->n_jobs; i++) {
        const struct gpu_grant *grants = core->jobs[i]->grants.items;
        for (size_t k = 0; k < core->jobs[i]->grants.count; k++) {
            if (grants[k].index != gpu_index || !job_holds_gpus(core->jobs[i]))
                continue;
            if (found < max)
                entries[found] = entry_of(core, i);
            found++;
        }
    }
    return found;
}

uint64_t core_last_job(const struct core *core)
{
    uint64_t last = 0;
    for (size_t i = 0; i < core->n_jobs; i++)
        last = core->jobs[i]->id > last ? core->jobs[i]->id : last;
    return last;
}

uint64_t core_last_event(const struct core *core)
{
    return core->last_event;
}

const char *core_owner_name(const struct core *core, const struct job *job)
{
    return NULL;
}

uint64_t core_first_own(struct core *core, uint32_t uid)
{
    return 0;
}

int core_refuse_scope(const struct identity *who, unsigned needed, struct error *err)
{
    return error_set(err, -EPERM, "scopes %u", needed);
}

/* All attempts run on the node "n1". */
const struct job *core_job_at(
    const struct core *core, const char *node, const struct spool_id *id, uint64_t token)
{
    const struct job *job = core_job(core, id->job);
    bool is_there = job != NULL && job_state_is_active(job->state) && strcmp(node, "n1") == 0;
    return is_there && job->attempt == id->attempt && job->token == token ? job : NULL;
}

bool core_token_lacks(
    const struct identity *who, enum action action, const struct job *job, struct error *err)
{
    return false;
}

uint64_t core_token_used_ms(const struct core *core, int64_t wall_ms, uint64_t token)
{
    return 0;
}

bool core_may(const struct identity *who, enum action action, const struct job *job)
{
    return who->is_known && role_permits(who->role, action, job == NULL || core_owns(who, job));
}

/* --- the settings --- */

void settings_visit(const struct controller_options *options, settings_visit_fn *visit, void *arg)
{
    struct setting setting = {
        .key = "gpus", .value = "sim:2x8G", .origin = "/etc/x.yaml:3", .help = "GPUs"
    };
    visit(arg, &setting);
}

uint64_t core_park_kept(const struct core *core, const char *name)
{
    return 0;
}

const struct park_proof *core_park_proof(const struct core *core, const char *node)
{
    return NULL;
}

enum park_proof_state core_park_proof_state(const struct core *core, const char *node)
{
    return PARK_PROOF_NONE;
}

const char *park_proof_state_name(enum park_proof_state state)
{
    return "none";
}

void core_set_park_proof(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *node, const struct park_proof *proof, void *request)
{
    answer_job(0, request);
}

const struct core_counts *core_counts(const struct core *core)
{
    static struct core_counts counts = { .ended[END_EXIT] = 5, .failed_exits = 2 };
    counts.jobs[JOB_QUEUED] = 3;
    counts.waits = (struct histogram){ .counts = { 1, 2, 0, 4 }, .sum = 60.5 };
    return &counts;
}
