/* SPDX-License-Identifier: MIT */
/*
 * Sends PREPARE for the jobs that will probably start next. The job remains queued, nothing is committed, and
 * it is allocated like any other job; its node compares the LAUNCH with the PREPARE. A guess that no longer
 * holds is withdrawn. When a link ends, its node drops the prepared jobs.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/send.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define GUESSES_MAX 16U
#define WRONG_MS    250 // delay after a wrong guess: guesses may change with every submit

/* A job that a node prepares. */
struct guess {
    uint64_t job;
    uint32_t attempt, link;
    uint64_t token;
    char *node;
    struct record_list gpus;
};

struct core_guesses {
    struct guess items[GUESSES_MAX];
    size_t count;
    int64_t not_before_ms; // boot clock
};

static void remove_guess(struct core *core, size_t i)
{
    struct core_guesses *guesses = core->guesses;
    struct guess *guess = &guesses->items[i];
    struct core_entry *entry = core_find(core, guess->job);
    if (entry != NULL && core_extra(entry)->next_token == guess->token)
        core_make_extra(entry)->next_token = 0;
    gpu_grants_clear(&guess->gpus);
    free(guess->node);
    *guess = guesses->items[--guesses->count];
}

static void withdraw(struct core *core, size_t i)
{
    const struct guess *guess = &core->guesses->items[i];
    const struct message_release_attempt release = {
        .id = { .job = guess->job, .attempt = guess->attempt },
        .token = guess->token,
    };
    const struct core_node *node = core_find_node(core, guess->node);
    if (node != NULL && node->is_up && node->link == guess->link)
        core->effects.send(core->effects.arg, node->link, &message_release_attempt_record, &release);
    remove_guess(core, i);
}

static bool is_same_place(const struct record_list *one, const struct record_list *other)
{
    const struct gpu_grant *a = one->items, *b = other->items;
    for (size_t i = 0; one->count == other->count && i < one->count; i++)
        if (a[i].index != b[i].index || !text_equal(a[i].uuid, b[i].uuid))
            return false;
    return one->count == other->count;
}

/* True if the guess still equals `now`. */
static bool holds(const struct core *core, const struct guess *guess, const struct sched_guess *now)
{
    const struct core_entry *entry = core_find(core, guess->job);
    const struct cluster *cluster = sched_cluster(core->sched);
    struct record_list gpus = { 0 };
    if (now->job != guess->job || entry == NULL || entry->job->attempt + 1 != guess->attempt ||
        !text_equal(cluster->nodes[now->place->nodes[0].node].name, guess->node))
        return false;
    core_write_grants(core, now->place, &gpus);
    bool is_same = is_same_place(&gpus, &guess->gpus);
    gpu_grants_clear(&gpus);
    return is_same;
}

static void prepare(struct core *core, const struct sched_guess *now)
{
    struct core_guesses *guesses = core->guesses;
    struct core_entry *entry = core_find(core, now->job);
    const char *name = sched_cluster(core->sched)->nodes[now->place->nodes[0].node].name;
    const struct core_node *node = core_find_node(core, name);
    if (entry == NULL || entry->job->state != JOB_QUEUED || job_is_array(entry->job) || node == NULL ||
        !node->is_up || node->n_orphaned > 0 || guesses->count == GUESSES_MAX ||
        !core_has_room_for_specs(core))
        return;
    struct guess guess = {
        .job = now->job,
        .attempt = entry->job->attempt + 1,
        .link = node->link,
        .token = core->effects.random(core->effects.arg) | 1,
        .node = xstrdup(name),
    };
    core_write_grants(core, now->place, &guess.gpus);
    core_make_extra(entry)->next_token = guess.token;
    guesses->items[guesses->count++] = guess;
    if (!core_send_prepare(core, entry, &guess.gpus, node->link))
        remove_guess(core, guesses->count - 1); // added again when its request is in memory
}

static bool is_guessed(
    const struct core *core, const struct guess *guess, const struct sched_guess *now, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (holds(core, guess, &now[i]))
            return true;
    return false;
}

static bool is_prepared(const struct core *core, const struct sched_guess *now)
{
    for (size_t i = 0; i < core->guesses->count; i++)
        if (holds(core, &core->guesses->items[i], now))
            return true;
    return false;
}

/* Called after every batch, when started jobs have their LAUNCH. While a change waits for a pass, the next
 * jobs are unknown. */
static void revise(struct core *core)
{
    struct core_guesses *guesses = core->guesses;
    struct sched_guess now[GUESSES_MAX];
    if (sched_is_dirty(core->sched))
        return;
    size_t count = sched_guess_next(core->sched, now, GUESSES_MAX);
    for (size_t i = guesses->count; i > 0; i--) {
        if (is_guessed(core, &guesses->items[i - 1], now, count))
            continue;
        guesses->not_before_ms = core->boot_ms + WRONG_MS;
        withdraw(core, i - 1);
    }
    for (size_t i = 0; i < count && core->boot_ms >= guesses->not_before_ms; i++)
        if (!is_prepared(core, &now[i]))
            prepare(core, &now[i]);
}

/* If it is on the same node, the agent compares the LAUNCH. */
static void on_event(struct core *core, struct core_entry *entry, const struct core_news *news)
{
    for (size_t i = core->guesses->count; i > 0; i--) {
        const struct guess *guess = &core->guesses->items[i - 1];
        if (guess->job != entry->job->id)
            continue;
        if (text_equal(guess->node, entry->job->node))
            remove_guess(core, i - 1);
        else
            withdraw(core, i - 1);
    }
}

/* It has ended, and its guess was withdrawn when that became durable. */
static void on_gone(struct core *core, struct core_entry *entry)
{
    for (size_t i = core->guesses != NULL ? core->guesses->count : 0; i > 0; i--)
        if (core->guesses->items[i - 1].job == entry->job->id)
            remove_guess(core, i - 1);
}

/* The agent drops its prepared jobs by itself. */
static void on_cut(struct core *core, struct core_node *node, uint32_t link)
{
    for (size_t i = core->guesses->count; i > 0; i--)
        if (core->guesses->items[i - 1].link == link)
            remove_guess(core, i - 1);
}

static void init(struct core *core)
{
    core->guesses = xcalloc(1, sizeof(*core->guesses));
}

static void clear(struct core *core)
{
    while (core->guesses->count > 0)
        remove_guess(core, core->guesses->count - 1);
    free(take_ptr(core->guesses));
}

const struct core_concern core_concern_prepare = {
    .name = "prepare",
    .init = init,
    .free = clear,
    .events = CORE_ON(EVENT_ALLOCATED),
    .event = on_event,
    .gone = on_gone,
    .cut = on_cut,
    .durable = revise,
};
