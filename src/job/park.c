/* SPDX-License-Identifier: MIT */
#include "job/park.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"
#include "job/behind.h"
#include "job/job.h"

#define LEFT_MIN_MS 1000 // minimum running time of a job that returns after its time limit

static const struct record_field park_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct job_park, phase, 0),
    RECORD_FIELD(2, RECORD_U32, struct job_park, cause, 0),
    RECORD_FIELD(3, RECORD_U32, struct job_park, number, 0),
    RECORD_FIELD(4, RECORD_I64, struct job_park, since_ms, 0),
    RECORD_FIELD(5, RECORD_I64, struct job_park, total_ms, 0),
    RECORD_FIELD(6, RECORD_I64, struct job_park, return_ms, 0),
    RECORD_FIELD(7, RECORD_SIZE, struct job_park, bytes, 0),
    RECORD_FIELD(8, RECORD_SIZE, struct job_park, memory, 0),
    RECORD_FIELD(9, RECORD_STRING, struct job_park, text, EVENT_TEXT_MAX),
    RECORD_FIELD(10, RECORD_SIZE, struct job_park, rank_bytes, 0),
    RECORD_FIELD(11, RECORD_BOOL, struct job_park, is_owed, 0),
    RECORD_FIELD(12, RECORD_U64, struct job_park, guest, 0),
    RECORD_FIELD(13, RECORD_I64, struct job_park, back_ms, 0),
    RECORD_FIELD(14, RECORD_I64, struct job_park, ran_ms, 0),
    RECORD_FIELD(15, RECORD_I64, struct job_park, waited_ms, 0),
    RECORD_FIELD(16, RECORD_U32, struct job_park, is_early, 0),
    RECORD_FIELD(17, RECORD_U32, struct job_park, kept_cpu_milli, 0),
    RECORD_FIELD(18, RECORD_SIZE, struct job_park, kept_memory, 0),
    RECORD_FIELD(19, RECORD_I64, struct job_park, granted_ms, 0),
    RECORD_FIELD(20, RECORD_I64, struct job_park, early_ms, 0),
    RECORD_FIELD(21, RECORD_I64, struct job_park, saved_ms, 0),
    RECORD_FIELD(22, RECORD_U64, struct job_park, behind, 0),
    RECORD_FIELD(23, RECORD_U32, struct job_park, reclaimed, 0),
    RECORD_FIELD(24, RECORD_U64, struct job_park, lender, 0),
};

const struct record_type job_park_record = RECORD_TYPE(340, "parked job", struct job_park, park_fields);

static const char *const phase_names[PARK_PHASES] = {
    [PARK_SAVING] = "saving",
    [PARK_PARKED] = "parked",
    [PARK_WAITING] = "waiting",
    [PARK_RESTORING] = "restoring",
};

static const char *const cause_names[PARK_CAUSES] = {
    [PARK_ASKED] = "asked",
    [PARK_PREEMPTED] = "preempted",
    [PARK_TIME_LIMIT] = "time_limit",
    [PARK_FOUND] = "found",
    [PARK_SHORTER] = "shorter",
    [PARK_DUE] = "due",
    [PARK_EARLY] = "early",
};

const char *park_phase_name(uint32_t phase)
{
    return phase < PARK_PHASES ? phase_names[phase] : NULL;
}

const char *park_cause_name(uint32_t cause)
{
    return cause < PARK_CAUSES ? cause_names[cause] : NULL;
}

const struct job_park *job_park(const struct job *job)
{
    static const struct job_park none = { 0 };
    const struct job_park *park = job_run(job)->park;
    return park != NULL ? park : &none;
}

/* For writing: created if the job has none. */
static struct job_park *make_park(struct job *job)
{
    struct job_run *run = job_make_run(job);
    if (run->park == NULL)
        run->park = xcalloc(1, sizeof(*run->park));
    return run->park;
}

void job_park_free(struct job_park *park)
{
    if (park == NULL)
        return;
    record_clear(&job_park_record, park);
    free(park);
}

bool job_was_reclaimed(const struct job *job)
{
    return job_park(job)->reclaimed != 0;
}

bool job_is_parked(const struct job *job)
{
    uint32_t phase = job_park(job)->phase;
    return phase == PARK_PARKED || phase == PARK_WAITING;
}

bool job_is_stopped(const struct job *job)
{
    const struct job_park *park = job_park(job);
    return job_is_parked(job) && (park->is_early == 0 || park->phase == PARK_PARKED);
}

bool job_is_early(const struct job *job)
{
    return job_park(job)->is_early != 0 && job_state_is_active(job->state);
}

bool job_early_is_over(const struct job *job, const struct job_event *event)
{
    return event->type == EVENT_UNPARKED && event->text == NULL &&
           job_park(job)->granted_ms == event->wall_ms;
}

int64_t job_early_ms(const struct job *job, int64_t wall_ms)
{
    return job_park(job)->is_early != 0 ? job_parked_ms(job, wall_ms) : job_park(job)->early_ms;
}

bool job_park_is_unconfirmed(const struct job *job)
{
    const struct job_park *park = job_park(job);
    return park->phase == PARK_PARKED && park->cause == PARK_FOUND;
}

bool job_is_owed(const struct job *job)
{
    const struct job_park *park = job_park(job);
    return park->is_owed && park->since_ms != 0;
}

bool park_cause_is_rule(uint32_t cause)
{
    return cause == PARK_SHORTER || cause == PARK_DUE;
}

bool job_holds_gpus(const struct job *job)
{
    return job_state_is_active(job->state) && !job_is_parked(job) && !job_is_behind(job);
}

int64_t job_parked_ms(const struct job *job, int64_t wall_ms)
{
    const struct job_park *park = job_park(job);
    int64_t now_ms = park->since_ms != 0 && wall_ms > park->since_ms ? wall_ms - park->since_ms : 0;
    return park->total_ms + now_ms;
}

static const char *grant_node(const struct job *job, const struct gpu_grant *grant)
{
    return grant->node != NULL ? grant->node : job->node;
}

/* "gpu1:0,1;gpu2:0" in the order of the ranks. */
static char *list_gpus(const struct job *job)
{
    struct buffer text = { 0 };
    const struct gpu_grant *grants = job->grants.items;
    for (size_t rank = 0; rank < job_node_count(job); rank++) {
        const char *node = job_node_name(job, rank);
        bool is_first = true;
        for (size_t i = 0; i < job->grants.count; i++) {
            if (!text_equal(grant_node(job, &grants[i]), node))
                continue;
            if (is_first)
                buffer_printf(&text, "%s%s:", text.length > 0 ? ";" : "", node);
            buffer_printf(&text, "%s%" PRIu32, is_first ? "" : ",", grants[i].index);
            is_first = false;
        }
    }
    return buffer_take(&text);
}

bool job_park_may_move(const struct job *job)
{
    const struct job_ask *ask = job->ask;
    if (job_park(job)->is_early != 0)
        return false; // its processes know which GPUs they will have
    return (ask->park_anywhere || job_park(job)->is_owed) && !job_is_wide(job) && ask->gpu_share == 0 &&
           ask->gpu_mem == 0;
}

bool job_park_has_begun(const struct job *job, const struct job_event *event)
{
    return event->type == EVENT_PARKED && job_park(job)->since_ms == event->wall_ms;
}

bool job_park_is_over(const struct job *job, const struct job_event *event)
{
    return event->type == EVENT_UNPARKED && event->text == NULL && job_park(job)->total_ms > 0 &&
           !job_early_is_over(job, event);
}

bool job_park_was_refused(const struct job *job, const struct job_event *event)
{
    return event->type == EVENT_UNPARKED && job_park(job)->back_ms != event->wall_ms;
}

bool job_park_was_lost(const struct job *job, const struct job_event *event)
{
    return event->type == EVENT_STOP && event->reason == END_GPU_FAULT &&
           job_park(job)->back_ms == event->wall_ms;
}

uint64_t job_park_node_bytes(const struct job *job)
{
    const struct job_park *park = job_park(job);
    return park->rank_bytes != 0 ? park->rank_bytes : park->bytes;
}

int64_t job_park_ran_ms(const struct job *job)
{
    const struct job_park *park = job_park(job);
    return park->since_ms - job->started_ms - park->total_ms;
}

int64_t job_park_latest_ms(const struct job *job, uint32_t bound)
{
    const struct job_park *park = job_park(job);
    return job_is_owed(job) ? park->since_ms + park->ran_ms * bound - park->waited_ms : 0;
}

void job_park_ask(const struct job *job, char *allow, struct job_ask *ret)
{
    *ret = *job->ask;
    ret->gpus = (uint32_t)job->grants.count;
    ret->nodelist = allow != NULL ? job->node : NULL;
    ret->exclude = NULL;
    ret->gpu_ids = allow != NULL ? NULL : list_gpus(job);
    ret->gpu_allow = allow;
    ret->gpu_model = NULL;
    ret->after = NULL;
    ret->memory = 0;
    ret->begin_ms = 0;
    ret->deadline_ms = 0;
    ret->nodes = 0;
    ret->gpus_per_node = 0;
    if (job_park(job)->kept_cpu_milli != 0)
        ret->cpu_milli = 0;
    if (ret->time_limit_ms == 0 || job_park(job)->is_early != 0)
        return;
    ret->time_limit_ms -= job_park_ran_ms(job);
    if (ret->time_limit_ms < LEFT_MIN_MS)
        ret->time_limit_ms = LEFT_MIN_MS;
}

/* --- events --- */

const char *job_park_fault(const struct job *job, const struct job_event *event)
{
    uint32_t phase = job_park(job)->phase;
    switch (event->type) {
    case EVENT_ALLOCATED:
        return event->is_early != 0 && (event->gpus.count == 0 || event->nodes.count > 0)
                   ? "only a job with GPUs on one node starts early"
                   : NULL;
    case EVENT_PARK:
        if (event->park_cause >= PARK_CAUSES || event->park_cause == PARK_EARLY)
            return "unknown cause";
        if (job->grants.count == 0)
            return "it has no GPUs";
        if (job_is_behind(job))
            return "its GPUs are those of the preceding element";
        if (job->ask->adopted_pid != 0)
            return "only a job that mgpu has started can be parked";
        return phase == PARK_NONE || phase == PARK_WAITING ? NULL : "it is parked already";
    case EVENT_UNPARK: return phase == PARK_PARKED ? NULL : "it is not parked";
    case EVENT_RESTORING:
        if (event->gpus.count != job->grants.count)
            return "it has another number of GPUs";
        return phase == PARK_WAITING ? NULL : "it does not wait for its GPUs";
    case EVENT_RECONCILED:
        return event->terms > job_run(job)->terms || event->park_number > job_park(job)->number
                   ? NULL
                   : "its node had no later orders";
    default: return phase == PARK_SAVING || phase == PARK_RESTORING ? NULL : "its node got no order";
    }
}

static void set_text(struct job_park *park, const char *text)
{
    free(park->text);
    park->text = xstrdup(text);
}

void job_park_begin_early(struct job *job, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    if (event->is_early == 0)
        return;
    struct job_park *park = make_park(job);
    *park = (struct job_park){
        .phase = PARK_WAITING,
        .cause = PARK_EARLY,
        .since_ms = event->wall_ms,
        .is_early = 1,
        .kept_cpu_milli = event->cpu_milli,
        .kept_memory = event->memory,
        .reclaimed = park->reclaimed,
        .lender = park->lender,
    };
    run->cpu_milli = 0;
    run->memory = 0;
}

/* Until then it did nothing. */
void job_park_note_start(struct job *job, int64_t wall_ms)
{
    if (job_park(job)->is_early != 0)
        make_park(job)->since_ms = wall_ms;
}

static void on_park(struct job *job, struct job_park *park, const struct job_event *event)
{
    park->return_ms = event->park_return_ms;
    park->cause = event->park_cause;
    set_text(park, NULL);
    if (park->phase == PARK_WAITING) {
        park->phase = PARK_PARKED;
        job_make_run(job)->terms += park->is_early; // they are stopped now
        return;
    }
    park->guest = event->park_guest;
    park->phase = PARK_SAVING;
    park->number++;
    job_make_run(job)->terms++;
}

/* The scheduler's times: parked by its rule, the job has run until now; otherwise counting restarts. */
static void keep_times(const struct job *job, struct job_park *park, const struct job_event *event)
{
    int64_t since_ms = park->back_ms != 0 ? park->back_ms : job->started_ms;
    int64_t ran_ms = event->wall_ms > since_ms ? event->wall_ms - since_ms : 0;
    park->is_owed = park_cause_is_rule(park->cause);
    park->ran_ms = park->is_owed ? park->ran_ms + ran_ms : 0;
    park->waited_ms = park->is_owed ? park->waited_ms : 0;
}

/* After RESTORING, nothing was restored. */
static void on_parked(struct job *job, struct job_park *park, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    bool is_saved = park->phase == PARK_SAVING;
    park->phase = is_saved && park->cause == PARK_ASKED ? PARK_PARKED : PARK_WAITING;
    set_text(park, event->text);
    if (is_saved) {
        keep_times(job, park, event);
        park->behind = 0;
        park->since_ms = event->wall_ms;
        park->bytes = event->park_bytes;
        park->rank_bytes = event->park_rank_bytes;
    }
    run->terms++;
    if (park->is_owed)
        return; // its CPUs and host memory stay booked
    park->memory += run->memory;
    if (park->is_early == 0) {
        park->memory += park->kept_memory;
        park->kept_memory = 0;
        park->kept_cpu_milli = 0;
    }
    run->memory = 0;
    run->cpu_milli = 0;
}

static void on_unpark(struct job *job, struct job_park *park)
{
    park->phase = PARK_WAITING;
    park->return_ms = 0;
    job_make_run(job)->terms += park->is_early; // its processes run again, without GPUs
}

static void on_restoring(struct job *job, struct job_park *park, const struct job_event *event)
{
    park->phase = PARK_RESTORING;
    park->number++;
    job_make_run(job)->cpu_milli = event->cpu_milli;
    job_make_run(job)->terms += job->state == JOB_RUNNING;
    gpu_grants_clear(&job->grants);
    gpu_grants_copy(&job->grants, &event->gpus);
}

static void stop_clock(const struct job *job, struct job_park *park, const struct job_event *event)
{
    int64_t before_ms = park->total_ms;
    park->total_ms = job_parked_ms(job, event->wall_ms);
    if (park->is_owed && park->since_ms != 0)
        park->waited_ms += park->total_ms - before_ms;
    if (park->since_ms != 0)
        park->back_ms = event->wall_ms;
    park->since_ms = 0;
}

/* The node has had orders that this copy of the store does not contain. */
static void on_reconciled(struct job *job, struct job_park *park, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    bool is_parked = job_is_parked(job);
    run->terms = event->terms > run->terms ? event->terms : run->terms;
    if (event->park_number <= park->number)
        return;
    park->number = event->park_number;
    if (is_parked ? event->park_seen == PARK_SEEN_PARKED : park->phase == PARK_SAVING)
        return; // as it is to be
    if (park->phase == PARK_NONE && event->park_seen == PARK_SEEN_RUNNING)
        return;
    if (!is_parked)
        stop_clock(job, park, event);
    park->phase = is_parked ? PARK_PARKED : PARK_SAVING;
    park->cause = PARK_FOUND;
    park->return_ms = 0;
    set_text(park, NULL);
    run->terms++;
}

/* Its host memory stays booked separately until the attempt ends. */
static void on_unparked(struct job *job, struct job_park *park, const struct job_event *event)
{
    stop_clock(job, park, event);
    if (park->is_early != 0 && event->text == NULL) {
        park->granted_ms = event->wall_ms;
        park->early_ms = park->total_ms;
        park->saved_ms = park->early_ms > event->waited_ms ? park->early_ms - event->waited_ms : 0;
    }
    park->is_early = 0;
    park->bytes = 0;
    park->rank_bytes = 0;
    park->return_ms = 0;
    park->phase = PARK_NONE;
    set_text(park, event->text);
    job_make_run(job)->terms++;
}

void job_park_apply(struct job *job, const struct job_event *event)
{
    struct job_park *park = make_park(job);
    switch (event->type) {
    case EVENT_PARK: on_park(job, park, event); break;
    case EVENT_PARKED: on_parked(job, park, event); break;
    case EVENT_RESTORING: on_restoring(job, park, event); break;
    case EVENT_UNPARKED: on_unparked(job, park, event); break;
    case EVENT_RECONCILED: on_reconciled(job, park, event); break;
    default: on_unpark(job, park);
    }
}

void job_park_note_reclaim(struct job *job, const struct job_event *event)
{
    if (event->park_cause != PARK_DUE)
        return;
    make_park(job)->reclaimed = job->attempt;
    make_park(job)->lender = event->park_guest;
}

void job_park_requeue(struct job *job)
{
    struct job_run *run = job_make_run(job);
    struct job_park kept = { .reclaimed = job_park(job)->reclaimed, .lender = job_park(job)->lender };
    job_park_free(take_ptr(run->park));
    if (kept.reclaimed != 0)
        *make_park(job) = kept;
}

void job_park_end(struct job_park *park, int64_t wall_ms)
{
    if (park == NULL)
        return;
    if (park->since_ms != 0 && wall_ms > park->since_ms)
        park->total_ms += wall_ms - park->since_ms;
    if (park->is_early != 0)
        park->early_ms = park->total_ms;
    park->kept_cpu_milli = 0;
    park->kept_memory = 0;
    park->phase = PARK_NONE;
    park->since_ms = 0;
    park->bytes = 0;
    park->rank_bytes = 0;
    park->memory = 0;
    park->return_ms = 0;
    park->is_owed = false;
    park->guest = 0;
    park->back_ms = 0;
    park->ran_ms = 0;
    park->waited_ms = 0;
    park->behind = 0;
}

const char *job_park_rule(const struct job *job)
{
    const struct job_park *park = job_park(job);
    bool is_stopped = job_is_parked(job) || park->phase == PARK_RESTORING;
    bool may_be = job->state == JOB_RUNNING || job->state == JOB_STOPPING ||
                  (job->state == JOB_STARTING && park->is_early != 0);
    if (park->phase != PARK_NONE && !may_be)
        return "only a running job is parked";
    if (park->behind != 0 && (job_is_parked(job) || !job_state_is_active(job->state)))
        return "only an active job that is not parked is behind another";
    if (park->kept_cpu_milli != 0 && !job_state_is_active(job->state))
        return "only an active job has CPUs";
    if (is_stopped != (park->since_ms != 0))
        return "a parked job has the time since which it is parked";
    if (job_is_parked(job) && !park->is_owed && (job_run(job)->cpu_milli != 0 || job_run(job)->memory != 0))
        return "a parked job has nothing booked by the scheduler";
    return NULL;
}
