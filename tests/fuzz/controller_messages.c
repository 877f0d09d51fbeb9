/* SPDX-License-Identifier: MIT */
/*
 * An agent's core and a controller that says anything in any order, on a node whose steps may fail: nothing
 * is sent before HELLO, an attempt is started only after it was staged, and an order is refused or carried
 * out. The input is a sequence of steps.
 */
#include <errno.h>
#include <string.h>

#include "agent/core/agent_core.h"
#include "base/memory.h"
#include "fuzz.h"
#include "messages.h"

#define STEPS_MAX    400
#define ATTEMPTS_MAX 64

struct entry {
    struct spool_id id;
    struct attempt_observation observed;
};

struct node {
    struct input input;
    struct agent_core *core;
    struct entry entries[ATTEMPTS_MAX];
    size_t count;
    bool is_up;
    int64_t now_ms;
};

static bool is_same(const struct spool_id *a, const struct spool_id *b)
{
    return a->job == b->job && a->attempt == b->attempt && a->rank == b->rank && a->step == b->step;
}

static struct entry *find(struct node *node, const struct spool_id *id)
{
    for (size_t i = 0; i < node->count; i++)
        if (is_same(&node->entries[i].id, id))
            return &node->entries[i];
    return NULL;
}

static struct entry *make(struct node *node, const struct spool_id *id)
{
    struct entry *entry = find(node, id);
    if (entry == NULL && node->count < ATTEMPTS_MAX) {
        entry = &node->entries[node->count++];
        *entry = (struct entry){ .id = *id };
    }
    return entry;
}

/* 0 or the failure that the input asks for. */
static int outcome(struct node *node, struct error *err)
{
    static const int codes[] = { -ENOSPC, -EAGAIN, -EINPROGRESS, -ENOENT };
    uint8_t choice = input_byte(&node->input);
    return choice < 200 ? 0 : error_set(err, codes[choice % 4], "the node cannot");
}

static void do_send(void *arg, const struct record_type *type, const void *message)
{
    struct node *node = arg;
    struct error err;
    if (!node->is_up || record_check(type, message, &err) < 0)
        abort();
}

static void do_observe(
    void *arg, const struct spool_id *id, bool is_reported, struct attempt_observation *observed)
{
    struct entry *entry = find(arg, id);
    *observed = entry != NULL ? entry->observed : (struct attempt_observation){ 0 };
}

static int stage(struct node *node, const struct spool_id *id, struct error *err)
{
    int r = outcome(node, err);
    if (r < 0)
        return r;
    struct entry *entry = make(node, id);
    if (entry == NULL)
        return error_set(err, -ENOSPC, "the spool is full");
    entry->observed.has_spec = true;
    return 0;
}

static int do_stage(void *arg, const struct message_launch *launch, struct error *err)
{
    return stage(arg, &launch->id, err);
}

static int do_take(void *arg, const struct message_launch *launch, struct error *err)
{
    return outcome(arg, err);
}

static int do_admit(void *arg, const struct spool_id *id, struct error *err)
{
    return outcome(arg, err);
}

static int do_start(void *arg, const struct spool_id *id, enum shepherd_task task, struct error *err)
{
    struct entry *entry = find(arg, id);
    int r = outcome(arg, err);
    if (r < 0)
        return r;
    if (entry == NULL || !entry->observed.has_spec)
        abort(); // what was never staged cannot be started
    if (entry->observed.is_alive && task != SHEPHERD_ADOPTS)
        abort(); // a second shepherd
    entry->observed.is_alive = entry->observed.is_watched = true;
    return 0;
}

static bool do_watch(void *arg, const struct spool_id *id, const struct attempt_observation *observed)
{
    return find(arg, id) != NULL;
}

static int do_settle(void *arg, const struct spool_id *id, uint64_t token, struct error *err)
{
    struct entry *entry = make(arg, id);
    if (entry == NULL)
        return error_set(err, -ENOSPC, "the spool is full");
    if (entry->observed.verdict == VERDICT_NONE)
        entry->observed.verdict = VERDICT_NOGO;
    return (int)entry->observed.verdict;
}

static int do_command(void *arg, const struct spool_id *id, uint32_t signal, int64_t grace_ms)
{
    struct error err;
    return outcome(arg, &err);
}

static void do_kill(void *arg, const struct spool_id *id)
{
    struct entry *entry = find(arg, id);
    if (entry != NULL)
        entry->observed.is_alive = false;
}

static int do_remove(void *arg, const struct spool_id *id)
{
    struct node *node = arg;
    struct entry *entry = find(node, id);
    if (entry != NULL && entry->observed.is_alive)
        return -EBUSY;
    if (entry != NULL)
        *entry = node->entries[--node->count];
    return 0;
}

static int do_save_epoch(void *arg, uint64_t epoch, struct error *err)
{
    return outcome(arg, err);
}

static int do_release(void *arg, const struct spool_id *id, uint32_t port)
{
    struct entry *entry = find(arg, id);
    return entry != NULL ? 0 : -ENOENT;
}

static int do_restore(void *arg, const struct spool_id *id)
{
    return -ENOENT;
}

static int do_update(void *arg, const struct spool_id *id, const struct spool_terms *terms, struct error *err)
{
    return outcome(arg, err);
}

static int do_renew(void *arg, const struct spool_id *id, int64_t until_ms)
{
    return 0;
}

static void no_log(void *arg, const struct message_open_log *request)
{
}
static void no_terminal(void *arg, const struct message_open_terminal *request)
{
}
static void no_step(void *arg, const struct message_open_step *request)
{
}
static void no_return(void *arg, const struct message_rejoin_step *request)
{
}
static void no_port(void *arg, const struct message_open_port *request)
{
}
static void no_inspection(void *arg, const struct message_inspect *request)
{
}
static void no_notice(void *arg, const struct message_notify *request)
{
}
static void no_parking(void *arg, const struct message_park *order)
{
}
static void no_gpus(void *arg, const struct strings *uuids)
{
}
static void no_seen(void *arg, const struct persist_seen *seen)
{
}
static void no_timer(void *arg, int64_t boot_ms)
{
}

static void hang_up(void *arg)
{
}

static struct agent_core *new_core(struct node *node)
{
    const struct agent_effects effects = {
        .arg = node,
        .send = do_send,
        .observe = do_observe,
        .stage = do_stage,
        .start = do_start,
        .watch = do_watch,
        .settle_nogo = do_settle,
        .command = do_command,
        .kill = do_kill,
        .remove = do_remove,
        .save_epoch = do_save_epoch,
        .open_log = no_log,
        .open_terminal = no_terminal,
        .open_step = no_step,
        .rejoin_step = no_return,
        .open_port = no_port,
        .arm = no_timer,
        .inspect = no_inspection,
        .update = do_update,
        .notify = no_notice,
        .release = do_release,
        .release_gpus = no_gpus,
        .renew = do_renew,
        .hang_up = hang_up,
        .restore = do_restore,
        .park = no_parking,
        .save_seen = no_seen,
        .prepare = do_stage,
        .take = do_take,
        .admit = do_admit,
    };
    return agent_core_new(&effects, 0);
}

static void connect(struct node *node, bool is_up)
{
    struct message_hello facts = { .protocol = LINK_PROTOCOL };
    if (node->is_up)
        agent_core_link_down(node->core);
    node->is_up = is_up;
    if (is_up)
        agent_core_link_up(node->core, node->now_ms, &facts);
}

static void obey(struct node *node)
{
    const struct record_type *type = NULL;
    struct error err;
    void *message = message_take(&node->input, &type);
    if (message == NULL)
        return;
    if (message_is_about_attempt(type->id)) { // few, so that orders meet
        struct about *about = message;
        about->id = (struct spool_id){ .job = 1 + about->id.job % 4, .attempt = 1 + about->id.attempt % 2 };
        about->token = about->token % 2 + 1;
    }
    if (agent_core_message(node->core, node->now_ms, type->id, message, &err) < 0)
        connect(node, false);
    message_free(type, message);
}

/* Its shepherd goes on by one step. */
static void advance(struct node *node, uint8_t choice)
{
    if (node->count == 0)
        return;
    struct entry *entry = &node->entries[choice % node->count];
    struct attempt_observation *observed = &entry->observed;
    if (observed->is_alive && observed->verdict == VERDICT_NONE) {
        observed->verdict = choice & 64 ? VERDICT_NOGO : VERDICT_GO;
        observed->started.id = entry->id;
    } else if (observed->is_alive && choice & 128 && !observed->has_exit) {
        observed->has_exit = true;
        observed->exit.id = entry->id;
        observed->exit.end = END_EXIT;
    } else {
        observed->is_alive = observed->is_watched = false;
    }
    const struct spool_id id = entry->id;
    agent_core_reconcile(node->core, node->now_ms, &id);
}

static void take_step(struct node *node)
{
    uint8_t op = input_byte(&node->input);
    switch (op & 7) {
    case 0: connect(node, op & 8); break;
    case 1:
        node->now_ms += input_number(&node->input);
        agent_core_timer(node->core, node->now_ms);
        break;
    case 2:
    case 3: advance(node, input_byte(&node->input)); break;
    default:
        if (node->is_up)
            obey(node);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct node *node = xcalloc(1, sizeof(*node));
    node->input = (struct input){ bytes, length, 0 };
    node->core = new_core(node);
    for (size_t i = 0; i < STEPS_MAX && node->input.at < length; i++)
        take_step(node);
    agent_core_free(node->core);
    free(node);
    return 0;
}
