/* SPDX-License-Identifier: MIT */
/*
 * The inputs of the agent's core. One entry per attempt, sorted by id; an input finds its entry, notes what
 * the controller wants, and calls agent_actions_run().
 *
 *      DOWN ──link up, HELLO──> GREETED ──WELCOME──> OBEYING
 *
 * Orders are accepted and reports sent only in OBEYING; each report is sent once per such period, until
 * RELEASE_ATTEMPT. Actions that need no controller (finishing for a dead shepherd) are performed in every
 * state.
 */
#include "agent/core/agent_core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/actions.h"
#include "agent/core/heartbeat.h"
#include "base/log.h"
#include "base/memory.h"

#define ID_OF(m) ((struct spool_id){ (m)->id.job, (m)->id.attempt, (m)->id.step, (m)->id.rank })

static const struct spool_id *id_at(const void *list, size_t index)
{
    struct attempt *const *attempts = list;
    return &attempts[index]->id;
}

/* Index of the first attempt that is not before `id`. */
static size_t position(const struct agent_core *core, const struct spool_id *id)
{
    return spool_id_position(core->attempts, core->count, id_at, id);
}

static struct attempt *find(const struct agent_core *core, const struct spool_id *id)
{
    size_t i = position(core, id);
    return i < core->count && spool_id_compare(&core->attempts[i]->id, id) == 0 ? core->attempts[i] : NULL;
}

static struct attempt *add(struct agent_core *core, const struct spool_id *id, uint64_t token)
{
    if (core->count == core->capacity) {
        core->capacity = core->capacity == 0 ? 64 : core->capacity * 2;
        core->attempts = xreallocarray(core->attempts, core->capacity, sizeof(struct attempt *));
    }
    size_t i = position(core, id);
    memmove(&core->attempts[i + 1], &core->attempts[i], (core->count - i) * sizeof(struct attempt *));
    core->attempts[i] = xcalloc(1, sizeof(struct attempt));
    core->attempts[i]->id = *id;
    core->attempts[i]->token = token;
    core->count++;
    return core->attempts[i];
}

static void attempt_free(struct attempt *attempt)
{
    agent_core_forget_launch(attempt);
    free(attempt->why_returned);
    free(attempt);
}

void agent_core_drop(struct agent_core *core, struct attempt *attempt)
{
    size_t i = position(core, &attempt->id);
    core->count--;
    memmove(&core->attempts[i], &core->attempts[i + 1], (core->count - i) * sizeof(struct attempt *));
    attempt_free(attempt);
}

void agent_core_arm_by(struct agent_core *core, int64_t boot_ms)
{
    if (core->armed_at != 0 && core->armed_at <= boot_ms)
        return;
    core->armed_at = boot_ms;
    core->effects.arm(core->effects.arg, boot_ms);
}

void agent_core_reconcile_by(struct agent_core *core, struct attempt *attempt, int64_t boot_ms)
{
    if (attempt->look_at == 0 || boot_ms < attempt->look_at)
        attempt->look_at = boot_ms;
    agent_core_arm_by(core, boot_ms);
}

static void raise_want(struct attempt *attempt, enum attempt_want want)
{
    if (attempt->want < want)
        attempt->want = want;
}

/* An order with another token belongs to another history: that of a store restored from an older copy, which
 * has assigned the number again. The existing attempt stays until an order with its own token ends it. */
static bool is_meant(const struct attempt *attempt, uint64_t token)
{
    return attempt->token == 0 || attempt->token == token;
}

static void note_event(struct agent_core *core, uint64_t event)
{
    if (event <= core->seen.event)
        return;
    core->seen.event = event;
    core->effects.save_seen(core->effects.arg, &core->seen);
}

static int on_welcome(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_welcome *welcome = message;
    if (welcome->sent_ms != 0 && welcome->sent_ms != core->greeted_ms)
        return 0; // a late answer to an earlier HELLO
    if (welcome->epoch < core->epoch)
        return error_set(err, -ESTALE,
            "the controller speaks for epoch %" PRIu64 ", but epoch %" PRIu64 " was already accepted",
            welcome->epoch, core->epoch);
    if (welcome->epoch > core->epoch) {
        int r = core->effects.save_epoch(core->effects.arg, welcome->epoch, err);
        if (r < 0)
            return r;
        core->epoch = welcome->epoch;
    }
    core->seen = (struct persist_seen){ welcome->epoch, welcome->began_ms, welcome->event };
    core->effects.save_seen(core->effects.arg, &core->seen);
    core->link = LINK_OBEYING;
    core->last_order = welcome->last_order;
    heartbeat_begin(core, boot_ms, welcome);
    for (size_t i = core->count; i > 0; i--) // backwards, because an attempt may be removed from the list
        agent_actions_run(core, core->attempts[i - 1], boot_ms, NULL);
    return 0;
}

static void send_returned(struct agent_core *core, const struct spool_id *id, uint64_t token, const char *why)
{
    _cleanup_free_ char *text = xstrdup(why);
    struct message_returned returned = { *id, token, text };
    core->effects.send(core->effects.arg, &message_returned_record, &returned);
}

/* The attempt of this order, added if unknown; NULL and RETURNED if it cannot exist here. Further steps of an
 * attempt, and the cgroups of notifications (attempt 0), belong to the agent: an order must not reach them
 * without their token. */
static struct attempt *find_or_add(struct agent_core *core, const struct spool_id *id, uint64_t token)
{
    struct attempt *attempt = find(core, id);
    if (attempt == NULL && (id->attempt == 0 || id->step != 0)) {
        log_error("from the controller: an order for step %u of attempt %u of job %" PRIu64, id->step,
            id->attempt, id->job);
        return NULL;
    }
    if (attempt == NULL && core->count < NODE_ATTEMPTS_MAX)
        return add(core, id, token);
    if (attempt == NULL)
        send_returned(core, id, token, "the node has reached its limit of attempts");
    else if (attempt_is_speculative(attempt->want))
        attempt->token = token; // of the first order for this attempt
    else if (!is_meant(attempt, token))
        send_returned(core, id, token, "the node still has another attempt with this number");
    return attempt != NULL && is_meant(attempt, token) ? attempt : NULL;
}

/* A late copy may be for an attempt that has ended and was removed. */
static bool is_late_copy(struct agent_core *core, const struct message_launch *launch)
{
    if (launch->order != 0 && launch->order <= core->last_order)
        return true;
    core->last_order = launch->order != 0 ? launch->order : core->last_order;
    return false;
}

static int on_launch(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_launch *launch = message;
    struct spool_id id = ID_OF(launch);
    if (is_late_copy(core, launch))
        return 0;
    if (launch->token == 0)
        return error_set(err, -EPROTO, "LAUNCH of job %" PRIu64 " contains no token", id.job);
    const struct attempt *known = find(core, &id);
    if (known == NULL || known->want != WANT_PREPARED)
        agent_core_remove_now(core, boot_ms);
    struct attempt *attempt = find_or_add(core, &id, launch->token);
    if (attempt == NULL)
        return 0;
    note_event(core, launch->event);
    attempt->token = launch->token;
    attempt->is_element = launch->array_job != 0;
    heartbeat_lease(core, attempt, launch->lease_ms);
    if (attempt_is_speculative(attempt->want))
        attempt->is_launched = true;
    else
        raise_want(attempt, WANT_RUN);
    agent_actions_run(core, attempt, boot_ms, launch);
    return 0;
}

static size_t count_speculative(const struct agent_core *core)
{
    size_t count = 0;
    for (size_t i = 0; i < core->count; i++)
        count += attempt_is_speculative(core->attempts[i]->want);
    return count;
}

/* Has no answer: a job that cannot be prepared is staged when its LAUNCH arrives. */
static int on_prepare(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_launch *launch = message;
    struct spool_id id = ID_OF(launch);
    bool is_plain = id.attempt != 0 && id.step == 0 && launch->peers.count == 0 && launch->token != 0;
    if (is_late_copy(core, launch) || !is_plain || find(core, &id) != NULL ||
        core->count >= NODE_ATTEMPTS_MAX || count_speculative(core) >= AGENT_PREPARED_MAX)
        return 0;
    struct attempt *attempt = add(core, &id, launch->token);
    attempt->want = WANT_PREPARED;
    heartbeat_lease(core, attempt, launch->lease_ms);
    agent_actions_run(core, attempt, boot_ms, launch);
    return 0;
}

/* For a rank that has reported READY; ignored for any other. */
static int on_go(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_go *go = message;
    struct spool_id id = ID_OF(go);
    struct attempt *attempt = find(core, &id);
    if (attempt == NULL || !is_meant(attempt, go->token) || attempt_is_speculative(attempt->want))
        return 0;
    attempt->port = go->port;
    raise_want(attempt, WANT_GO);
    agent_actions_run(core, attempt, boot_ms, NULL);
    return 0;
}

/* An attempt that has ended or is being stopped is not changed. */
static struct attempt *find_running(const struct agent_core *core, const struct spool_id *id, uint64_t token)
{
    struct attempt *attempt = find(core, id);
    if (attempt == NULL || !is_meant(attempt, token) || attempt->want > WANT_GO)
        return NULL;
    return !attempt_is_speculative(attempt->want) || attempt->is_launched ? attempt : NULL;
}

/* A stop of an unknown attempt settles its verdict too, so that a late LAUNCH cannot run. */
static int on_stop(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_stop *stop = message;
    struct spool_id id = ID_OF(stop);
    if (stop->signal == STOP_UNSTARTED) {
        agent_actions_take_back(core, find_running(core, &id, stop->token), boot_ms);
        return 0;
    }
    struct attempt *attempt = find_or_add(core, &id, stop->token);
    if (attempt == NULL)
        return 0;
    attempt->token = stop->token;
    attempt->signal = stop->signal;
    attempt->grace_ms = stop->grace_ms;
    raise_want(attempt, WANT_STOP);
    agent_actions_run(core, attempt, boot_ms, NULL);
    return 0;
}

static int on_signal(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_signal *order = message;
    struct spool_id id = ID_OF(order);
    if (find_running(core, &id, order->token) == NULL)
        return 0;
    if (order->signal > 0xffffU || order->scope >= SIGNAL_SCOPES)
        return 0; // of a newer controller
    uint32_t signal = SIGNAL_WITH_SCOPE(order->signal, order->scope);
    int r = core->effects.command(core->effects.arg, &id, signal, -1);
    if (r < 0)
        log_job(LOG_WARNING, id.job, "signal %u could not be sent: %s", order->signal, strerror(-r));
    return 0;
}

static int on_update(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_update *order = message;
    struct spool_id id = ID_OF(order);
    struct attempt *attempt = find_running(core, &id, order->token);
    if (attempt == NULL || order->number < attempt->terms)
        return 0;
    attempt->terms = order->number;
    struct error why = { 0 };
    struct spool_terms terms = {
        .magic = SPOOL_TERMS_MAGIC,
        .is_suspended = order->is_suspended,
        .time_limit_ms = order->time_limit_ms,
    };
    if (attempt->launch != NULL) {
        attempt->terms_kept = xreallocarray(attempt->terms_kept, 1, sizeof(terms));
        *attempt->terms_kept = terms;
        return 0;
    }
    if (core->effects.update(core->effects.arg, &id, &terms, &why) < 0)
        log_job(LOG_ERROR, id.job, "%s", why.message);
    return 0;
}

/* Late copies are detected by their number: the effect remembers the last one. */
static int on_park(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_park *order = message;
    struct spool_id id = ID_OF(order);
    const struct attempt *attempt = find_running(core, &id, order->token);
    if (attempt != NULL && attempt->launch == NULL && core->effects.park != NULL)
        core->effects.park(core->effects.arg, order);
    return 0;
}

static int on_release_attempt(
    struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_release_attempt *forget = message;
    struct spool_id id = ID_OF(forget);
    struct attempt *attempt = find(core, &id);
    note_event(core, forget->event);
    if (attempt == NULL || !is_meant(attempt, forget->token))
        return 0;
    if (attempt_is_speculative(attempt->want) && !attempt->is_launched)
        attempt->want = WANT_DROPPED;
    else
        raise_want(attempt, WANT_RELEASED);
    if (attempt->want == WANT_RELEASED && count_speculative(core) > 0)
        agent_core_remove_soon(core, attempt, boot_ms);
    else
        agent_actions_run(core, attempt, boot_ms, NULL);
    return 0;
}

static int on_open_log(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    core->effects.open_log(core->effects.arg, message);
    return 0;
}

static int on_inspect(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    core->effects.inspect(core->effects.arg, message);
    return 0;
}

static int on_release(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_release_gpus *release = message;
    core->effects.release_gpus(core->effects.arg, &release->uuids);
    return 0;
}

static int on_open_terminal(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    core->effects.open_terminal(core->effects.arg, message);
    return 0;
}

static int on_open_step(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    core->effects.open_step(core->effects.arg, message);
    return 0;
}

static int on_rejoin_step(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    core->effects.rejoin_step(core->effects.arg, message);
    return 0;
}

static int on_open_port(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    core->effects.open_port(core->effects.arg, message);
    return 0;
}

static int on_notify(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_notify *notify = message;
    bool has_time = notify->time_ms > 0 && notify->time_ms <= NOTIFY_TIME_MAX_MS;
    if (notify->defect == NULL && has_time) {
        core->effects.notify(core->effects.arg, message);
        return 0;
    }
    _cleanup_free_ char *text =
        notify->defect != NULL ? xstrdup(notify->defect)
                               : xasprintf("%" PRId64 " ms is not enough time to send it", notify->time_ms);
    agent_core_notified(core,
        &(struct message_notified){
            .notification = notify->notification, .target = notify->target, .error = EBADMSG, .text = text });
    return 0;
}

/* The controller refuses a link with this node, or with this version of mgpu. */
static int on_refused(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_refused *refused = message;
    (void)error_set(err, refused->error > 0 ? -refused->error : -EPROTO, "mgpud refused this node: %s",
        refused->text != NULL ? refused->text : "no reason given");
    if (refused->hint != NULL)
        (void)error_hint(err, "%s", refused->hint);
    return err->code;
}

static int on_heartbeat_ack(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err)
{
    const struct message_heartbeat *ack = message;
    heartbeat_acknowledged(core, boot_ms, ack->sent_ms);
    note_event(core, ack->event);
    return 0;
}

/* The controller's messages, and the link states in which each is allowed. */
static const struct {
    uint16_t id;
    enum agent_link_state link;
    int (*on)(struct agent_core *core, int64_t boot_ms, const void *message, struct error *err);
} inputs[] = {
    { MESSAGE_WELCOME, LINK_GREETED, on_welcome },
    { MESSAGE_LAUNCH, LINK_OBEYING, on_launch },
    { MESSAGE_PREPARE, LINK_OBEYING, on_prepare },
    { MESSAGE_GO, LINK_OBEYING, on_go },
    { MESSAGE_STOP, LINK_OBEYING, on_stop },
    { MESSAGE_RELEASE_ATTEMPT, LINK_OBEYING, on_release_attempt },
    { MESSAGE_OPEN_LOG, LINK_OBEYING, on_open_log },
    { MESSAGE_INSPECT, LINK_OBEYING, on_inspect },
    { MESSAGE_OPEN_TERMINAL, LINK_OBEYING, on_open_terminal },
    { MESSAGE_OPEN_STEP, LINK_OBEYING, on_open_step },
    { MESSAGE_REJOIN_STEP, LINK_OBEYING, on_rejoin_step },
    { MESSAGE_OPEN_PORT, LINK_OBEYING, on_open_port },
    { MESSAGE_SIGNAL, LINK_OBEYING, on_signal },
    { MESSAGE_UPDATE, LINK_OBEYING, on_update },
    { MESSAGE_PARK, LINK_OBEYING, on_park },
    { MESSAGE_NOTIFY, LINK_OBEYING, on_notify },
    { MESSAGE_RELEASE_GPUS, LINK_OBEYING, on_release },
    { MESSAGE_REFUSED, LINK_DOWN, on_refused },
    { MESSAGE_REFUSED, LINK_GREETED, on_refused },
    { MESSAGE_HEARTBEAT_ACK, LINK_OBEYING, on_heartbeat_ack },
};

int agent_core_message(
    struct agent_core *core, int64_t boot_ms, uint16_t id, const void *message, struct error *err)
{
    core->last_contact_ms = boot_ms;
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
        if (inputs[i].id == id && inputs[i].link == core->link)
            return inputs[i].on(core, boot_ms, message, err);
    const struct record_type *type = message_type(id);
    return error_set(err, -EPROTO, "the controller may not send %s now", type == NULL ? "this" : type->name);
}

struct agent_core *agent_core_new(const struct agent_effects *effects, uint64_t epoch)
{
    struct agent_core *core = xcalloc(1, sizeof(*core));
    core->effects = *effects;
    core->epoch = epoch;
    return core;
}

void agent_core_free(struct agent_core *core)
{
    if (core == NULL)
        return;
    for (size_t i = 0; i < core->count; i++)
        attempt_free(core->attempts[i]);
    free(core->attempts);
    free(core);
}

void agent_core_note_seen(struct agent_core *core, const struct persist_seen *seen)
{
    if (core->epoch == 0 || seen->epoch < core->epoch)
        return; // from another controller, or from one too old to send it
    core->epoch = seen->epoch;
    core->seen = *seen;
}

void agent_core_load(struct agent_core *core, int64_t boot_ms, const struct spool_id *id, uint64_t token)
{
    if (find(core, id) == NULL)
        agent_actions_run(core, add(core, id, token), boot_ms, NULL);
}

void agent_core_note_lease(
    struct agent_core *core, const struct spool_id *id, int64_t lease_ms, int64_t until_ms)
{
    struct attempt *attempt = find(core, id);
    if (attempt == NULL)
        return;
    attempt->lease_ms = lease_ms;
    attempt->renewed_ms = until_ms;
}

void agent_core_note_prepared(struct agent_core *core, int64_t boot_ms, const struct spool_id *id)
{
    struct attempt *attempt = find(core, id);
    if (attempt == NULL || attempt->want != WANT_NOTHING)
        return;
    attempt->want = WANT_DROPPED;
    agent_actions_run(core, attempt, boot_ms, NULL);
}

static enum attempt_phase phase_of(const struct attempt_observation *observed)
{
    if (observed->has_exit)
        return PHASE_EXITED;
    if (observed->verdict == VERDICT_NOGO)
        return PHASE_RETURNED;
    return observed->verdict == VERDICT_GO || observed->is_emptied ? PHASE_RUNNING : PHASE_STAGED;
}

static struct known_attempt describe(
    const struct agent_core *core, const struct attempt *attempt, const struct attempt_observation *observed)
{
    struct known_attempt known = { .id = attempt->id, .token = attempt->token, .phase = phase_of(observed) };
    if (known.phase == PHASE_RUNNING && core->effects.recall != NULL)
        core->effects.recall(core->effects.arg, &attempt->id, &known);
    known.terms = attempt->terms > known.terms ? attempt->terms : known.terms;
    return known;
}

void agent_core_link_up(struct agent_core *core, int64_t boot_ms, const struct message_hello *node)
{
    struct message_hello hello = *node;
    _cleanup_free_ struct known_attempt *known = xcalloc(core->count + 1, sizeof(*known));
    size_t count = 0;
    for (size_t i = 0; i < core->count; i++) {
        struct attempt *attempt = core->attempts[i];
        struct attempt_observation observed = { 0 };
        agent_actions_inspect(core, attempt, &observed);
        if (attempt->want == WANT_PREPARED)
            attempt->want = WANT_DROPPED; // it was for the previous link
        /* An attempt whose LAUNCH has arrived may still run, even if the prepared one is dropped first. */
        if (!attempt_is_speculative(attempt->want) || attempt->is_launched || observed.verdict == VERDICT_GO)
            known[count++] = describe(core, attempt, &observed);
        attempt_observation_clear(&observed);
        attempt->reported = REPORTED_NOTHING;
    }
    hello.attempts = (struct record_list){ known, count };
    hello.sent_ms = boot_ms;
    hello.epoch = core->epoch;
    hello.began_ms = core->seen.began_ms;
    hello.event = core->seen.event;
    core->link = LINK_GREETED;
    heartbeat_greet(core, boot_ms);
    core->effects.send(core->effects.arg, &message_hello_record, &hello);
}

void agent_core_link_down(struct agent_core *core)
{
    core->link = LINK_DOWN;
}

void agent_core_reconcile(struct agent_core *core, int64_t boot_ms, const struct spool_id *id)
{
    struct attempt *attempt = find(core, id);
    if (attempt != NULL)
        agent_actions_run(core, attempt, boot_ms, NULL);
}

void agent_core_hint(struct agent_core *core, int64_t boot_ms, const struct spool_id *id, bool is_start)
{
    struct attempt *attempt = find(core, id);
    if (attempt != NULL && (attempt->want != WANT_PREPARED || attempt->is_launched))
        agent_actions_follow(core, attempt, boot_ms, is_start);
}

void agent_core_timer(struct agent_core *core, int64_t boot_ms)
{
    int64_t next = 0;
    core->armed_at = 0;
    for (size_t i = core->count; i > 0; i--) {
        struct attempt *attempt = core->attempts[i - 1];
        if (attempt->look_at != 0 && attempt->look_at <= boot_ms) {
            attempt->look_at = 0;
            agent_actions_run(core, attempt, boot_ms, NULL); // arms its own next check, or leaves the list
        } else if (attempt->look_at != 0 && (next == 0 || attempt->look_at < next)) {
            next = attempt->look_at;
        }
    }
    int64_t beat_at = heartbeat_run(core, boot_ms);
    if (beat_at != 0 && (next == 0 || beat_at < next))
        next = beat_at;
    if (next != 0)
        agent_core_arm_by(core, next);
}

size_t agent_core_attempts(const struct agent_core *core)
{
    return core->count;
}
