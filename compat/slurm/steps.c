/* SPDX-License-Identifier: MIT */
#include "compat/slurm/steps.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/time_text.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/state.h"
#include "job/slurm.h"

static bool has_batch(const json_t *job)
{
    const char *kind = slurm_job_note(job, SLURM_NOTE_KIND);
    return field_is_known(job, "started_at") && (kind == NULL || strcmp(kind, "sbatch") == 0);
}

/* The CPUs of the job on each node, however many tasks the step has. */
static void set_cpus(json_t *step, const json_t *job)
{
    (void)json_object_set_new(
        step, "cpus", json_real((double)slurm_job_cpus(job) / (double)slurm_job_nodes(job)));
}

/* The script has the times and the result of its job. */
static json_t *make_batch(const json_t *job)
{
    json_t *step = json_copy((json_t *)(uintptr_t)job);
    set_cpus(step, job);
    (void)json_object_set_new(step, "nodes", json_integer(1)); // the first
    (void)json_object_del(step, "ranks");
    (void)json_object_set_new(step, SLURM_STEP_WORD, json_string("batch"));
    (void)json_object_set_new(step, SLURM_STEP_TASKS, json_integer(1));
    (void)json_object_set_new(step, "name", json_string("batch"));
    (void)json_object_del(step, "stopped_by");
    return step;
}

/* Processes of the job outside all steps: those of mgpu exec and ssh. They are not counted separately. */
static json_t *make_extern(const json_t *job)
{
    static const char *const unknown[] = { "stopped_by", "max_rss_bytes", "cpu_seconds", "ended_by", "signal",
        "time_limit" };
    json_t *step = json_copy((json_t *)(uintptr_t)job);
    bool is_over = field_is_known(job, "ended_at");
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        (void)json_object_del(step, unknown[i]);
    set_cpus(step, job);
    (void)json_object_set_new(step, SLURM_STEP_WORD, json_string("extern"));
    _cleanup_free_ char *nodes = slurm_text_node_count(job, 0);
    (void)json_object_set_new(step, SLURM_STEP_TASKS, json_integer(strtoll(nodes, NULL, 10)));
    (void)json_object_set_new(step, "name", json_string("extern"));
    (void)json_object_set_new(step, "state", json_string(is_over ? "done" : "running"));
    (void)json_object_set_new(step, "exit_code", json_integer(0));
    return step;
}

static void set_nodes(json_t *step, const json_t *recorded)
{
    json_t *ranks = json_array();
    const json_t *nodes = json_object_get(recorded, "nodes");
    size_t index = 0;
    json_t *node = NULL;
    int64_t gpus = 0;
    json_array_foreach(nodes, index, node)
    {
        (void)json_array_append_new(ranks, json_pack("{s:O,s:O}", "node", json_object_get(node, "node"),
                                               "tasks", json_object_get(node, "tasks")));
        gpus += (int64_t)json_array_size(json_object_get(node, "gpus"));
    }
    (void)json_object_set_new(step, "ranks", ranks);
    (void)json_object_set(step, "node", json_object_get(json_array_get(nodes, 0), "node"));
    if (gpus > 0)
        (void)json_object_set_new(step, "gpus", json_integer(gpus));
}

static void set_times(json_t *step, const json_t *recorded)
{
    const char *started = field_text(recorded, "started_at"), *ended = field_text(recorded, "ended_at");
    int64_t started_ms = started != NULL ? time_parse(started) : 0;
    int64_t until_ms = ended != NULL ? time_parse(ended) : clock_wall_ms();
    (void)json_object_set(step, "submitted_at", json_object_get(recorded, "started_at"));
    (void)json_object_set(step, "started_at", json_object_get(recorded, "started_at"));
    (void)json_object_set(step, "ended_at", json_object_get(recorded, "ended_at"));
    (void)json_object_set_new(step, "run_seconds", json_integer((until_ms - started_ms) / 1000));
}

static json_t *make_step(const json_t *job, const json_t *recorded)
{
    static const char *const unknown[] = { "stopped_by", "cpus", "time_limit" };
    static const char *const same[] = { "name", "state", "ended_by", "exit_code", "signal", "max_rss_bytes",
        "max_rss_task", "ave_rss_bytes", "cpu_seconds", "user_cpu_seconds", "system_cpu_seconds" };
    json_t *step = json_copy((json_t *)(uintptr_t)job);
    int64_t tasks = field_integer(recorded, "tasks", 1), each = field_integer(recorded, "cpus_per_task", 1);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        (void)json_object_del(step, unknown[i]);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        (void)json_object_set(step, same[i], json_object_get(recorded, same[i]));
    set_nodes(step, recorded);
    set_times(step, recorded);
    (void)json_object_set_new(step, SLURM_STEP_TASKS, json_integer(tasks));
    if (each > 1)
        (void)json_object_set_new(step, "cpus",
            json_real((double)(tasks * each) / (double)json_array_size(json_object_get(step, "ranks"))));
    _cleanup_free_ char *word = xasprintf("%" PRId64, field_integer(recorded, "id", 0));
    (void)json_object_set_new(step, SLURM_STEP_WORD, json_string(word));
    return step;
}

int slurm_steps_get(
    struct client *client, const json_t *job, bool is_running, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    json_t *steps = json_array(), *recorded = NULL;
    size_t index = 0;
    int64_t attempt = field_integer(job, "attempt", 0);
    *ret = steps;
    if (!field_is_known(job, "started_at") || (is_running && !field_is(job, "state", "running")))
        return 0;
    if (has_batch(job))
        (void)json_array_append_new(steps, make_batch(job));
    if (!is_running)
        (void)json_array_append_new(steps, make_extern(job));
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64 "/steps", field_integer(job, "id", 0));
    int r = client_get(client, path, &answer, err);
    json_array_foreach(json_object_get(answer, "steps"), index, recorded)
    {
        bool is_latest = field_integer(recorded, "attempt", 0) == attempt;
        if (is_latest && (!is_running || field_is(recorded, "state", "running")))
            (void)json_array_append_new(steps, make_step(job, recorded));
    }
    if (r == 0)
        return 0;
    json_decref(steps);
    *ret = NULL;
    return r;
}

bool slurm_id_fits_step(const struct slurm_id *id, const json_t *step)
{
    const char *word = field_text(step, SLURM_STEP_WORD);
    return slurm_id_fits(id, step) && (id->step == NULL || (word != NULL && strcmp(id->step, word) == 0));
}

/* --- what only the whole record of a job has: earlier attempts, its directory, pauses --- */

enum { PAUSE_SUSPENDED = 1, PAUSE_PARKED = 2 };

/* What an event of the attempt means for its processes: they are stopped for `reason`, or run again. */
static const struct {
    const char *type;
    unsigned int reason;
    bool is_begin;
} turns[] = {
    { "suspended", PAUSE_SUSPENDED, true },
    { "continued", PAUSE_SUSPENDED, false },
    { "parked", PAUSE_PARKED, true },
    { "unparked", PAUSE_PARKED, false },
};

/* State for the attempt whose events are being read. */
struct pauses {
    int64_t passed_ms;
    int64_t since_ms;     // its processes have been stopped since then; 0: they run
    unsigned int reasons; // why they do
    int64_t runs_ms;      // they have been running since then
    int64_t ran_ms;       // run time up to the last pause
    int64_t turned_ms;    // when that pause began or ended; 0: there was none
};

static void note_pause(struct pauses *pauses, const json_t *event)
{
    const char *at = field_text(event, "at");
    int64_t at_ms = at != NULL ? time_parse(at) : 0;
    if (field_is(event, "type", "allocated"))
        *pauses = (struct pauses){ 0 };
    unsigned int before = pauses->reasons;
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++)
        if (field_is(event, "type", turns[i].type))
            pauses->reasons = turns[i].is_begin ? before | turns[i].reason : before & ~turns[i].reason;
    if (field_is(event, "type", "started"))
        pauses->runs_ms = at_ms;
    if (before == 0 && pauses->reasons != 0) {
        pauses->since_ms = pauses->turned_ms = at_ms;
        pauses->ran_ms += at_ms - pauses->runs_ms;
    }
    if (before != 0 && pauses->reasons == 0) {
        pauses->passed_ms += at_ms - pauses->since_ms;
        pauses->since_ms = 0;
        pauses->runs_ms = pauses->turned_ms = at_ms;
    }
}

/* A pause that lasts to the end of the attempt, or still lasts, counts up to `until_ms`. */
static void set_pause(json_t *attempt, const struct pauses *pauses, int64_t until_ms)
{
    int64_t last_ms = pauses->since_ms != 0 && until_ms > pauses->since_ms ? until_ms - pauses->since_ms : 0;
    (void)json_object_set_new(attempt, SLURM_SUSPENDED, json_integer((pauses->passed_ms + last_ms) / 1000));
}

static void pass(json_t *attempt, const char *name, const json_t *event, const char *member)
{
    json_t *value = json_object_get(event, member);
    (void)json_object_set(attempt, name, value != NULL ? value : json_null());
}

/* The state as which it is shown (slurm/state.c). */
static const char *ended_by(const json_t *event)
{
    if (field_is(event, "cause", "node_lost") || field_is(event, "cause", "preempted"))
        return field_text(event, "cause");
    return "requeued";
}

static void end(json_t *attempt, const json_t *event)
{
    (void)json_object_set_new(attempt, "state", json_string("failed"));
    (void)json_object_set_new(attempt, "ended_by", json_string(ended_by(event)));
    (void)json_object_set_new(attempt, "suspended_at", json_null());
    pass(attempt, "ended_at", event, "at");
    pass(attempt, "exit_code", event, "exit_code");
    pass(attempt, "signal", event, "signal");
    pass(attempt, "run_seconds", event, "run_seconds");
    pass(attempt, "cpu_seconds", event, "cpu_seconds");
    pass(attempt, "max_rss_bytes", event, "max_rss_bytes");
    pass(attempt, "message", event, "message");
    (void)json_object_set_new(attempt, "usage", json_null());
}

int slurm_attempts_get(struct client *client, const json_t *job, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *whole = NULL, *attempts = json_array(), *attempt = NULL;
    size_t index = 0;
    const json_t *event = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(job, "id", 0));
    bool is_first = field_integer(job, "attempt", 0) < (field_is(job, "state", "queued") ? 1 : 2);
    int r = is_first ? 0 : client_get(client, path, &whole, err);
    if (r < 0)
        return r;
    struct pauses pauses = { 0 };
    json_array_foreach(json_object_get(whole, "events"), index, event)
    {
        note_pause(&pauses, event);
        if (field_is(event, "type", "allocated")) {
            json_decref(attempt);
            attempt = json_copy((json_t *)(uintptr_t)job);
            (void)json_object_set_new(attempt, "started_at", json_null());
            pass(attempt, "node", event, "node");
            pass(attempt, "granted", event, "granted");
        } else if (attempt != NULL && field_is(event, "type", "started")) {
            pass(attempt, "started_at", event, "at");
        } else if (attempt != NULL && field_is(event, "type", "requeued")) {
            end(attempt, event);
            set_pause(attempt, &pauses, time_parse(field_text(event, "at")));
            (void)json_array_append(attempts, attempt);
        }
    }
    *ret = take_ptr(attempts);
    return 0;
}

void slurm_last_pause(const json_t *job, int64_t *ret_at_ms, int64_t *ret_ran_ms)
{
    struct pauses pauses = { 0 };
    size_t index = 0;
    const json_t *event = NULL;
    json_array_foreach(json_object_get(job, "events"), index, event) note_pause(&pauses, event);
    *ret_at_ms = pauses.turned_ms;
    *ret_ran_ms = pauses.ran_ms;
}

static void take_details(json_t *job, const json_t *whole)
{
    struct pauses pauses = { 0 };
    size_t index = 0;
    const json_t *event = NULL;
    const char *ended = field_text(job, "ended_at");
    json_array_foreach(json_object_get(whole, "events"), index, event) note_pause(&pauses, event);
    set_pause(job, &pauses, ended != NULL ? time_parse(ended) : clock_wall_ms());
    if (field_is_known(whole, "cwd"))
        (void)json_object_set(job, "cwd", json_object_get(whole, "cwd"));
}

int slurm_details_add(struct client *client, json_t *jobs, struct error *err)
{
    size_t index = 0;
    json_t *job = NULL;
    int r = 0;
    json_array_foreach(jobs, index, job)
    {
        _cleanup_json_ json_t *whole = NULL;
        _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, field_integer(job, "id", 0));
        r = client_get(client, path, &whole, err);
        if (r == -ENOENT) // it was removed after it was listed
            continue;
        if (r < 0)
            return r;
        take_details(job, whole);
    }
    return 0;
}

void slurm_steps_settle_end(struct client *client, json_t *job)
{
    const char *kind = slurm_job_note(job, SLURM_NOTE_KIND);
    int64_t number = field_integer(job, "exit_code", 0) - 128;
    _cleanup_json_ json_t *steps = NULL;
    size_t index = 0;
    const json_t *step = NULL;
    if (number <= 0 || !text_equal(kind, "srun") || !field_is(job, "state", "failed") ||
        slurm_steps_get(client, job, false, &steps, NULL) < 0)
        return;
    json_array_foreach(steps, index,
        step) if (field_is(step, SLURM_STEP_WORD, "0") && field_integer(step, "signal", 0) == number)(void)
        json_object_set_new(job, "signal", json_integer(number));
}

void slurm_steps_derive(struct client *client, json_t *job)
{
    _cleanup_json_ json_t *steps = NULL;
    size_t index = 0;
    const json_t *step = NULL;
    int most_code = 0, most_signal = 0;
    if (slurm_steps_get(client, job, false, &steps, NULL) < 0)
        return;
    json_array_foreach(steps, index, step)
    {
        const char *word = field_text(step, SLURM_STEP_WORD);
        int code = 0, signal = 0;
        if (word == NULL || !isdigit((unsigned char)word[0]))
            continue;
        slurm_exit_of(step, &code, &signal);
        if (code > most_code || (code == most_code && signal > most_signal)) {
            most_code = code;
            most_signal = signal;
        }
    }
    _cleanup_free_ char *text = xasprintf("%d:%d", most_code, most_signal);
    (void)json_object_set_new(job, SLURM_DERIVED, json_string(text));
}
