/* SPDX-License-Identifier: MIT */
/*
 * A backup that is restored, in some histories: the store is put back to what it was some seconds earlier, by
 * `mgpud --restore` or by a copy of its files, which mgpud recognises by what nodes have heard. What was
 * acknowledged since then is lost, and nobody is blamed for it; but nodes know more than the store, no number
 * is given again, and from then on nothing starts on a node before it is resumed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "box.h"

#define AGAIN_MS  10
#define LATEST_MS 6000

size_t box_index(uint64_t job)
{
    return job % RESTORE_GAP;
}

static uint64_t highest_job(const struct box *box)
{
    uint64_t highest = box->last_job;
    for (size_t i = 0; i < box->n_events; i++)
        if (box->events[i].event.job > highest)
            highest = box->events[i].event.job;
    return highest;
}

/* As store_ids_skip(). */
void box_skip(struct box *box, uint64_t gap)
{
    if (gap == 0)
        return;
    uint64_t last_event = box->n_events > 0 ? box->events[box->n_events - 1].event.seq : 0;
    box->last_job = highest_job(box) + gap;
    box->last_event = gap + (last_event > box->last_event ? last_event : box->last_event);
    box->epoch += gap;
}

/* Of jobs that were not done it is not known what became of them. */
static void note_what_was_open(struct box *box)
{
    size_t count = 0;
    _cleanup_free_ struct job **jobs = box_fold(box, NULL, &count);
    box->was_open = xreallocarray(box->was_open, count, sizeof(*box->was_open));
    box->n_known = count;
    for (size_t i = 0; i < count; i++) {
        box->was_open[i] = jobs[i] != NULL && jobs[i]->state != JOB_DONE;
        job_free(jobs[i]);
    }
}

/* What began since then will be stopped when its node is resumed; till then others may run in its place. */
static void undo_starts(struct box *box)
{
    box->undone = xreallocarray(box->undone, box->n_events + 1, sizeof(*box->undone));
    box->n_undone = 0;
    for (size_t i = box->backup.n_events; i < box->n_events; i++)
        if (box->events[i].event.type == EVENT_ALLOCATED)
            box->undone[box->n_undone++] = box->events[i].event.token;
    for (size_t i = 0; i < box->n_places; i++)
        node_undo(&box->places[i].node, box->undone, box->n_undone);
}

/* What came after the backup is gone. */
static void roll_back(struct box *box)
{
    size_t n_events = box->n_events - box->backup.n_events, n_rows = box->n_rows - box->backup.n_rows;
    struct change *events = xcalloc(n_events + 1, sizeof(*events));
    struct state_change *rows = xcalloc(n_rows + 1, sizeof(*rows));
    memcpy(events, box->events + box->backup.n_events, n_events * sizeof(*events));
    memcpy(rows, box->rows + box->backup.n_rows, n_rows * sizeof(*rows));
    changes_free(events, n_events);
    state_changes_free(rows, n_rows);
    box->n_events = box->backup.n_events;
    box->n_rows = box->backup.n_rows;
}

/* Its node has received an order about it that is not in the backup. */
static bool is_told_more(const struct box *box, size_t at)
{
    const struct job_event *told = &box->events[at].event;
    bool is_known = false;
    if (told->type != EVENT_PARKED && told->type != EVENT_UNPARKED && told->type != EVENT_SUSPENDED)
        return false;
    for (size_t i = 0; i < box->n_events; i++) {
        const struct job_event *event = &box->events[i].event;
        if (event->job != told->job || event->attempt != told->attempt)
            continue;
        is_known |= event->type == EVENT_STARTED && i < box->backup.n_events;
        if (i > at && (event->type == EVENT_ENDED || event->type == EVENT_REQUEUED))
            return false;
    }
    return is_known;
}

static bool is_any_told_more(const struct box *box)
{
    bool is_any = false;
    for (size_t i = box->backup.n_events; i < box->n_events && !is_any; i++)
        is_any = is_told_more(box, i);
    return is_any;
}

/* `patience`: how often it may be put off for a better moment. */
static void on_restore(void *arg, uint64_t patience, void *object)
{
    struct box *box = arg;
    if (patience > 0 && !is_any_told_more(box)) {
        world_later(&box->world, AGAIN_MS, on_restore, box, patience - 1, NULL, NULL);
        return;
    }
    if (box->core == NULL) { // it is about to be started again: after that
        world_later(&box->world, AGAIN_MS, on_restore, box, 0, NULL, NULL);
        return;
    }
    box_kill_controller(box);
    undo_starts(box);
    roll_back(box);
    box->epoch = box->backup.epoch;
    box->last_job = box->backup.last_job;
    box->last_event = box->backup.last_event;
    note_what_was_open(box);
    box->is_old_copy = world_one_in(&box->world, 2); // by `mgpud --restore`: the store knows what it is
    if (box->is_old_copy)
        box_skip(box, RESTORE_GAP);
    box->tally.counts[box->is_old_copy ? TALLY_RESTORES : TALLY_OLD_COPIES]++;
    box_restore_clients(box);
    box_restore_places(box);
}

/* Since the last look; only then can a job be among those that run. */
static bool has_any_begun(struct box *box)
{
    bool is_any = false;
    for (; box->n_looked_at < box->n_events; box->n_looked_at++) {
        uint32_t type = box->events[box->n_looked_at].event.type;
        is_any |= type == EVENT_STARTED || type == EVENT_CONTINUED || type == EVENT_UNPARKED ||
                  type == EVENT_RECONCILED;
    }
    return is_any;
}

/* A job that runs, and will be parked soon. */
static bool is_any_to_be_parked(struct box *box)
{
    bool is_any = false;
    if (!has_any_begun(box))
        return false;
    size_t count = 0;
    struct job **jobs = box_fold(box, NULL, &count);
    for (size_t i = 0; i < count; i++) {
        is_any |= jobs[i] != NULL && jobs[i]->state == JOB_RUNNING && jobs[i]->ask->park_on_timeout &&
                  job_park(jobs[i])->phase == PARK_NONE;
        job_free(jobs[i]);
    }
    free(jobs);
    return is_any;
}

/* `is_patient`: it is made and restored at moments that matter, which are many after the storm. */
static void on_backup(void *arg, uint64_t is_patient, void *object)
{
    struct box *box = arg;
    if (is_patient != 0 && !is_any_to_be_parked(box) && box->world.now_ms < box->late_ms - 2 * LATEST_MS) {
        world_later(&box->world, AGAIN_MS, on_backup, box, is_patient, NULL, NULL);
        return;
    }
    box->backup.n_events = box->n_events;
    box->backup.n_rows = box->n_rows;
    box->backup.epoch = box->epoch;
    box->backup.last_job = box->last_job;
    box->backup.last_event = box->last_event;
    world_later(&box->world, world_between(&box->world, 20, is_patient != 0 ? 100 : LATEST_MS), on_restore,
        box, is_patient != 0 ? (LATEST_MS - 100) / AGAIN_MS : 0, NULL, NULL);
}

void box_open_backup(struct box *box)
{
    bool is_patient = world_one_in(&box->world, 8);
    if (is_patient)
        world_later(
            &box->world, world_between(&box->world, 5000, 24000), on_backup, box, is_patient, NULL, NULL);
    else if (world_one_in(&box->world, 6))
        world_later(&box->world, world_between(&box->world, 2000, 12000), on_backup, box, 0, NULL, NULL);
}
