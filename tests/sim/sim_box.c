/* SPDX-License-Identifier: MIT */
/*
 * One box, all in this process: the real core of the controller, the real core of the agent, a modelled store
 * and node, and clients who submit, cancel and try again. Controller, agent and shepherds die at random
 * moments, links break and lose what was on them, commits are slow and may or may not survive a crash. When
 * the storm is over everything must come to rest, and then: every acknowledged job is done; nothing ran
 * twice; no GPU had two users; exit codes are true; ids are never reused; a submit repeated with its key made
 * one job; the node's spool is empty; the fold of the events is the truth, and another scheduler that is told
 * of them decides the same. Some jobs are arrays, wait for others, are held for a while or give way to
 * others, leave their GPUs unused, and GPUs are paused. A seed is a whole history: `sim_box SEED` replays
 * one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box_journal.h"
#include "controller/core.h"
#include "controller/core_private.h"
#include "memory_store.h"
#include "node.h"
#include "world.h"

#define SEEDS    100U
#define CLIENTS  8U
#define STORM_MS 20000
#define REST_MS  400000
#define ASKS_MAX 400U

/* --- the box --- */

struct ask { // one submit that a client insists on
    struct box *box;
    char key[16];
    uint64_t job;      // acknowledged as this one, 0 before
    bool is_waiting;   // for an answer
    bool is_cancelled; // somebody asked to cancel it, perhaps without an answer
    uint64_t after;    // the job it waits for, 0: none
};

struct box {
    struct world world;
    struct node node;
    struct core *core; // NULL while the controller is dead
    uint64_t life;     // of the controller
    uint64_t epoch;
    uint32_t link; // present link, 0: down
    uint32_t last_link;
    bool is_storm;
    struct change *events;
    size_t n_events;
    size_t drains, returns;    // of GPUs, in all
    struct state_change *rows; // as they were written, one after the other
    size_t n_rows;
    struct store_batch *committing;
    struct ask asks[ASKS_MAX];
    size_t n_asks;
    size_t decisions; // that a second scheduler made the same way from the log
    const char *broken;
    char detail[256];
};

static void break_rule(struct box *box, const char *rule, uint64_t job)
{
    if (box->broken != NULL)
        return;
    box->broken = rule;
    (void)snprintf(box->detail, sizeof(box->detail), "job %" PRIu64 ": %s", job, rule);
}

static void turn(struct box *box)
{
    if (box->core != NULL)
        core_turn(box->core, box->world.now_ms, box->world.now_ms);
}

/* Moves what was being committed into what has survived. */
static void make_durable(struct box *box)
{
    struct store_batch *batch = take_ptr(box->committing);
    box->events = xreallocarray(box->events, box->n_events + batch->count, sizeof(struct change));
    memcpy(box->events + box->n_events, batch->changes, batch->count * sizeof(struct change));
    box->n_events += batch->count;
    box->rows = xreallocarray(box->rows, box->n_rows + batch->n_states + 1, sizeof(struct state_change));
    if (batch->n_states > 0)
        memcpy(box->rows + box->n_rows, batch->states, batch->n_states * sizeof(struct state_change));
    box->n_rows += batch->n_states;
    free(batch->changes);
    free(batch->states);
    free(batch);
}

static void on_committed(void *arg, uint64_t life, void *object)
{
    struct box *box = arg;
    if (box->core == NULL || box->life != life || box->committing == NULL)
        return;
    uint64_t id = box->committing->id;
    make_durable(box);
    core_on_durable(box->core, id);
    turn(box);
}

static void commit(void *arg, struct store_batch *batch)
{
    struct box *box = arg;
    box->committing = batch;
    world_later(&box->world, world_between(&box->world, 0, 10), on_committed, box, box->life, NULL, NULL);
}

/* --- the link: frames arrive late, in order, or not at all once it broke --- */

struct frame {
    struct buffer bytes;
    const struct record_type *type;
    uint32_t link;
};

static void frame_free(void *object)
{
    struct frame *frame = object;
    buffer_clear(&frame->bytes);
    free(frame);
}

static struct frame *frame_new(const struct record_type *type, const void *message, uint32_t link)
{
    struct frame *frame = xcalloc(1, sizeof(*frame));
    record_encode(type, message, &frame->bytes);
    frame->type = type;
    frame->link = link;
    return frame;
}

static void cut_link(struct box *box);

static void to_controller(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct frame *frame = object;
    struct error err = { 0 };
    void *message = xcalloc(1, frame->type->size);
    bool is_good = record_decode(frame->type, frame->bytes.bytes, frame->bytes.length, message, &err) == 0;
    int r = 0;
    if (is_good && box->core != NULL && box->link == frame->link) {
        int64_t now = box->world.now_ms;
        if (frame->type->id == MESSAGE_HELLO)
            r = core_link_up(box->core, now, now, frame->link, message, &err);
        else
            r = core_link_message(box->core, now, now, frame->link, frame->type->id, message, &err);
        turn(box);
    }
    if (!is_good || r < 0)
        break_rule(box, "the controller refused a frame", 0);
    record_clear(frame->type, message);
    free(message);
    frame_free(frame);
}

static void to_agent(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct frame *frame = object;
    struct error err = { 0 };
    void *message = xcalloc(1, frame->type->size);
    (void)record_decode(frame->type, frame->bytes.bytes, frame->bytes.length, message, &err);
    if (box->node.core != NULL && box->link == frame->link &&
        agent_core_message(box->node.core, box->world.now_ms, frame->type->id, message, &err) < 0) {
        break_rule(box, "the agent refused a frame", 0);
        (void)fprintf(stderr, "%s\n", err.message);
    }
    record_clear(frame->type, message);
    free(message);
    frame_free(frame);
}

/* One delay for all frames keeps them in order, as a stream does. */
#define LINK_DELAY_MS 1

static void send_to_agent(void *arg, uint32_t link, const struct record_type *type, const void *message)
{
    struct box *box = arg;
    world_later(&box->world, LINK_DELAY_MS, to_agent, box, 0, frame_new(type, message, link), frame_free);
}

static void send_to_controller(void *arg, const struct record_type *type, const void *message)
{
    struct box *box = arg;
    world_later(
        &box->world, LINK_DELAY_MS, to_controller, box, 0, frame_new(type, message, box->link), frame_free);
}

static void connect_link(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (box->link != 0 || box->core == NULL || box->node.core == NULL)
        return;
    box->link = ++box->last_link;
    node_hello(&box->node);
}

static void cut_link(struct box *box)
{
    if (box->link != 0) {
        if (box->core != NULL)
            core_link_down(box->core, box->world.now_ms, box->world.now_ms, box->link);
        if (box->node.core != NULL)
            agent_core_link_down(box->node.core);
    }
    box->link = 0;
    world_later(&box->world, world_between(&box->world, 1, 100), connect_link, box, 0, NULL, NULL);
}

/* --- clients --- */

static const struct identity client = { .is_known = true, .uid = 1000, .gid = 1000, .may_raise = true };

static void ask_again(void *arg, uint64_t life, void *object);

static void reply(void *arg, void *request, const struct core_answer *answer)
{
    struct box *box = arg;
    struct ask *ask = request;
    if (ask == NULL)
        return;
    ask->is_waiting = false;
    if (answer->code < 0) {
        break_rule(box, "a good submit was refused", 0);
        (void)fprintf(stderr, "%s\n", answer->err.message);
        return;
    }
    if (ask->job != 0 && ask->job != answer->job)
        break_rule(box, "one key made two jobs", answer->job);
    for (size_t i = 0; i < box->n_asks; i++)
        if (&box->asks[i] != ask && box->asks[i].job == answer->job)
            break_rule(box, "two requests were acknowledged with one id", answer->job);
    ask->job = answer->job;
}

static struct job_spec *make_spec(const struct ask *ask)
{
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    strings_add(&spec->command, "true");
    spec->cwd = xstrdup("/");
    spec->submit_key = xstrdup(ask->key);
    uint64_t kind = store_key_hash(0, ask->key);
    spec->ask.gpus = (uint32_t)(kind % 4);
    spec->ask.priority = (int32_t)(kind / 7 % 3);
    spec->hold = kind % 17 == 0;
    spec->ask.preemptible = kind % 5 == 0;
    spec->ask.idle_ok = spec->ask.gpus > 0 && kind % 23 == 0;
    if (spec->ask.gpus > 0 && !spec->ask.idle_ok && kind % 3 == 0)
        spec->ask.idle_timeout_ms = 1000;
    spec->ask.retry = kind % 6 == 0 ? 2 : 0;
    if (spec->ask.retry > 0 && kind % 4 == 0)
        spec->ask.retry_on = xstrdup("1-3");
    spec->ask.array = kind % 19 == 0 ? xstrdup("0-4%2") : NULL;
    if (ask->after != 0)
        spec->ask.after = xasprintf("%" PRIu64 ":any", ask->after);
    if (kind % 11 == 0) {
        spec->ask.gpus = 2;
        spec->ask.gpu_ids = xstrdup("3,1");
    } else if (spec->ask.gpus > 0 && kind % 13 == 0) {
        spec->ask.gpu_mem = 8ULL << 30;
    }
    return spec;
}

/* A client without an answer asks again with its key, as the command line does. */
static void ask_again(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    if (ask->job != 0)
        return;
    if (box->core != NULL) {
        /* A job that is over for long is looked up before, as the API does: here every one ended somehow. */
        struct core_fact fact = { .job = ask->after, .is_ok = true };
        struct core_facts facts = { .items = &fact, .count = 1 };
        core_forget(box->core, ask);
        ask->is_waiting = true;
        core_submit(box->core, box->world.now_ms, box->world.now_ms, &client, make_spec(ask), &facts, ask);
        turn(box);
    }
    world_later(&box->world, world_between(&box->world, 50, 300), ask_again, box, 0, ask, NULL);
}

static void cancel(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    if (ask->job == 0 || box->core == NULL)
        return;
    ask->is_cancelled = true;
    core_cancel(box->core, box->world.now_ms, box->world.now_ms, &client, ask->job, 0, NULL);
    turn(box);
}

/* Does something to what runs; of an array, to its elements. */
static void control(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    int64_t now = box->world.now_ms;
    if (ask->job == 0 || box->core == NULL)
        return;
    switch (world_random(&box->world) % 4) {
    case 0: core_requeue(box->core, now, now, &client, ask->job, 0, NULL); break;
    case 1: core_signal(box->core, now, now, &client, ask->job, 10, NULL); break;
    default: core_suspend(box->core, now, now, &client, ask->job, false, NULL); break;
    }
    turn(box);
}

/* Holds what waits, and lets go again until nothing is held or suspended. */
static void release(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    if (box->core != NULL && ask->job != 0) {
        bool waits = false;
        for (uint32_t index = 0; index < 5; index++) {
            uint64_t element =
                core_element(box->core, box->world.now_ms, box->world.now_ms, ask->job, index, false, &waits);
            if (element != 0)
                core_hold(box->core, box->world.now_ms, box->world.now_ms, &client, element, true, NULL);
        }
        core_hold(box->core, box->world.now_ms, box->world.now_ms, &client, ask->job, true, NULL);
        core_suspend(box->core, box->world.now_ms, box->world.now_ms, &client, ask->job, true, NULL);
        turn(box);
        const struct job *job = core_job(box->core, ask->job);
        if (job == NULL || job->state == JOB_DONE)
            return;
    }
    world_later(&box->world, world_between(&box->world, 200, 2000), release, box, 0, object, NULL);
}

static void hold(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    bool waits = false;
    if (ask->job == 0 || box->core == NULL)
        return;
    uint64_t element =
        core_element(box->core, box->world.now_ms, box->world.now_ms, ask->job, 3, true, &waits);
    core_hold(box->core, box->world.now_ms, box->world.now_ms, &client, element != 0 ? element : ask->job,
        false, NULL);
    turn(box);
}

/* GPUs are paused while the storm is on, and all are back afterwards. */
static void on_pause(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    char name[] = "box:0";
    char *items[] = { name, NULL };
    struct strings gpus = { .items = items, .count = 1 };
    for (uint32_t i = 0; box->core != NULL && i < NODE_GPUS; i++) {
        name[4] = (char)('0' + i);
        int64_t now = box->world.now_ms;
        if (!box->is_storm || world_one_in(&box->world, 4))
            core_pause(box->core, now, now, &admin, &gpus, "for a while", 0,
                !box->is_storm || world_one_in(&box->world, 2), NULL);
    }
    turn(box);
    if (box->is_storm || box->core == NULL || box->core->n_marks > 0 || box->core->n_faults > 0)
        world_later(&box->world, world_between(&box->world, 100, 3000), on_pause, box, 0, NULL, NULL);
}

/* GPUs fail, vanish and come back while the storm is on; afterwards they are well. */
static void on_sample(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (!box->is_storm)
        node_heal(&box->node);
    else if (world_one_in(&box->world, 3))
        node_ail(&box->node);
    node_sample(&box->node);
    world_later(&box->world, box->is_storm ? 200 : 2000, on_sample, box, 0, NULL, NULL);
}

static void on_client(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (!box->is_storm || box->n_asks == ASKS_MAX)
        return;
    struct ask *ask = &box->asks[box->n_asks++];
    *ask = (struct ask){ .box = box };
    (void)snprintf(ask->key, sizeof(ask->key), "key-%zu", box->n_asks);
    const struct ask *other = &box->asks[world_random(&box->world) % box->n_asks];
    if (world_one_in(&box->world, 6))
        ask->after = other->job;
    ask_again(box, 0, ask);
    if (world_one_in(&box->world, 6))
        world_later(&box->world, world_between(&box->world, 0, 40), hold, box, 0, ask, NULL);
    world_later(&box->world, world_between(&box->world, 0, 2000), release, box, 0, ask, NULL);
    if (world_one_in(&box->world, 3))
        world_later(&box->world, world_between(&box->world, 0, 600), control, box, 0, ask, NULL);
    if (world_one_in(&box->world, 3))
        world_later(&box->world, world_between(&box->world, 0, 40), cancel, box, 0, ask, NULL);
    world_later(&box->world, world_between(&box->world, 1, 800), on_client, box, 0, NULL, NULL);
}

/* --- the controller's life --- */

static void publish(void *arg, const struct job_event *event, const struct job *job)
{
}

static void on_spec(void *arg, uint64_t job, void *object)
{
    struct box *box = arg;
    for (size_t i = 0; box->core != NULL && i < box->n_events; i++) {
        if (box->events[i].spec == NULL || box->events[i].event.job != job)
            continue;
        struct job_spec *spec = xcalloc(1, sizeof(*spec));
        record_copy(&job_spec_record, spec, box->events[i].spec);
        core_on_spec(box->core, job, spec);
        turn(box);
        return;
    }
}

static void fetch_spec(void *arg, uint64_t job)
{
    struct box *box = arg;
    world_later(&box->world, 1, on_spec, box, job, NULL, NULL);
}

static void on_end(void *arg, uint64_t job, void *object)
{
    struct box *box = arg;
    if (box->core == NULL)
        return;
    core_on_end(box->core, box->world.now_ms, box->world.now_ms, job, true); // all wait for any end
    turn(box);
}

static void fetch_end(void *arg, uint64_t job)
{
    struct box *box = arg;
    world_later(&box->world, 1, on_end, box, job, NULL, NULL);
}

static void on_core_timer(void *arg, uint64_t life, void *object)
{
    struct box *box = arg;
    if (box->core == NULL || box->life != life)
        return;
    core_timer(box->core, box->world.now_ms, box->world.now_ms);
    turn(box);
}

static void arm(void *arg, int64_t boot_ms)
{
    struct box *box = arg;
    int64_t delay = boot_ms - box->world.now_ms;
    world_later(&box->world, delay > 0 ? delay : 0, on_core_timer, box, box->life, NULL, NULL);
}

static uint64_t random_number(void *arg)
{
    return world_random(&((struct box *)arg)->world);
}

/* What a new job was asked to run: its own, or its array's. */
static const struct job_spec *spec_of(const struct box *box, const struct job_event *event)
{
    uint64_t owner = event->array_job != 0 ? event->array_job : event->job;
    for (size_t i = 0; event->type == EVENT_SUBMITTED && i < box->n_events; i++)
        if (box->events[i].spec != NULL && box->events[i].event.job == owner)
            return box->events[i].spec;
    return NULL;
}

static struct job **fold(struct box *box, size_t *ret_count)
{
    struct job **jobs = xcalloc(box->n_events + 2, sizeof(struct job *));
    size_t highest = 0;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct change *change = &box->events[i];
        struct error err = { 0 };
        uint64_t id = change->event.job;
        if (change->event.type == EVENT_CLUSTER)
            continue;
        const struct job_spec *spec = spec_of(box, &change->event);
        if (spec != NULL && jobs[id] != NULL)
            break_rule(box, "an id was given out twice", id);
        if (spec != NULL)
            jobs[id] = job_new(id, spec);
        if (jobs[id] == NULL || job_apply(jobs[id], &change->event, &err) < 0 ||
            job_invariant(jobs[id], &err) < 0) {
            break_rule(box, "the events do not fold", id);
            (void)fprintf(stderr, "%s\n", err.message);
            break;
        }
        if (jobs[id]->idle_level != IDLE_NONE && jobs[id]->ask.idle_ok)
            break_rule(box, "it was told of idleness that it may have", id);
        highest = id > highest ? id : highest;
    }
    *ret_count = highest + 1;
    return jobs;
}

/* The rows as they stand in the end: the last word on each key. */
static void load_rows(struct box *box)
{
    for (size_t i = 0; i < box->n_rows; i++) {
        const struct state_change *row = &box->rows[i];
        bool is_last = !row->is_removal;
        for (size_t k = i + 1; is_last && k < box->n_rows; k++)
            is_last = strcmp(box->rows[k].kind, row->kind) != 0 || strcmp(box->rows[k].key, row->key) != 0;
        struct error err = { 0 };
        if (is_last &&
            core_load_state(box->core, row->kind, row->key, row->value.bytes, row->value.length, &err) < 0)
            break_rule(box, "a row of the state cannot be read", 0);
    }
}

static void start_controller(struct box *box)
{
    struct core_options options = { .queue_max = 10000, .recent_done_max = 20, .grace_ms = 10 };
    sched_settings_init(&options.sched);
    outside_settings_init(&options.outside);
    options.health = (struct health_settings){ .recover_ms = 1500, .unclean_ms = 1000 };
    options.idle = (struct idle_policy){ .told_ms = 50, .yields_ms = 150 };
    struct core_effects effects = {
        .arg = box,
        .commit = commit,
        .send = send_to_agent,
        .reply = reply,
        .publish = publish,
        .fetch_spec = fetch_spec,
        .fetch_end = fetch_end,
        .arm = arm,
        .random = random_number,
    };
    box->life++;
    box->core = core_new(&options, &effects);
    size_t count = 0;
    struct job **jobs = fold(box, &count);
    struct store_summary summary = {
        .epoch = ++box->epoch, .last_job = count - 1, .last_event = box->n_events
    };
    core_load_summary(box->core, &summary);
    load_rows(box);
    for (size_t i = 0; i < count; i++)
        if (jobs[i] != NULL)
            core_load_job(box->core, jobs[i]);
    free(jobs);
    for (size_t i = 0; i < box->n_events; i++)
        if (box->events[i].spec != NULL)
            core_load_key(box->core, box->events[i].key_hash, box->events[i].event.job,
                job_spec_hash(box->events[i].spec));
    core_load_end(box->core, box->world.now_ms, box->world.now_ms);
    turn(box);
}

static void on_controller_start(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    start_controller(box);
    cut_link(box);
}

static void kill_controller(struct box *box)
{
    if (box->core == NULL)
        return;
    core_free(box->core);
    box->core = NULL;
    /* A commit under way when the process dies: kept or not, and nobody was told. */
    if (box->committing != NULL && world_one_in(&box->world, 2))
        make_durable(box);
    store_batch_free(take_ptr(box->committing));
    for (size_t i = 0; i < box->n_asks; i++)
        box->asks[i].is_waiting = false;
    cut_link(box);
    world_later(&box->world, world_between(&box->world, 1, 300), on_controller_start, box, 0, NULL, NULL);
}

static void on_agent_start(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    node_start_agent(&box->node);
    cut_link(box);
}

static void kill_agent(struct box *box)
{
    if (box->node.core == NULL)
        return;
    node_kill_agent(&box->node);
    cut_link(box);
    world_later(&box->world, world_between(&box->world, 1, 300), on_agent_start, box, 0, NULL, NULL);
}

static void on_storm(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (!box->is_storm)
        return;
    switch (world_random(&box->world) % 4) {
    case 0: kill_controller(box); break;
    case 1: kill_agent(box); break;
    case 2: node_kill_shepherd(&box->node); break;
    default: cut_link(box); break;
    }
    world_later(&box->world, world_between(&box->world, 1, 500), on_storm, box, 0, NULL, NULL);
}

/* Some of what runs is idle, and the agent says so. */
static void on_usages(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (box->node.core != NULL && box->link != 0)
        node_usages(&box->node);
    if (box->is_storm)
        world_later(&box->world, world_between(&box->world, 10, 200), on_usages, box, 0, NULL, NULL);
}

static void on_calm(void *arg, uint64_t number, void *object)
{
    ((struct box *)arg)->is_storm = false;
}

/* --- the judgement --- */

static bool was_cancelled(const struct box *box, const struct job *job)
{
    uint64_t asked = job->array_job != 0 ? job->array_job : job->id;
    for (size_t i = 0; i < box->n_asks; i++)
        if (box->asks[i].job == asked)
            return box->asks[i].is_cancelled;
    return false;
}

static void judge_job(struct box *box, const struct job *job)
{
    int32_t exit_code = -1;
    uint32_t executions = node_executions(&box->node, job->id, &exit_code);
    bool is_cancelled = was_cancelled(box, job);
    if (job->state != JOB_DONE)
        break_rule(box, "an acknowledged job did not end", job->id);
    if (executions > 1 + job->preemptions)
        break_rule(box, "it ran twice", job->id);
    if (!is_cancelled && job->end == END_CANCELLED)
        break_rule(box, "it was cancelled by nobody", job->id);
    if (job->end == END_IDLE_TIMEOUT && job->ask.idle_timeout_ms == 0)
        break_rule(box, "it was ended for an idleness that is nobody's business", job->id);
    if (job_is_array(job))
        return;
    if (job->end == END_EXIT && (executions < 1 || exit_code != job->exit_code))
        break_rule(box, "its exit code is not the true one", job->id);
    if (job->started_ms == 0 && executions > job->preemptions)
        break_rule(box, "it ran, but nobody knows", job->id);
    if (!is_cancelled && executions == 0 && job->end != END_START_FAILED)
        break_rule(box, "it never ran", job->id);
}

/* Each index of an array that nobody cancelled became one job. */
static void judge_array(struct box *box, struct job **jobs, size_t count, const struct job *array)
{
    unsigned elements = 0;
    for (size_t i = 0; i < count; i++)
        elements += jobs[i] != NULL && jobs[i]->array_job == array->id;
    if (elements > 5 || (elements < 5 && !was_cancelled(box, array)))
        break_rule(box, "its elements are not those that were asked for", array->id);
}

static bool is_told_of(const struct job_event *event, const char *uuid)
{
    const struct cluster_change *change = event->change.items;
    return event->type == EVENT_CLUSTER && event->change.count == 1 && text_equal(change->uuid, uuid);
}

/* From the event that drains a GPU to the one that puts it back, nothing is allocated there. */
static void judge_gpu(struct box *box, const char *uuid)
{
    bool is_drained = false;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        const struct gpu_grant *grants = event->gpus.items;
        if (is_told_of(event, uuid)) {
            uint32_t kind = ((const struct cluster_change *)event->change.items)->kind;
            is_drained = kind == CHANGE_GPU_DRAIN ||
                         (is_drained && kind != CHANGE_GPU_RETURN && kind != CHANGE_GPU_RESUME);
            box->returns += kind == CHANGE_GPU_RETURN;
        }
        for (size_t k = 0; event->type == EVENT_ALLOCATED && k < event->gpus.count; k++)
            if (is_drained && text_equal(grants[k].uuid, uuid))
                break_rule(box, "it got a GPU that was drained", event->job);
    }
}

static void judge(struct box *box)
{
    for (uint32_t i = 0; i < NODE_GPUS; i++) {
        char uuid[16];
        (void)snprintf(uuid, sizeof(uuid), "GPU-%u", i);
        judge_gpu(box, uuid);
    }
    struct error err = { 0 };
    size_t count = 0, asked = 0;
    struct job **jobs = fold(box, &count);
    for (size_t i = 0; i < box->n_asks; i++) {
        const struct ask *ask = &box->asks[i];
        if (ask->job == 0)
            break_rule(box, "a client never got an answer", 0);
        else if (ask->job >= count || jobs[ask->job] == NULL)
            break_rule(box, "an acknowledged job is lost", ask->job);
    }
    for (size_t i = 0; i < count; i++) {
        if (jobs[i] == NULL)
            continue;
        asked += jobs[i]->array_job == 0;
        judge_job(box, jobs[i]);
        if (job_is_array(jobs[i]))
            judge_array(box, jobs, count, jobs[i]);
    }
    if (asked > box->n_asks)
        break_rule(box, "there are more jobs than requests", asked);
    _cleanup_free_ char *difference = box_replay(box->events, box->n_events, jobs, &box->decisions);
    if (difference != NULL) {
        break_rule(box, "its journal does not replay to the same decisions", 0);
        (void)fprintf(stderr, "%s\n", difference);
    }
    for (size_t i = 0; i < count; i++)
        job_free(jobs[i]);
    free(jobs);
    if (node_left_over(&box->node) > 0)
        break_rule(box, "the spool is not empty", 0);
    if (box->core == NULL || sched_invariant(box->core->sched, &err) < 0 || box->core->active_first != NULL)
        break_rule(box, "the ledger is not at rest", 0);
    if (box->broken == NULL && box->node.broken != NULL)
        (void)snprintf(box->detail, sizeof(box->detail), "%s", box->broken = box->node.broken);
}

static bool run_seed(
    uint64_t seed, size_t *ret_happened, size_t *ret_jobs, size_t *ret_decisions, size_t *ret_returns)
{
    struct box *box = xcalloc(1, sizeof(*box));
    box->is_storm = true;
    world_init(&box->world, seed);
    node_init(&box->node, &box->world);
    box->node.send = send_to_controller;
    box->node.send_arg = box;
    start_controller(box);
    node_start_agent(&box->node);
    cut_link(box);
    for (size_t i = 0; i < CLIENTS; i++)
        world_later(&box->world, world_between(&box->world, 0, 500), on_client, box, 0, NULL, NULL);
    world_later(&box->world, 500, on_storm, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_usages, box, 0, NULL, NULL);
    world_later(&box->world, 700, on_pause, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_sample, box, 0, NULL, NULL);
    world_later(&box->world, STORM_MS, on_calm, box, 0, NULL, NULL);
    int64_t until = box->world.now_ms + REST_MS;
    while (box->broken == NULL && world_step(&box->world, until))
        continue;
    if (box->broken == NULL)
        judge(box);
    bool is_good = box->broken == NULL;
    if (!is_good)
        (void)printf(
            "seed %" PRIu64 " at %" PRId64 " ms: %s\n", seed, box->world.now_ms - 1000000, box->detail);
    *ret_happened += box->world.happened;
    *ret_jobs += box->n_asks;
    *ret_decisions += box->decisions;
    *ret_returns += box->returns;
    core_free(box->core);
    store_batch_free(box->committing);
    world_clear(&box->world);
    node_clear(&box->node);
    changes_free(box->events, box->n_events);
    state_changes_free(box->rows, box->n_rows);
    free(box);
    return is_good;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = SEEDS;
    if (argc > 1) {
        first = strtoull(argv[1], NULL, 10);
        count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    }
    size_t happened = 0, jobs = 0, decisions = 0, returns = 0, bad = 0;
    for (uint64_t seed = first; seed < first + count; seed++)
        bad += !run_seed(seed, &happened, &jobs, &decisions, &returns);
    (void)printf("%" PRIu64
                 " seeds, %zu jobs, %zu happenings, %zu decisions replayed, %zu GPUs back, %zu bad\n",
        count, jobs, happened, decisions, returns, bad);
    return bad > 0;
}
