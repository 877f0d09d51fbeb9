/* SPDX-License-Identifier: MIT */
/*
 * A cluster, all in this process: the real core of the controller, one to three nodes with the real core of
 * an agent each, a modelled store, and clients who submit, cancel and try again. Controller, agents and
 * shepherds die at random moments, connections break and lose what was on them, commits are slow and may or
 * may not survive a crash. Connections overlap, frames of old ones come late, and in some histories frames
 * come twice; an administrator tries to fence what is up, and fences what is only cut off, another machine
 * tries to be a node that is up, and parts fail when another is gone.
 *
 * When the storm is over everything must come to rest, and then: every acknowledged job is done; nothing ran
 * twice; no GPU had two users; no job ran in two places; exit codes are true; ids are never reused; a submit
 * repeated with its key made one job; an end that a client knows of stands; no job ended by a failure that
 * another rank's end had caused; the nodes' spools are empty; the fold of the events is the truth, and
 * another scheduler that is told of them decides the same. Some jobs are arrays, wait for others, are held
 * for a while or give way to others, leave their GPUs unused, and GPUs are paused. A seed is a whole history:
 * `sim_box SEED` replays one (campaign.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "controller/core/state.h"

#define CLIENTS       8U
#define STORM_MS      20000
#define PACE_SLACK_MS 20 // of an event that is as old as its turn
#define CLOCK_OFF_MS  (2 * 3600 * 1000LL)
#define REST_MS       400000
#define LATE_MS       30000 // so long after the storm a node may still come back

/* --- the store --- */

void box_break(struct box *box, const char *rule, uint64_t job)
{
    if (box->broken != NULL)
        return;
    box->broken = rule;
    (void)snprintf(box->detail, sizeof(box->detail), "job %" PRIu64 ": %s", job, rule);
}

void box_turn(struct box *box)
{
    if (box->core != NULL)
        core_turn(box->core, box->world.now_ms, world_wall_ms(&box->world));
}

/* Moves what was being committed into what has survived. */
static void make_durable(struct box *box)
{
    struct store_batch *batch = take_ptr(box->committing);
    box->events = xreallocarray(box->events, box->n_events + batch->count + 1, sizeof(struct change));
    if (batch->count > 0)
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
    box_turn(box);
}

static void commit(void *arg, struct store_batch *batch)
{
    struct box *box = arg;
    box->committing = batch;
    world_later(&box->world, world_between(&box->world, 0, 10), on_committed, box, box->life, NULL, NULL);
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
    if (ask->is_fence) {
        ask->is_fenced = answer->code == 0;
        return;
    }
    if (answer->code == -ERANGE && !ask->is_sizeable) // it asks again
        return;
    if (answer->code < 0) {
        box_break(box, "a good submit was refused", 0);
        (void)fprintf(stderr, "%s\n", answer->err.message);
        return;
    }
    if (ask->job != 0 && ask->job != answer->job)
        box_break(box, "one key made two jobs", answer->job);
    for (size_t i = 0; i < box->n_asks; i++)
        if (&box->asks[i] != ask && box->asks[i].job == answer->job)
            box_break(box, "two requests were acknowledged with one id", answer->job);
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
    spec->ask.requeue_on_node_lost = kind % 9 == 0;
    spec->ask.retry = kind % 6 == 0 ? 2 : 0;
    if (spec->ask.retry > 0 && kind % 4 == 0)
        spec->ask.retry_on = xstrdup("1-3");
    spec->ask.park_on_preempt = spec->ask.preemptible && kind % 2 == 0;
    if (kind % 8 == 1) {
        spec->ask.time_limit_ms = 100;
        spec->ask.park_on_timeout = true;
    }
    spec->ask.array = kind % 19 == 0 ? xstrdup("0-4%2") : NULL;
    if (ask->after != 0)
        spec->ask.after = xasprintf("%" PRIu64 ":any", ask->after);
    if (kind % 11 == 0) {
        spec->ask.gpus = 2;
        spec->ask.gpu_ids = xstrdup("3,1");
    } else if (spec->ask.gpus > 0 && kind % 13 == 0) {
        spec->ask.gpu_mem = 8ULL << 30;
    } else if (kind % 4 == 1) {
        spec->ask.park_anywhere = true;
    } else if (kind % 7 < 2 && ask->box->n_places > 2) {
        spec->ask.nodes = 2; // of three: one may be lost for ever
        spec->ask.gpus = spec->ask.nodes * (uint32_t)(kind / 11 % 3);
        if (spec->ask.gpus == 0) {
            spec->ask.idle_ok = false;
            spec->ask.idle_timeout_ms = 0;
        }
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
        box->tally.counts[TALLY_SUBMITS_AGAIN] += ask->is_asked;
        ask->is_waiting = ask->is_asked = true;
        ask->is_sizeable = box_has_met_all(box);
        core_submit(
            box->core, box->world.now_ms, world_wall_ms(&box->world), &client, make_spec(ask), &facts, ask);
        box_turn(box);
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
    core_cancel(box->core, box->world.now_ms, world_wall_ms(&box->world), &client, ask->job, 0, NULL);
    box_turn(box);
}

/* Does something to what runs; of an array, to its elements. */
static void control(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    int64_t now = box->world.now_ms;
    if (ask->job == 0 || box->core == NULL)
        return;
    int64_t return_ms = world_one_in(&box->world, 3) ? world_wall_ms(&box->world) + 1000 : 0;
    switch (world_random(&box->world) % 8) {
    case 0: core_requeue(box->core, now, world_wall_ms(&box->world), &client, ask->job, 0, NULL); break;
    case 1: core_signal(box->core, now, world_wall_ms(&box->world), &client, ask->job, 10, NULL); break;
    case 2: core_unpark(box->core, now, world_wall_ms(&box->world), &client, ask->job, NULL); break;
    case 3:
    case 4:
    case 5: core_park(box->core, now, world_wall_ms(&box->world), &client, ask->job, return_ms, NULL); break;
    default: core_suspend(box->core, now, world_wall_ms(&box->world), &client, ask->job, false, NULL); break;
    }
    box_turn(box);
}

static void release(void *arg, uint64_t number, void *object);

/* As the API tells of an end: when it is durable. After a crash it may be no end any more. */
static void hear_of_end(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct ask *ask = object;
    const struct core_entry *entry = box->core != NULL ? core_find(box->core, ask->job) : NULL;
    bool is_open = entry != NULL && entry->job->state != JOB_DONE;
    if (is_open)
        release(box, 0, ask);
    else if (box->core == NULL || (entry != NULL && entry->changed_in > box->core->durable_batch))
        world_later(&box->world, 5, hear_of_end, box, 0, ask, NULL);
    else
        ask->is_over = true;
}

/* Holds what waits, and lets go again until nothing is held, suspended or parked. */
static void release(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    const struct ask *ask = object;
    if (box->core != NULL && ask->job != 0) {
        bool waits = false;
        for (uint32_t index = 0; index < 5; index++) {
            uint64_t element = core_element(
                box->core, box->world.now_ms, world_wall_ms(&box->world), ask->job, index, false, &waits);
            if (element != 0)
                core_hold(
                    box->core, box->world.now_ms, world_wall_ms(&box->world), &client, element, true, NULL);
        }
        core_hold(box->core, box->world.now_ms, world_wall_ms(&box->world), &client, ask->job, true, NULL);
        core_suspend(box->core, box->world.now_ms, world_wall_ms(&box->world), &client, ask->job, true, NULL);
        core_unpark(box->core, box->world.now_ms, world_wall_ms(&box->world), &client, ask->job, NULL);
        box_turn(box);
        const struct job *job = core_job(box->core, ask->job);
        if (job == NULL || job->state == JOB_DONE) {
            hear_of_end(box, 0, object);
            return;
        }
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
        core_element(box->core, box->world.now_ms, world_wall_ms(&box->world), ask->job, 3, true, &waits);
    core_hold(box->core, box->world.now_ms, world_wall_ms(&box->world), &client,
        element != 0 ? element : ask->job, false, NULL);
    box_turn(box);
}

/* GPUs are paused while the storm is on, and all are back afterwards. */
static void on_pause(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    char name[16];
    char *items[] = { name, NULL };
    struct strings gpus = { .items = items, .count = 1 };
    for (uint32_t i = 0; box->core != NULL && i < box->n_places * NODE_GPUS; i++) {
        (void)snprintf(name, sizeof(name), "n%u:%u", i / NODE_GPUS, i % NODE_GPUS);
        int64_t now = box->world.now_ms;
        if (!box->is_storm || world_one_in(&box->world, 4))
            core_pause(box->core, now, world_wall_ms(&box->world), &admin, &gpus, "for a while", 0,
                !box->is_storm || world_one_in(&box->world, 2) ? GPU_WISH_RESUME : GPU_WISH_PAUSE, NULL);
    }
    box_turn(box);
    /* What a node tells that comes back late can drain a GPU once more. */
    bool may_change = box->world.now_ms < box->late_ms;
    if (may_change || box->core == NULL || box->core->marks.count > 0 || box->core->faults.count > 0)
        world_later(&box->world, world_between(&box->world, 100, 3000), on_pause, box, 0, NULL, NULL);
}

/* GPUs fail, vanish and come back while the storm is on; afterwards they are well. */
static void on_sample(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    for (size_t i = 0; i < box->n_places; i++) {
        struct node *node = &box->places[i].node;
        if (!box->is_storm)
            node_heal(node);
        else if (world_one_in(&box->world, 3))
            node_ail(node);
        node_sample(node);
    }
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

/* Whatever the wall clock does, time goes on at half speed at least, from the first event of a life on. */
static void check_pace(struct box *box, const struct job_event *event)
{
    if (box->first_event.life != box->life) {
        box->first_event.life = box->life;
        box->first_event.boot_ms = event->boot_ms;
        box->first_event.wall_ms = event->wall_ms;
    }
    int64_t passed_ms = event->boot_ms - box->first_event.boot_ms;
    if (2 * (event->wall_ms - box->first_event.wall_ms) + PACE_SLACK_MS < passed_ms)
        box_break(box, "mgpud's time stood still", event->job);
}

/* An attempt is over when nothing of it is left, on any node. */
static void publish(void *arg, const struct job_event *event, const struct job *job)
{
    struct box *box = arg;
    check_pace(box, event);
    bool is_over =
        event->type == EVENT_ENDED || event->type == EVENT_REQUEUED || event->type == EVENT_RETURNED;
    if (is_over && box_is_running(box, event->job, event->attempt))
        box_break(box, "its attempt was ended while it ran", event->job);
}

static void on_spec(void *arg, uint64_t job, void *object)
{
    struct box *box = arg;
    for (size_t i = 0; box->core != NULL && i < box->n_events; i++) {
        if (box->events[i].spec == NULL || box->events[i].event.job != job)
            continue;
        core_on_spec(box->core, job, spec_bytes_new(box->events[i].spec));
        box_turn(box);
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
    /* All wait for any end. */
    core_on_end(box->core, box->world.now_ms, world_wall_ms(&box->world),
        &(struct core_fact){ .job = job, .is_ok = true });
    box_turn(box);
}

static void fetch_end(void *arg, uint64_t job)
{
    struct box *box = arg;
    world_later(&box->world, 1, on_end, box, job, NULL, NULL);
}

static void on_core_timer(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (box->core == NULL || box->last_timer != number)
        return;
    core_timer(box->core, box->world.now_ms, world_wall_ms(&box->world));
    box_turn(box);
}

static void arm(void *arg, int64_t boot_ms)
{
    struct box *box = arg;
    int64_t delay = boot_ms - box->world.now_ms;
    world_later(&box->world, delay > 0 ? delay : 0, on_core_timer, box, ++box->last_timer, NULL, NULL);
}

static uint64_t random_number(void *arg)
{
    return world_random(&((struct box *)arg)->world);
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
            box_break(box, "a row of the state cannot be read", 0);
    }
}

/* What may go wrong with frames: in some histories only what a stream allows. */
static void choose_habits(struct box *box)
{
    box->has_copies = !world_one_in(&box->world, 3);
    box->has_half_open = !world_one_in(&box->world, 4);
}

static void check_what_was_told(struct box *box)
{
    for (size_t i = 0; i < box->n_asks; i++) {
        const struct job *job = box->asks[i].is_over ? core_job(box->core, box->asks[i].job) : NULL;
        if (job != NULL && job->state != JOB_DONE)
            box_break(box, "its end was told, and was taken back", job->id);
    }
}

static void start_controller(struct box *box)
{
    struct core_options options = {
        .boot_id = "sim", .queue_max = 10000, .recent_done_max = 20, .grace_ms = 10
    };
    sched_settings_init(&options.sched);
    options.external = (struct external_settings){ .policy = EXTERNAL_AVOID,
        .external_memory = 512ULL << 20,
        .external_load = 5,
        .share_memory = 80,
        .share_load = 80 };
    options.health = (struct health_settings){ .recover_ms = 1500, .unclean_ms = 1000 };
    options.loss = (struct loss_settings){ .timeout_ms = 1500, .lease_ms = 2000 };
    options.idle = (struct idle_policy){ .told_ms = 50, .yields_ms = 150 };
    struct core_effects effects = {
        .arg = box,
        .commit = commit,
        .send = box_send,
        .close_link = box_close_link,
        .reply = reply,
        .publish = publish,
        .fetch_spec = fetch_spec,
        .fetch_end = fetch_end,
        .arm = arm,
        .random = random_number,
    };
    box->life++;
    options.sched.node_starts = box->life % 3; // none in every third
    box->core = core_new(&options, &effects);
    size_t count = 0;
    struct job **jobs = box_fold(box, &count);
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
    core_load_end(box->core, box->world.now_ms, world_wall_ms(&box->world));
    check_what_was_told(box);
    box_turn(box);
}

static void on_controller_start(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    start_controller(box);
}

static void kill_controller(struct box *box)
{
    if (box->core == NULL)
        return;
    core_free(box->core);
    box->core = NULL;
    /* A commit under way when the process dies: kept or not, and nobody was told. */
    bool is_kept = box->committing != NULL && world_one_in(&box->world, 2);
    box->tally.counts[TALLY_COMMITS_KEPT] += is_kept;
    box->tally.counts[TALLY_COMMITS_LOST] += box->committing != NULL && !is_kept;
    box->tally.counts[TALLY_CONTROLLER_DEATHS]++;
    if (is_kept)
        make_durable(box);
    store_batch_free(take_ptr(box->committing));
    for (size_t i = 0; i < box->n_asks; i++)
        box->asks[i].is_waiting = false;
    box_lose_controller(box);
    world_later(&box->world, world_between(&box->world, 1, 300), on_controller_start, box, 0, NULL, NULL);
}

static void on_storm(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (!box->is_storm)
        return;
    if (world_one_in(&box->world, 4))
        kill_controller(box);
    else
        box_storm_place(box);
    world_later(&box->world, world_between(&box->world, 1, 500), on_storm, box, 0, NULL, NULL);
}

/* Some of what runs is idle, and the agent says so. */
static void on_usages(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    for (size_t i = 0; i < box->n_places; i++)
        if (box->places[i].node.core != NULL && box->places[i].line != NULL &&
            !node_is_frozen(&box->places[i].node))
            node_usages(&box->places[i].node);
    if (box->is_storm)
        world_later(&box->world, world_between(&box->world, 10, 200), on_usages, box, 0, NULL, NULL);
}

/* By hand, or by NTP; by up to two hours, in either direction. */
static void on_clock(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    int64_t off_ms = box->is_storm ? world_between(&box->world, -CLOCK_OFF_MS, CLOCK_OFF_MS) : 0;
    world_set_clock(&box->world, off_ms);
    box->tally.counts[TALLY_CLOCK_STEPS]++;
    if (box->is_storm)
        world_later(&box->world, world_between(&box->world, 200, 8000), on_clock, box, 0, NULL, NULL);
}

static void on_calm(void *arg, uint64_t number, void *object)
{
    ((struct box *)arg)->is_storm = false;
}

bool box_run_seed(uint64_t seed, struct tally *tally)
{
    struct box *box = xcalloc(1, sizeof(*box));
    box->is_storm = true;
    world_init(&box->world, seed);
    box->late_ms = box->world.now_ms + STORM_MS + LATE_MS;
    choose_habits(box);
    start_controller(box);
    box_open_places(box);
    for (size_t i = 0; i < CLIENTS; i++)
        world_later(&box->world, world_between(&box->world, 0, 500), on_client, box, 0, NULL, NULL);
    world_later(&box->world, 500, on_storm, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_usages, box, 0, NULL, NULL);
    world_later(&box->world, 700, on_pause, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_sample, box, 0, NULL, NULL);
    world_later(&box->world, 3000, on_clock, box, 0, NULL, NULL);
    world_later(&box->world, STORM_MS, on_calm, box, 0, NULL, NULL);
    int64_t until = box->world.now_ms + REST_MS;
    while (box->broken == NULL && world_step(&box->world, until))
        continue;
    if (box->broken == NULL)
        box_judge(box);
    bool is_good = box->broken == NULL;
    if (!is_good)
        (void)printf(
            "seed %" PRIu64 " at %" PRId64 " ms: %s\n", seed, box->world.now_ms - 1000000, box->detail);
    for (size_t i = 0; i < box->n_places; i++) {
        box->tally.counts[TALLY_LEASE_ENDS] += box->places[i].node.lease_ends;
        box->tally.counts[TALLY_HELPER_DEATHS] += box->places[i].node.helper_deaths;
    }
    box->tally.counts[TALLY_HAPPENINGS] = box->world.happened;
    box->tally.counts[TALLY_JOBS] = box->n_asks;
    tally_add(tally, &box->tally);
    core_free(box->core);
    store_batch_free(box->committing);
    world_clear(&box->world);
    box_close_places(box);
    changes_free(box->events, box->n_events);
    state_changes_free(box->rows, box->n_rows);
    free(box);
    return is_good;
}
