/* SPDX-License-Identifier: MIT */
/* The modelled half of a node. Each step of a shepherd's life is a happening, so that it can die between any
 * two. */
#include "node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "node_park.h"

#define USAGES_MAX       64U
#define IDLE_MS          3000
#define LONG_MS          8000 // of jobs, where some are long
#define LONGER_THAN_MOST 12
#define SHORT_MS         250
#define FIRST_USE_MS     8000 // of a GPU, at most so long after a start
#define LEASE_LATE_MS    1500
#define LOOKUP_MAX_MS    5000 // of a user
#define CLOCK_OFF_MS     (3600 * 1000LL)

/* Nobody has set it, or somebody has, by up to an hour in either direction. */
static void node_set_clock(struct node *node)
{
    node->clock_off_ms =
        world_one_in(node->world, 3) ? 0 : world_between(node->world, -CLOCK_OFF_MS, CLOCK_OFF_MS);
}

void node_init(struct node *node, struct world *world, size_t number)
{
    *node = (struct node){ .world = world };
    (void)snprintf(node->name, sizeof(node->name), "n%zu", number);
    node_set_clock(node);
}

void node_gpu_uuid(const struct node *node, uint32_t index, char uuid[16])
{
    (void)snprintf(uuid, 16, "GPU-%.5s-%u", node->name, index % 100);
}

void node_clear(struct node *node)
{
    agent_core_free(node->core);
    while (node->spool != NULL) {
        struct spooled *next = node->spool->next;
        free(node->spool);
        node->spool = next;
    }
    free(node->broken);
    free(node->behind);
}

static void break_rule(struct node *node, const char *rule, uint64_t job)
{
    if (node->broken == NULL)
        node->broken = xasprintf("job %llu: %s", (unsigned long long)job, rule);
}

struct spooled *node_find(const struct node *node, const struct spool_id *id)
{
    struct spooled *entry = node->spool;
    while (entry != NULL && (entry->is_removed || entry->id.job != id->job ||
                                entry->id.attempt != id->attempt || entry->id.rank != id->rank))
        entry = entry->next;
    return entry;
}

static struct spooled *add(struct node *node, const struct spool_id *id, uint64_t token)
{
    struct spooled *entry = xcalloc(1, sizeof(*entry));
    *entry = (struct spooled){ .id = *id, .token = token, .next = node->spool };
    entry->exit_code = (int32_t)((id->job * 7 + id->rank * (id->job % 3)) % 5);
    node->spool = entry;
    return entry;
}

bool node_is_frozen(const struct node *node)
{
    return node->world->now_ms < node->frozen_until_ms;
}

static void look(void *arg, uint64_t life, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    if (node->core == NULL || node->life != life)
        return;
    if (node_is_frozen(node))
        world_later(node->world, node->frozen_until_ms - node->world->now_ms, look, node, life, entry, NULL);
    else
        agent_core_reconcile(node->core, node->world->now_ms, &entry->id);
}

static void look_at_start(void *arg, uint64_t life, void *object)
{
    struct node *node = arg;
    const struct spooled *entry = object;
    if (node->core == NULL || node->life != life || node_is_frozen(node))
        look(arg, life, object);
    else
        agent_core_hint(node->core, node->world->now_ms, &entry->id, true);
}

/* A datagram to the agent of this life; lost when it is dead. */
static void hint_of_start(struct node *node, struct spooled *entry)
{
    if (node->core != NULL)
        world_later(
            node->world, world_between(node->world, 0, 3), look_at_start, node, node->life, entry, NULL);
}

/* Likewise. */
static void hint(struct node *node, struct spooled *entry)
{
    if (node->core != NULL)
        world_later(node->world, world_between(node->world, 0, 3), look, node, node->life, entry, NULL);
}

static bool is_on_gpus(const struct spooled *entry)
{
    return entry->is_running && !entry->is_saved && !entry->is_early;
}

/* Another attempt that runs on a GPU of this one, or NULL. */
static const struct spooled *find_gpu_user(const struct node *node, const struct spooled *starting)
{
    for (const struct spooled *other = node->spool; other != NULL; other = other->next)
        for (size_t i = 0; other != starting && is_on_gpus(other) && i < other->n_gpus; i++)
            for (size_t k = 0; k < starting->n_gpus; k++)
                if (other->gpus[i] == starting->gpus[k] && !(other->is_sharing && starting->is_sharing))
                    return other;
    return NULL;
}

static void check_gpus(struct node *node, const struct spooled *starting)
{
    if (!starting->is_early && find_gpu_user(node, starting) != NULL)
        break_rule(node, "runs on a GPU that another job is using", starting->id.job);
}

static bool is_behind(const struct node *node, const struct spooled *entry)
{
    for (size_t i = 0; i < node->n_behind; i++)
        if (node->behind[i] == entry->token)
            return true;
    return false;
}

void node_expect_behind(struct node *node, uint64_t token)
{
    if (is_behind(node, &(struct spooled){ .token = token }))
        return;
    node->behind = xreallocarray(node->behind, node->n_behind + 1, sizeof(*node->behind));
    node->behind[node->n_behind++] = token;
}

/* The real agent regards the GPUs of an attempt as taken from where it lets it start, and an agent that finds
 * one with a shepherd and without a verdict cannot know whether it was let. */
static bool has_gpus(const struct node *node, const struct spooled *entry)
{
    if (entry->is_removed || entry->has_exit || entry->is_saved || entry->is_early ||
        entry->verdict == VERDICT_NOGO)
        return false;
    bool is_found = entry->shepherd != 0 && entry->shepherd_life < node->life;
    return entry->verdict == VERDICT_GO || entry->let_in_life == node->life || is_found;
}

static bool shares_gpu(const struct spooled *one, const struct spooled *other)
{
    for (size_t i = 0; i < one->n_gpus; i++)
        for (size_t k = 0; k < other->n_gpus; k++)
            if (one->gpus[i] == other->gpus[k])
                return true;
    return false;
}

/* An element that is committed behind another, and that one: either may come first when the node is told
 * again. */
static bool must_wait_for_element(const struct node *node, const struct spooled *starting)
{
    for (const struct spooled *other = node->spool; other != NULL; other = other->next)
        if (other != starting && other->array == starting->array && has_gpus(node, other) &&
            shares_gpu(starting, other) && (is_behind(node, starting) || is_behind(node, other)))
            return true;
    return false;
}

/* The real agent lets no attempt start on a GPU on which another one runs. The controller must never rely on
 * that, except for a job that is parked in a restored store: its orders have high numbers; and for elements.
 */
static bool must_wait(const struct node *node, const struct spooled *starting)
{
    if (starting == NULL || starting->is_early || (starting->is_prepared && !starting->is_taken))
        return false;
    const struct spooled *user = find_gpu_user(node, starting);
    return (user != NULL && user->park.number > 1000) ||
           (starting->array != 0 && must_wait_for_element(node, starting));
}

static void write_exit(struct node *node, struct spooled *entry)
{
    entry->exit = (struct launch_exit){
        .id.job = entry->id.job,
        .id.attempt = entry->id.attempt,
        .id.rank = entry->id.rank,
        .token = entry->token,
        .end = !entry->has_status  ? END_UNKNOWN
               : entry->is_lost    ? END_NODE_LOST
               : entry->is_stopped ? END_CANCELLED
                                   : END_EXIT,
        .exit_code = entry->is_stopped ? 143 : entry->exit_code,
        .is_executed = entry->executions > 0,
        .started_wall_ms = 1,
        .ended_wall_ms = node->world->now_ms + node->clock_off_ms,
        .ended_boot_ms = node->world->now_ms,
    };
    /* Samples of its GPUs may have seen its first use. */
    bool is_seen = entry->executions > 0 && entry->n_gpus > 0 && !entry->was_early;
    entry->usage = (struct job_usage){ .sampled_ms = 1 };
    if (is_seen && world_one_in(node->world, 2))
        entry->usage.first_use_ms = (uint64_t)world_between(node->world, FIRST_USE_MS / 8, FIRST_USE_MS);
    entry->has_exit = true;
    entry->shepherd = 0;
    hint(node, entry);
}

static void take_exit(const struct spooled *entry, struct launch_exit *ret)
{
    *ret = entry->exit;
    ret->usage = (struct record_list){ job_usage_copy(&entry->usage), 1 };
}

static void tell_gone(struct node *node, const struct spooled *entry)
{
    if (entry->n_parts > 0)
        node->gone(node->arg, entry);
}

static void on_command_end(void *arg, uint64_t number, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    if (!entry->is_running)
        return;
    if ((entry->is_suspended || entry->is_saved) && !entry->is_stopped) {
        entry->is_overdue = true;
        return;
    }
    if (entry->is_early && !entry->is_stopped && !world_one_in(node->world, 4)) {
        entry->is_waiting = true; // others end before they open a GPU
        entry->waits_from_ms = node->world->now_ms;
        return;
    }
    entry->is_running = false;
    if (entry->is_stopped)
        tell_gone(node, entry);
    entry->has_status = true; // the user's init writes it, whoever else is dead
    if (entry->shepherd != 0)
        write_exit(node, entry);
}

void node_restore(struct node *node, struct spooled *entry)
{
    if (!entry->is_saved)
        return;
    entry->is_saved = false;
    if (!entry->is_running)
        return;
    check_gpus(node, entry);
    if (entry->is_overdue)
        world_later(node->world, world_between(node->world, 0, 20), on_command_end, node, 0, entry, NULL);
}

static bool is_mine(const struct spooled *entry, uint64_t shepherd)
{
    return !entry->is_removed && entry->shepherd == shepherd;
}

/* The shepherd's own timer, which may be late, by less than the controller's margin; and killing takes a
 * while too. When the shepherd dies, the one that adopts looks at once. */
static void on_lease(void *arg, uint64_t shepherd, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    if (!is_mine(entry, shepherd) || !entry->is_running || entry->lease_ms == 0)
        return;
    if (node->world->now_ms < entry->lease_until_ms) {
        int64_t left_ms = entry->lease_until_ms - node->world->now_ms;
        world_later(node->world, left_ms + world_between(node->world, 0, LEASE_LATE_MS), on_lease, node,
            shepherd, entry, NULL);
        return;
    }
    node->lease_ends++;
    entry->is_lost = entry->has_status = true;
    entry->is_running = false;
    tell_gone(node, entry);
    write_exit(node, entry);
}

static void execute(struct node *node, struct spooled *entry)
{
    entry->is_gated = false;
    entry->is_running = true;
    entry->executions++;
    node->executions++;
    check_gpus(node, entry);
    if (entry->is_prepared && !entry->is_taken)
        break_rule(node, "a job runs that was prepared, but not launched", entry->id.job);
    if (entry->executions > 1)
        break_rule(node, "an attempt executed its command twice", entry->id.job);
    node->executed(node->arg, entry);
    bool is_long = entry->is_long || (node->has_long_jobs && world_one_in(node->world, LONGER_THAN_MOST));
    int64_t most_ms = entry->lease_ms > 0 ? 8000 : is_long ? LONG_MS : node->has_long_jobs ? SHORT_MS : 400;
    world_later(node->world, world_between(node->world, 1, most_ms), on_command_end, node, 0, entry, NULL);
    on_lease(node, entry->shepherd, entry);
}

static void on_gate(void *arg, uint64_t shepherd, void *object)
{
    struct spooled *entry = object;
    if (is_mine(entry, shepherd))
        execute(arg, entry);
}

static void on_started_record(void *arg, uint64_t shepherd, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    if (!is_mine(entry, shepherd))
        return;
    entry->has_started = true;
    hint_of_start(node, entry);
    world_later(node->world, world_between(node->world, 0, 2), on_gate, node, shepherd, entry, NULL);
}

/* One in many fails: for good, as when its command is missing, on this node, or until it has its home. */
static void refuse(struct node *node, struct spooled *entry)
{
    static const enum start_cause causes[] = { START_COMMAND, START_FILES, START_HOME };
    enum start_cause cause = causes[world_between(node->world, 0, 2)];
    entry->verdict = VERDICT_GO;
    write_exit(node, entry);
    entry->exit.cause = cause;
    entry->exit.is_refused = start_row(cause)->class == START_SOON;
    entry->exit.end = start_row(cause)->class == START_WAITS ? END_UNKNOWN : END_START_FAILED;
    entry->exit.exit_code = 125;
    entry->exit.started_wall_ms = 0;
}

static void on_verdict(void *arg, uint64_t shepherd, void *object);

static bool waits(const struct spooled *entry)
{
    return entry->n_parts > 0 || entry->is_prepared;
}

static void on_prepared(void *arg, uint64_t shepherd, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    bool is_at_gate = is_mine(entry, shepherd) && waits(entry) && entry->verdict == VERDICT_NONE;
    if (!is_at_gate) {
        on_verdict(arg, shepherd, object);
    } else if (entry->is_prepared && world_one_in(node->world, 20)) {
        entry->shepherd = 0; // it cannot prepare it, and leaves
        hint(node, entry);
    } else if (!entry->is_prepared && world_one_in(node->world, 40)) {
        refuse(node, entry);
    } else {
        entry->is_ready = entry->was_ready = true;
        hint(node, entry);
    }
}

static void on_verdict(void *arg, uint64_t shepherd, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    if (!is_mine(entry, shepherd))
        return;
    bool has_passed = entry->lease_ms > 0 && entry->lease_until_ms <= node->world->now_ms;
    if (waits(entry) && !entry->is_ready && entry->verdict != VERDICT_NOGO)
        return; // it was let go twice
    entry->is_ready = false;
    if (entry->verdict == VERDICT_NONE)
        entry->verdict = has_passed ? VERDICT_NOGO : VERDICT_GO;
    if (entry->verdict == VERDICT_NOGO) {
        entry->shepherd = 0;
        hint(node, entry);
        return;
    }
    entry->is_gated = true;
    world_later(
        node->world, world_between(node->world, 0, 2), on_started_record, node, shepherd, entry, NULL);
}

static void on_adopted(void *arg, uint64_t shepherd, void *object)
{
    struct node *node = arg;
    struct spooled *entry = object;
    if (!is_mine(entry, shepherd))
        return;
    on_lease(node, shepherd, entry);
    if (entry->is_running || entry->has_exit)
        return; // on_command_end finds this shepherd alive
    write_exit(node, entry);
}

/* --- effects of the agent's core --- */

static void send_message(void *arg, const struct record_type *type, const void *message)
{
    struct node *node = arg;
    node->send(node->arg, type, message);
}

static void observe(
    void *arg, const struct spool_id *id, bool is_reported, struct attempt_observation *observed)
{
    const struct spooled *entry = node_find(arg, id);
    *observed = (struct attempt_observation){ 0 };
    if (entry == NULL)
        return;
    observed->has_spec = entry->has_spec;
    observed->verdict = entry->verdict;
    observed->is_alive = observed->is_watched = entry->shepherd != 0;
    observed->is_ready = entry->is_ready;
    observed->has_exit = entry->has_exit;
    if (entry->has_started)
        observed->started = (struct launch_started){
            .id.job = id->job, .id.attempt = id->attempt, .id.rank = id->rank, .token = entry->token
        };
    if (entry->has_exit && !is_reported)
        take_exit(entry, &observed->exit);
}

static void recall(void *arg, const struct spool_id *id, struct known_attempt *known)
{
    const struct spooled *entry = node_find(arg, id);
    if (entry == NULL)
        return;
    known->terms = entry->has_terms;
    node_recall_park(arg, entry, known);
}

static void on_user_found(void *arg, uint64_t life, void *object)
{
    struct node *node = arg;
    struct spool_id *id = object;
    if (node->core != NULL && node->life == life && node_is_frozen(node)) {
        world_later(
            node->world, node->frozen_until_ms - node->world->now_ms, on_user_found, node, life, id, free);
        return;
    }
    if (node->core != NULL && node->life == life)
        agent_core_reconcile(node->core, node->world->now_ms, id);
    free(id);
}

/* 0, or why not now. */
static int find_user(struct node *node, const struct spool_id *id, struct error *err)
{
    if (world_one_in(node->world, 50))
        return error_set(err, -EAGAIN, "the node cannot now");
    if (!world_one_in(node->world, 10))
        return 0;
    struct spool_id *asked = xcalloc(1, sizeof(*asked));
    *asked = *id;
    world_later(node->world, world_between(node->world, 0, LOOKUP_MAX_MS), on_user_found, node, node->life,
        asked, free);
    return error_set(err, -EINPROGRESS, "its user is being looked up");
}

static void note_undone(const struct node *node, struct spooled *entry)
{
    for (size_t i = 0; i < node->n_undone; i++)
        if (entry->token == node->undone[i])
            entry->is_disowned = entry->is_undone = true;
}

void node_undo(struct node *node, const uint64_t *tokens, size_t count)
{
    node->undone = tokens;
    node->n_undone = count;
    for (struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        note_undone(node, entry);
}

/* Now and then it starts nothing for some seconds, or no job of one user. */
static int meet_trouble(struct node *node, const struct message_launch *launch, struct error *err)
{
    static const enum start_cause causes[] = { START_USER, START_LOOKUP, START_CGROUP, START_SPOOL };
    int64_t now_ms = node->world->now_ms;
    if (now_ms >= node->trouble_until_ms && world_one_in(node->world, 60)) {
        node->trouble = causes[world_between(node->world, 0, 3)];
        node->trouble_uid = launch->uid;
        node->trouble_until_ms = now_ms + world_between(node->world, 100, 6000);
        node->disturbed(node->arg, node->trouble_until_ms - now_ms);
    }
    bool is_of_user = start_row(node->trouble)->scope == START_OF_USER;
    if (now_ms >= node->trouble_until_ms || (is_of_user && launch->uid != node->trouble_uid))
        return 0;
    node->n_troubles++;
    return error_mark(err, node->trouble, error_set(err, -EIO, "%s", start_row(node->trouble)->meaning));
}

static int stage(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    struct spool_id id = launch->id;
    int r = find_user(node, &id, err);
    if (r == 0)
        r = meet_trouble(node, launch, err);
    if (r < 0)
        return r;
    struct spooled *entry = node_find(node, &id);
    if (entry == NULL)
        entry = add(node, &id, launch->token);
    note_undone(node, entry);
    const struct gpu_grant *grants = launch->gpus.items;
    entry->n_gpus = launch->gpus.count;
    entry->n_parts = (uint32_t)launch->peers.count;
    entry->array = launch->array_job;
    entry->is_disowned |= launch->order <= node->disowned_order;
    for (size_t i = 0; i < launch->gpus.count; i++) {
        entry->gpus[i] = grants[i].index;
        entry->is_sharing = grants[i].slot > 0;
    }
    if (!entry->has_spec) {
        entry->is_long = node->has_long_jobs && launch->uid == NODE_LONG_UID;
        entry->lease_ms = launch->lease_ms;
        entry->lease_until_ms = launch->lease_until_ms;
        node_begin_early(entry, launch->is_early != 0);
    }
    entry->has_spec = true;
    return 0;
}

static int prepare(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    int r = stage(arg, launch, err);
    if (r < 0)
        return r;
    node_find(node, &launch->id)->is_prepared = true;
    node->n_prepared++;
    return 0;
}

/* Now and then the user has other groups than before. */
static int take(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, &launch->id);
    const struct gpu_grant *grants = launch->gpus.items;
    int r = find_user(node, &launch->id, err);
    if (r < 0)
        return r;
    bool is_same = entry != NULL && entry->token == launch->token && entry->n_gpus == launch->gpus.count &&
                   entry->lease_ms == launch->lease_ms && launch->is_early == 0 &&
                   !world_one_in(node->world, 10);
    for (size_t i = 0; is_same && i < entry->n_gpus; i++)
        is_same = entry->gpus[i] == grants[i].index && entry->is_sharing == (grants[i].slot > 0);
    if (!is_same)
        return error_set(err, -ESTALE, "it was prepared otherwise");
    entry->is_taken = true;
    entry->is_disowned |= launch->order <= node->disowned_order;
    node->n_taken++;
    return 0;
}

static int admit(void *arg, const struct spool_id *id, struct error *err)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, id);
    if (world_one_in(node->world, 10) || must_wait(node, entry))
        return error_set(err, -EINPROGRESS, "its GPUs are being looked at");
    if (entry != NULL)
        entry->let_in_life = node->life;
    return 0;
}

static int start(void *arg, const struct spool_id *id, enum shepherd_task task, struct error *err)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, id);
    if (entry == NULL || world_one_in(node->world, 50))
        return error_set(err, -EAGAIN, "fork: not now");
    if (task == SHEPHERD_RUNS && (world_one_in(node->world, 10) || must_wait(node, entry)))
        return error_set(err, -EINPROGRESS, "its GPUs are being looked at");
    if (entry->shepherd != 0)
        return 0;
    if (task == SHEPHERD_RUNS)
        entry->let_in_life = node->life;
    entry->shepherd_life = node->life;
    entry->shepherd = ++node->last_shepherd;
    world_later(node->world, world_between(node->world, 0, 5),
        task == SHEPHERD_ADOPTS ? on_adopted : on_prepared, node, entry->shepherd, entry, NULL);
    return 0;
}

static bool watch(void *arg, const struct spool_id *id, const struct attempt_observation *observed)
{
    return true;
}

static int settle_nogo(void *arg, const struct spool_id *id, uint64_t token, struct error *err)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, id);
    if (entry == NULL)
        entry = add(node, id, token);
    if (entry->verdict == VERDICT_NONE)
        entry->verdict = VERDICT_NOGO;
    return (int)entry->verdict;
}

static int command(void *arg, const struct spool_id *id, uint32_t signal, int64_t grace_ms)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, id);
    if (entry == NULL || entry->shepherd == 0)
        return -EAGAIN;
    if (grace_ms < 0)
        return 0; // only a signal
    if (!entry->is_running)
        return entry->is_gated ? -EAGAIN : 0;
    entry->is_stopped = true;
    world_later(node->world, world_between(node->world, 0, 20), on_command_end, node, 0, entry, NULL);
    return 0;
}

static int release(void *arg, const struct spool_id *id, uint32_t port)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, id);
    if (entry == NULL || entry->shepherd == 0)
        return -EAGAIN;
    if (entry->is_ready)
        world_later(
            node->world, world_between(node->world, 0, 3), on_verdict, node, entry->shepherd, entry, NULL);
    return 0;
}

static int update(void *arg, const struct spool_id *id, const struct spool_terms *terms, struct error *err)
{
    struct spooled *entry = node_find(arg, id);
    struct node *node = arg;
    if (entry == NULL)
        return 0;
    entry->has_terms = true;
    entry->is_suspended = terms->is_suspended != 0;
    if (entry->is_overdue && !entry->is_suspended)
        world_later(node->world, world_between(node->world, 0, 20), on_command_end, node, 0, entry, NULL);
    return 0;
}

void node_grant(struct node *node, struct spooled *entry)
{
    entry->is_early = false;
    entry->waited_ms = entry->waits_from_ms > 0 ? node->world->now_ms - entry->waits_from_ms : 0;
    if (!entry->is_running)
        return;
    check_gpus(node, entry);
    if (entry->is_waiting)
        world_later(node->world, world_between(node->world, 0, 20), on_command_end, node, 0, entry, NULL);
}

/* No entry of a living agent is removed here. */
static int restore(void *arg, const struct spool_id *id)
{
    return -ENOENT;
}

static void kill_left_overs(void *arg, const struct spool_id *id)
{
}

static int remove_attempt(void *arg, const struct spool_id *id)
{
    struct node *node = arg;
    struct spooled *entry = node_find(node, id);
    if (entry == NULL)
        return 0;
    if (entry->is_running)
        break_rule(node, "its spool is removed while it runs", id->job);
    entry->is_removed = true;
    return 0;
}

static int save_epoch(void *arg, uint64_t epoch, struct error *err)
{
    struct node *node = arg;
    if (epoch < node->epoch)
        break_rule(node, "an older epoch is obeyed", 0);
    node->epoch = epoch;
    return 0;
}

static void save_seen(void *arg, const struct persist_seen *seen)
{
    ((struct node *)arg)->seen = *seen;
}

static void open_log(void *arg, const struct message_open_log *request)
{
}

static void on_timer(void *arg, uint64_t number, void *object)
{
    struct node *node = arg;
    if (node->core == NULL || node->last_timer != number)
        return;
    if (node_is_frozen(node))
        world_later(
            node->world, node->frozen_until_ms - node->world->now_ms, on_timer, node, number, NULL, NULL);
    else
        agent_core_timer(node->core, node->world->now_ms);
}

static int renew(void *arg, const struct spool_id *id, int64_t until_ms)
{
    struct spooled *entry = node_find(arg, id);
    if (entry != NULL && until_ms > entry->lease_until_ms)
        entry->lease_until_ms = until_ms;
    return entry != NULL ? 0 : -ENOENT;
}

static void hang_up(void *arg)
{
    struct node *node = arg;
    node->hang_up(node->arg);
}

static void arm(void *arg, int64_t boot_ms)
{
    struct node *node = arg;
    int64_t delay = boot_ms - node->world->now_ms;
    world_later(node->world, delay > 0 ? delay : 0, on_timer, node, ++node->last_timer, NULL, NULL);
}

void node_start_agent(struct node *node)
{
    struct agent_effects effects = {
        .arg = node,
        .send = send_message,
        .observe = observe,
        .recall = recall,
        .stage = stage,
        .start = start,
        .watch = watch,
        .settle_nogo = settle_nogo,
        .command = command,
        .kill = kill_left_overs,
        .update = update,
        .release = release,
        .remove = remove_attempt,
        .save_epoch = save_epoch,
        .save_seen = save_seen,
        .open_log = open_log,
        .arm = arm,
        .hang_up = hang_up,
        .renew = renew,
        .restore = restore,
        .prepare = prepare,
        .take = take,
        .admit = admit,
        .park = node_park,
    };
    node->life++;
    node->frozen_until_ms = 0;
    node->core = agent_core_new(&effects, node->epoch);
    agent_core_note_seen(node->core, &node->seen);
    for (const struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        if (!entry->is_removed) {
            agent_core_load(node->core, node->world->now_ms, &entry->id, entry->token);
            agent_core_note_lease(node->core, &entry->id, entry->lease_ms, entry->lease_until_ms);
            if (entry->is_prepared && entry->verdict == VERDICT_NONE)
                agent_core_note_prepared(node->core, node->world->now_ms, &entry->id);
        }
}

void node_kill_agent(struct node *node)
{
    agent_core_free(node->core);
    node->core = NULL;
    /* What waits for its turn sees that nobody is left who could call it; but not before what it was told. */
    for (struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        if (entry->is_prepared && entry->is_ready && !entry->is_removed && world_one_in(node->world, 2)) {
            entry->shepherd = 0;
            entry->is_ready = false;
        }
}

void node_fail_rank(struct node *node, struct spooled *entry)
{
    if (entry->is_removed || !entry->is_running || entry->is_stopped)
        return;
    entry->exit_code = 1;
    entry->is_peers_fault = true;
    on_command_end(node, 0, entry);
}

void node_disown(struct node *node, uint64_t last_order)
{
    node->disowned_order = last_order;
    for (struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        entry->is_disowned |= !entry->is_removed;
}

bool node_wipe(struct node *node)
{
    for (const struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        if (!entry->is_removed && (entry->is_running || entry->is_gated))
            return false;
    for (struct spooled *entry = node->spool; entry != NULL; entry = entry->next) {
        entry->is_untold |= entry->has_exit && !entry->is_removed;
        entry->is_removed = true;
        entry->shepherd = 0; // one that is alive finds that it cannot settle a verdict
    }
    node->wipes++;
    return true;
}

void node_power_off(struct node *node)
{
    node_kill_agent(node);
    node->is_off = true;
    for (struct spooled *entry = node->spool; entry != NULL; entry = entry->next) {
        if (!entry->is_removed && entry->is_running)
            tell_gone(node, entry);
        entry->is_untold |= !entry->is_removed && entry->has_exit;
        entry->is_removed = true;
        entry->is_running = entry->is_gated = false;
        entry->shepherd = 0;
    }
}

void node_power_on(struct node *node)
{
    node->is_off = false;
    node->boot++;
}

bool node_is_leaderless(const struct node *node)
{
    for (const struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        if (!entry->is_removed && entry->is_running && entry->shepherd == 0)
            return true;
    return false;
}

bool node_kill_shepherd(struct node *node)
{
    if (node_is_frozen(node))
        return false; // nobody would adopt, and a lease would have no keeper (docs/node-loss.md)
    for (struct spooled *entry = node->spool; entry != NULL; entry = entry->next) {
        if (entry->is_removed || entry->shepherd == 0 || world_one_in(node->world, 2))
            continue;
        entry->shepherd = 0;
        entry->is_ready = false;
        entry->is_gated = false; // its init sees the gate close and leaves without executing anything
        hint(node, entry);
        return true;
    }
    return false;
}

void node_ail(struct node *node)
{
    static const uint32_t numbers[] = { 13, 31, 94, 94, 48, 79 };
    struct condition *condition = &node->conditions[world_random(node->world) % NODE_GPUS];
    switch (world_random(node->world) % 3) {
    case 0: condition->is_lost = !condition->is_lost; break;
    case 1: condition->is_unclean = !condition->is_unclean; break;
    default:
        condition->xid = (struct gpu_xid){ numbers[world_random(node->world) % 6], node->world->now_ms };
        break;
    }
}

void node_heal(struct node *node)
{
    for (uint32_t i = 0; i < NODE_GPUS; i++)
        node->conditions[i].is_lost = node->conditions[i].is_unclean = false;
}

/* The caller frees the names. */
static void describe(struct node *node, struct gpu_state gpus[NODE_GPUS])
{
    static char model[] = NODE_MODEL; // a parked job may return on another one of its model
    for (uint32_t i = 0; i < NODE_GPUS; i++) {
        struct condition *condition = &node->conditions[i];
        char uuid[16];
        node_gpu_uuid(node, i, uuid);
        gpus[i] = (struct gpu_state){
            .index = i,
            .uuid = xstrdup(uuid),
            .model = model,
            .memory_bytes = NODE_GPU_MEMORY,
            .is_lost = condition->is_lost,
            .is_unclean = condition->is_unclean,
            .xids = { &condition->xid, condition->xid.number != 0 },
        };
    }
}

void node_usages(struct node *node)
{
    struct job_usage usage[USAGES_MAX];
    struct attempt_usage usages[USAGES_MAX];
    struct gpu_state gpus[NODE_GPUS];
    size_t count = 0;
    for (const struct spooled *entry = node->spool; entry != NULL && count < USAGES_MAX;
         entry = entry->next) {
        if (!entry->is_running || entry->n_gpus == 0)
            continue;
        bool is_idle = !world_one_in(node->world, 4);
        usage[count] = (struct job_usage){ .sampled_ms = 1 };
        usage[count].idle_ms = is_idle ? (uint64_t)world_between(node->world, 0, IDLE_MS) : 0;
        usages[count] = (struct attempt_usage){
            .id.job = entry->id.job,
            .id.attempt = entry->id.attempt,
            .token = entry->token,
            .id.rank = entry->id.rank,
            .usage = { &usage[count], 1 },
        };
        count++;
    }
    describe(node, gpus);
    struct message_gpus message = { .gpus = { gpus, NODE_GPUS }, .usages = { usages, count } };
    node->send(node->arg, &message_gpus_record, &message);
    for (uint32_t i = 0; i < NODE_GPUS; i++)
        free(gpus[i].uuid);
}

void node_sample(struct node *node)
{
    struct gpu_state gpus[NODE_GPUS];
    if (node->core == NULL || node_is_frozen(node))
        return;
    describe(node, gpus);
    struct message_gpus message = { .gpus = { gpus, NODE_GPUS } };
    agent_core_gpus(node->core, &message);
    for (uint32_t i = 0; i < NODE_GPUS; i++)
        free(gpus[i].uuid);
}

void node_hello(struct node *node)
{
    struct gpu_state gpus[NODE_GPUS];
    describe(node, gpus);
    char boot[64];
    (void)snprintf(boot, sizeof(boot), "boot-%" PRIu64 BOOT_SPOOL_MARK "%" PRIu64, node->boot, node->wipes);
    char parks[] = "park", starts_early[] = "early", driver[] = NODE_DRIVER;
    struct node_feature features[] = { { .name = parks, .is_on = 1 }, { .name = starts_early, .is_on = 1 } };
    struct message_hello hello = { .protocol = LINK_PROTOCOL,
        .node = node->name,
        .boot_id = boot,
        .cpus = node->cpus,
        .features = { features, 2 },
        .driver = driver,
        .parks_ranks = 1,
        .takes_back = 1 };
    hello.gpus = (struct record_list){ gpus, NODE_GPUS };
    agent_core_link_up(node->core, node->world->now_ms, &hello);
    for (uint32_t i = 0; i < NODE_GPUS; i++)
        free(gpus[i].uuid);
}

size_t node_left_over(const struct node *node)
{
    size_t left = 0;
    for (const struct spooled *entry = node->spool; entry != NULL; entry = entry->next)
        left += !entry->is_removed;
    return left;
}
