/* SPDX-License-Identifier: MIT */
/*
 * A cluster, all in this process: the real core of the controller, one to three nodes with the real core of
 * an agent each, a modelled store, and clients who submit, cancel and try again. Controller, agents and
 * shepherds die at random moments, connections break and lose what was on them, commits are slow and may or
 * may not survive a crash. Connections overlap, frames of old ones come late, and in some histories frames
 * come twice; an administrator drains nodes, reserves GPUs, tries to fence what is up, and fences what is
 * only cut off, another machine tries to be a node that is up, and parts fail when another is gone. Nodes
 * refuse to start some jobs, or for a while all jobs or those of one user.
 *
 * When the storm is over everything must come to rest, and then: every acknowledged job is done; nothing ran
 * twice; no GPU had two users; no job ran in two places; exit codes are true; ids are never reused; a submit
 * repeated with its key made one job; an end that a client knows of stands; no job ended by a failure that
 * another rank's end had caused; the nodes' spools are empty; the fold of the events is the truth, and
 * another scheduler that is told of them decides the same. No job starts before its time or what it waits
 * for, after its deadline, while it is held, beyond the limits of its array, its user or its group, outside
 * of its partition, on GPUs or nodes other than it asked for, or that are drained, paused, reserved for
 * others or in use. Some jobs are arrays, wait for others, are edited, held for a while, give way to others,
 * or leave their GPUs unused. A seed is a whole history: `sim_box SEED` replays one (campaign.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box.h"
#include "controller/core/state.h"

#define PLAIN_SEEDS   4
#define BEHIND_SEEDS  4
#define STORM_MS      20000
#define PACE_SLACK_MS 20 // of an event that is as old as its turn
#define CLOCK_OFF_MS  (2 * 3600 * 1000LL)
#define REST_MS       400000
#define LONG_REST_MS  1000000 // where elements are committed behind others: they take up to eight seconds
#define DOWN_MAX_MS   300     // of the controller
#define STORM_PACE_MS 500     // between two happenings at most
#define MILD_PACE_MS  6000    // where jobs are to be parked by the rule
#define LATE_MS       30000   // a node may return for this time after the storm

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
    _cleanup_free_ struct store_batch *batch = take_ptr(box->committing);
    box_skip(box, batch->gap);
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
    struct core_fact fact = box_fact(box, job);
    core_on_end(box->core, box->world.now_ms, world_wall_ms(&box->world), &fact);
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

/* As the store reads them: by kind and key, of each key the last word. */
static int by_key(const void *a, const void *b)
{
    const struct state_change *const *left = a, *const *right = b;
    int order = strcmp((*left)->kind, (*right)->kind);
    order = order != 0 ? order : strcmp((*left)->key, (*right)->key);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

static void load_rows(struct box *box)
{
    _cleanup_free_ const struct state_change **rows = xcalloc(box->n_rows + 1, sizeof(struct state_change *));
    for (size_t i = 0; i < box->n_rows; i++)
        rows[i] = &box->rows[i];
    qsort(rows, box->n_rows, sizeof(struct state_change *), by_key);
    for (size_t i = 0; i < box->n_rows; i++) {
        const struct state_change *row = rows[i], *next = rows[i + 1];
        bool is_last = next == NULL || strcmp(row->kind, next->kind) != 0 || strcmp(row->key, next->key) != 0;
        struct error err = { 0 };
        if (is_last && !row->is_removal &&
            core_load_state(box->core, row->kind, row->key, row->value.bytes, row->value.length, &err) < 0)
            box_break(box, "a row of the state cannot be read", 0);
    }
}

/* What may go wrong with frames: in some histories only what a stream allows. */
static void choose_habits(struct box *box)
{
    box->has_copies = !world_one_in(&box->world, 3);
    box->has_half_open = !world_one_in(&box->world, 4);
    box_vary_config(box);
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
    struct core_options options = box_options(box);
    struct core_effects effects = {
        .arg = box,
        .commit = commit,
        .send = box_send,
        .close_link = box_close_link,
        .reply = box_reply,
        .publish = publish,
        .fetch_spec = fetch_spec,
        .fetch_end = fetch_end,
        .arm = arm,
        .random = random_number,
    };
    box->life++;
    box->core = core_new(&options, &effects);
    size_t count = 0;
    struct job **jobs = box_fold(box, NULL, &count);
    struct store_summary summary = { .epoch = ++box->epoch, .is_old_copy = box->is_old_copy };
    summary.last_job = count > 1 && jobs[count - 1]->id > box->last_job ? jobs[count - 1]->id : box->last_job;
    summary.last_event = box->n_events > 0 ? box->events[box->n_events - 1].event.seq : 0;
    if (summary.last_event < box->last_event)
        summary.last_event = box->last_event;
    box->is_old_copy = false;
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

void box_kill_controller(struct box *box)
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
    box_disturb(box, NULL, DOWN_MAX_MS);
    if (is_kept)
        make_durable(box);
    store_batch_free(take_ptr(box->committing));
    for (size_t i = 0; i < box->n_asks; i++)
        box->asks[i].is_waiting = false;
    box_lose_controller(box);
    world_later(
        &box->world, world_between(&box->world, 1, DOWN_MAX_MS), on_controller_start, box, 0, NULL, NULL);
}

static void on_storm(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    if (!box->is_storm)
        return;
    if (world_one_in(&box->world, 4))
        box_kill_controller(box);
    else
        box_storm_place(box);
    int64_t pace_ms = box->are_plain ? MILD_PACE_MS : STORM_PACE_MS;
    world_later(&box->world, world_between(&box->world, 1, pace_ms), on_storm, box, 0, NULL, NULL);
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
    box_disturb(box, NULL, 0);
    box->tally.counts[TALLY_CLOCK_STEPS]++;
    if (box->is_storm)
        world_later(&box->world, world_between(&box->world, 200, box->are_plain ? STORM_MS : 8000), on_clock,
            box, 0, NULL, NULL);
}

static void on_calm(void *arg, uint64_t number, void *object)
{
    struct box *box = arg;
    box->is_storm = false;
    box_disturb(box, NULL, 0);
}

bool box_run_seed(uint64_t seed, struct tally *tally)
{
    _cleanup_free_ struct box *box = xcalloc(1, sizeof(*box));
    box->is_storm = true;
    box->are_plain = seed % PLAIN_SEEDS == 0;
    box->has_behind = seed % BEHIND_SEEDS == 1;
    world_init(&box->world, seed);
    box->late_ms = box->world.now_ms + STORM_MS + LATE_MS;
    choose_habits(box);
    start_controller(box);
    box_open_places(box);
    box_open_clients(box);
    box_open_admins(box);
    world_later(&box->world, 500, on_storm, box, 0, NULL, NULL);
    world_later(&box->world, 600, on_usages, box, 0, NULL, NULL);
    box_open_config(box);
    box_open_backup(box);
    world_later(&box->world, 3000, on_clock, box, 0, NULL, NULL);
    world_later(&box->world, STORM_MS, on_calm, box, 0, NULL, NULL);
    int64_t until = box->world.now_ms + (box->has_behind ? LONG_REST_MS : REST_MS);
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
        box->tally.counts[TALLY_TROUBLES] += box->places[i].node.n_troubles;
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
    free(box->was_open);
    free(box->undone);
    free(box->disturbances);
    return is_good;
}
