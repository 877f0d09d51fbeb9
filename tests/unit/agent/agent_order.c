/* SPDX-License-Identifier: MIT */
/* Copies of orders that come late, from this connection or from one before. */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/core/agent_core.h"
#include "base/memory.h"
#include "unit_test.h"

#define TOKEN 77

struct node {
    struct persist_seen seen;
    struct message_hello hello; // the last, its numbers
    uint32_t phase;             // there, of the attempt
    struct agent_core *core;
    struct attempt_observation spool; // of attempt 5.1.0.0
    int64_t now_ms, sent_ms;
    int stages, removes, settles, returns;
    int64_t lease_until_ms; // of the last stage
    bool is_user_unknown;   // yet
    uint32_t is_suspended;
};

static const struct spool_id id = { 5, 1, 0, 0 };

static void node_send(void *arg, const struct record_type *type, const void *message)
{
    struct node *node = arg;
    if (type->id == MESSAGE_RETURNED)
        node->returns++;
    if (type->id != MESSAGE_HELLO)
        return;
    const struct known_attempt *known = ((const struct message_hello *)message)->attempts.items;
    node->phase = known[0].phase; // zero when there is none
    node->hello = *(const struct message_hello *)message;
    node->sent_ms = node->hello.sent_ms;
}

static void node_observe(
    void *arg, const struct spool_id *which, bool is_reported, struct attempt_observation *observed)
{
    *observed = ((const struct node *)arg)->spool;
}

static int node_stage(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    node->stages++;
    node->lease_until_ms = launch->lease_until_ms;
    if (node->is_user_unknown)
        return error_set(err, -EINPROGRESS, "uid 7 is being looked up");
    node->spool = (struct attempt_observation){ .has_spec = true, .is_alive = true, .is_watched = true };
    return 0;
}

static int node_remove(void *arg, const struct spool_id *which)
{
    struct node *node = arg;
    node->removes++;
    node->spool = (struct attempt_observation){ 0 };
    return 0;
}

static int node_settle(void *arg, const struct spool_id *which, uint64_t token, struct error *err)
{
    struct node *node = arg;
    node->settles++;
    if (node->spool.verdict == VERDICT_NONE)
        node->spool.verdict = VERDICT_NOGO;
    return (int)node->spool.verdict;
}

static int node_update(
    void *arg, const struct spool_id *which, const struct spool_terms *terms, struct error *err)
{
    struct node *node = arg;
    if (!node->spool.has_spec)
        return error_set(err, -ENOENT, "it has no entry");
    node->is_suspended = terms->is_suspended;
    return 0;
}

static int node_renew(void *arg, const struct spool_id *which, int64_t until_ms)
{
    return ((struct node *)arg)->spool.has_spec ? 0 : -ENOENT;
}

static void node_save_seen(void *arg, const struct persist_seen *seen)
{
    ((struct node *)arg)->seen = *seen;
}

static int node_save_epoch(void *arg, uint64_t epoch, struct error *err)
{
    return 0;
}

static void node_arm(void *arg, int64_t boot_ms)
{
}

static int node_open(void **state)
{
    struct node *node = xcalloc(1, sizeof(*node));
    struct agent_effects effects = { .arg = node,
        .send = node_send,
        .observe = node_observe,
        .stage = node_stage,
        .remove = node_remove,
        .settle_nogo = node_settle,
        .renew = node_renew,
        .update = node_update,
        .save_epoch = node_save_epoch,
        .save_seen = node_save_seen,
        .arm = node_arm };
    node->core = agent_core_new(&effects, 0);
    node->now_ms = 1000;
    *state = node;
    return 0;
}

static int node_close(void **state)
{
    struct node *node = *state;
    agent_core_free(node->core);
    free(node);
    return 0;
}

#define CASE(name, node) TEST_ON(name, struct node *node, node_open, node_close)

static int say(struct node *node, uint16_t which, const void *message)
{
    struct error err = { 0 };
    return agent_core_message(node->core, node->now_ms, which, message, &err);
}

static void greet(struct node *node)
{
    struct message_hello hello = { .protocol = LINK_PROTOCOL };
    agent_core_link_up(node->core, ++node->now_ms, &hello);
}

static int welcome(struct node *node, int64_t sent_ms, uint64_t last_order)
{
    return say(node, MESSAGE_WELCOME,
        &(struct message_welcome){ .epoch = 1, .sent_ms = sent_ms, .last_order = last_order });
}

static void connect(struct node *node, uint64_t last_order)
{
    greet(node);
    assert_int_equal(welcome(node, node->sent_ms, last_order), 0);
}

static int launch(struct node *node, uint64_t order)
{
    return say(node, MESSAGE_LAUNCH,
        &(struct message_launch){ .id.job = 5, .id.attempt = 1, .token = TOKEN, .order = order });
}

/* It runs, ends, and is forgotten. */
static void live(struct node *node)
{
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = node->spool.exit.id.job = 5;
    node->spool.has_exit = true;
    node->spool.is_alive = false;
    agent_core_reconcile(node->core, node->now_ms, &id);
    assert_int_equal(say(node, MESSAGE_RELEASE_ATTEMPT,
                         &(struct message_release_attempt){ .id.job = 5, .id.attempt = 1, .token = TOKEN }),
        0);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

CASE(a_hello_has_the_latest_state_that_the_node_was_told_of, node)
{
    greet(node);
    assert_int_equal(node->hello.epoch, 0);
    assert_int_equal(
        say(node, MESSAGE_WELCOME, &(struct message_welcome){ .epoch = 3, .began_ms = 77, .event = 10 }), 0);
    assert_int_equal(
        say(node, MESSAGE_LAUNCH,
            &(struct message_launch){ .id.job = 5, .id.attempt = 1, .token = TOKEN, .event = 12 }),
        0);
    greet(node);
    assert_int_equal(node->hello.epoch, 3);
    assert_int_equal(node->hello.began_ms, 77);
    assert_int_equal(node->hello.event, 12);
    assert_int_equal(
        say(node, MESSAGE_WELCOME, &(struct message_welcome){ .epoch = 3, .began_ms = 78, .event = 5 }), 0);
    assert_int_equal(say(node, MESSAGE_HEARTBEAT_ACK, &(struct message_heartbeat){ .event = 20 }), 0);
    assert_int_equal(say(node, MESSAGE_HEARTBEAT_ACK, &(struct message_heartbeat){ .event = 19 }), 0);
    assert_int_equal(node->seen.began_ms, 78);
    assert_int_equal(node->seen.event, 20);
}

/* The state directory was put back, the spool was not. */
CASE(what_an_agent_before_has_seen_outlives_an_older_epoch, node)
{
    const struct persist_seen seen = { 9, 77, 40 };
    agent_core_note_seen(node->core, &seen); // it has never followed: another controller's
    greet(node);
    assert_int_equal(node->hello.epoch, 0);
    assert_int_equal(node->hello.event, 0);
    assert_int_equal(welcome(node, node->sent_ms, 0), 0);
    agent_core_note_seen(node->core, &seen);
    greet(node);
    assert_int_equal(node->hello.epoch, 9);
    assert_int_equal(node->hello.event, 40);
    assert_int_equal(welcome(node, node->sent_ms, 0), -ESTALE);
}

CASE(a_launch_that_comes_again_after_the_end_starts_nothing, node)
{
    connect(node, 4);
    assert_int_equal(launch(node, 5), 0);
    live(node);
    assert_int_equal(launch(node, 5), 0);
    assert_int_equal(node->stages, 1);
    assert_int_equal(agent_core_attempts(node->core), 0);
    assert_int_equal(launch(node, 6), 0);
    assert_int_equal(node->stages, 2);
}

CASE(a_launch_of_the_connection_before_starts_nothing, node)
{
    connect(node, 4);
    assert_int_equal(launch(node, 5), 0);
    live(node);
    agent_core_link_down(node->core);
    connect(node, 9);
    assert_int_equal(launch(node, 5), 0);
    assert_int_equal(launch(node, 8), 0);
    assert_int_equal(node->stages, 1);
    assert_int_equal(launch(node, 10), 0);
    assert_int_equal(node->stages, 2);
}

CASE(a_controller_that_does_not_number_is_obeyed, node)
{
    connect(node, 0);
    assert_int_equal(launch(node, 0), 0);
    assert_int_equal(node->stages, 1);
}

CASE(hello_tells_when_it_was_said, node)
{
    connect(node, 0);
    assert_int_equal(node->sent_ms, node->now_ms);
}

CASE(a_welcome_to_an_earlier_hello_is_passed_over, node)
{
    greet(node);
    int64_t earlier_ms = node->sent_ms;
    agent_core_link_down(node->core);
    greet(node);
    assert_int_equal(welcome(node, earlier_ms, 0), 0);
    assert_int_equal(launch(node, 1), -EPROTO); // it is not obeyed yet
    assert_int_equal(welcome(node, node->sent_ms, 0), 0);
    assert_int_equal(launch(node, 1), 0);
}

static void update(struct node *node, uint32_t number, uint32_t is_suspended)
{
    assert_int_equal(say(node, MESSAGE_UPDATE,
                         &(struct message_update){ .id.job = 5,
                             .id.attempt = 1,
                             .token = TOKEN,
                             .is_suspended = is_suspended,
                             .number = number }),
        0);
}

CASE(terms_that_were_followed_by_others_do_not_come_back, node)
{
    connect(node, 0);
    assert_int_equal(launch(node, 1), 0);
    update(node, 1, 1);
    assert_int_equal(node->is_suspended, 1);
    update(node, 2, 0);
    update(node, 1, 1);
    assert_int_equal(node->is_suspended, 0);
}

/* --- its user is looked up, which takes a while --- */

static void user_is_found(struct node *node)
{
    node->is_user_unknown = false;
    agent_core_reconcile(node->core, node->now_ms, &id);
}

CASE(launch_is_staged_once_its_user_is_known, node)
{
    connect(node, 0);
    node->is_user_unknown = true;
    assert_int_equal(launch(node, 1), 0);
    assert_false(node->spool.has_spec);
    user_is_found(node);
    assert_true(node->spool.has_spec);
    assert_int_equal(node->stages, 2);
    agent_core_reconcile(node->core, node->now_ms, &id);
    assert_int_equal(node->stages, 2);
}

CASE(repeated_launch_meanwhile_stages_once, node)
{
    connect(node, 0);
    node->is_user_unknown = true;
    assert_int_equal(launch(node, 1), 0);
    assert_int_equal(launch(node, 2), 0);
    assert_int_equal(agent_core_attempts(node->core), 1);
    user_is_found(node);
    assert_int_equal(node->stages, 3);
    agent_core_reconcile(node->core, node->now_ms, &id);
    assert_int_equal(node->stages, 3);
}

CASE(cancelled_launch_is_not_staged_when_its_user_is_known, node)
{
    connect(node, 0);
    node->is_user_unknown = true;
    assert_int_equal(launch(node, 1), 0);
    assert_int_equal(
        say(node, MESSAGE_STOP, &(struct message_stop){ .id.job = 5, .id.attempt = 1, .token = TOKEN }), 0);
    assert_int_equal(node->settles, 1);
    assert_int_equal(node->returns, 1);
    user_is_found(node);
    assert_int_equal(node->stages, 1);
    assert_false(node->spool.has_spec);
    assert_int_equal(say(node, MESSAGE_RELEASE_ATTEMPT,
                         &(struct message_release_attempt){ .id.job = 5, .id.attempt = 1, .token = TOKEN }),
        0);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

CASE(hello_meanwhile_names_the_launch_as_not_started, node)
{
    connect(node, 0);
    node->is_user_unknown = true;
    assert_int_equal(launch(node, 1), 0);
    agent_core_link_down(node->core);
    connect(node, 1);
    assert_int_equal(node->phase, PHASE_STAGED);
    assert_int_equal(node->returns, 0);
    user_is_found(node);
    assert_true(node->spool.has_spec);
}

CASE(terms_meanwhile_are_written_with_the_entry, node)
{
    connect(node, 0);
    node->is_user_unknown = true;
    assert_int_equal(launch(node, 1), 0);
    update(node, 1, 0);
    update(node, 2, 1);
    user_is_found(node);
    assert_int_equal(node->is_suspended, 1);
}

CASE(its_lease_counts_from_what_was_heard_by_then, node)
{
    connect(node, 0);
    node->is_user_unknown = true;
    assert_int_equal(
        say(node, MESSAGE_LAUNCH,
            &(struct message_launch){ .id.job = 5, .id.attempt = 1, .token = TOKEN, .lease_ms = 5000 }),
        0);
    int64_t first_ms = node->lease_until_ms;
    node->now_ms += 3000;
    assert_int_equal(
        say(node, MESSAGE_HEARTBEAT_ACK, &(struct message_heartbeat){ .sent_ms = node->now_ms - 1000 }), 0);
    user_is_found(node);
    assert_int_equal(node->lease_until_ms, node->now_ms - 1000 + 5000);
    assert_true(node->lease_until_ms > first_ms);
}
