/* SPDX-License-Identifier: MIT */
/* Messages that the agent's core sends by itself, on a manual clock. */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "agent/core/agent_core.h"
#include "base/memory.h"
#include "unit_test.h"

#define BEAT_MS    5000
#define TIMEOUT_MS 30000

struct node {
    struct persist_seen seen;
    struct agent_core *core;
    int64_t now_ms, armed_ms;
    int64_t beat_ms; // what the last HEARTBEAT said
    unsigned beats, hang_ups, renewals;
    bool is_looking_up; // the user of what is to be staged
    int64_t staged_until_ms, renewed_until_ms;
};

static void node_send(void *arg, const struct record_type *type, const void *message)
{
    struct node *node = arg;
    if (type->id != MESSAGE_HEARTBEAT)
        return;
    node->beats++;
    node->beat_ms = ((const struct message_heartbeat *)message)->sent_ms;
}

static void node_arm(void *arg, int64_t boot_ms)
{
    ((struct node *)arg)->armed_ms = boot_ms;
}

static void node_hang_up(void *arg)
{
    struct node *node = arg;
    node->hang_ups++;
    agent_core_link_down(node->core);
}

static void node_observe(
    void *arg, const struct spool_id *id, bool is_reported, struct attempt_observation *observed)
{
    const struct node *node = arg;
    observed->has_spec = observed->is_alive = observed->is_watched = node->staged_until_ms != 0;
}

static int node_stage(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    if (node->is_looking_up)
        return error_set(err, -EINPROGRESS, "its user is being looked up");
    node->staged_until_ms = launch->lease_until_ms;
    return 0;
}

static int node_renew(void *arg, const struct spool_id *id, int64_t until_ms)
{
    struct node *node = arg;
    if (node->staged_until_ms == 0)
        return -ENOENT;
    node->renewals++;
    node->renewed_until_ms = until_ms;
    return 0;
}

static void node_save_seen(void *arg, const struct persist_seen *seen)
{
    ((struct node *)arg)->seen = *seen;
}

static int node_save_epoch(void *arg, uint64_t epoch, struct error *err)
{
    return 0;
}

static int hear(struct node *node, uint16_t id, const void *message)
{
    struct error err = { 0 };
    return agent_core_message(node->core, node->now_ms, id, message, &err);
}

static void connect(struct node *node, int64_t heartbeat_ms)
{
    struct message_hello hello = { .protocol = LINK_PROTOCOL };
    struct message_welcome welcome = { .epoch = 1, .heartbeat_ms = heartbeat_ms, .timeout_ms = TIMEOUT_MS };
    agent_core_link_up(node->core, node->now_ms, &hello);
    assert_int_equal(hear(node, MESSAGE_WELCOME, &welcome), 0);
}

static int open_node(void **state)
{
    struct node *node = xcalloc(1, sizeof(*node));
    struct agent_effects effects = { .arg = node,
        .send = node_send,
        .arm = node_arm,
        .save_epoch = node_save_epoch,
        .save_seen = node_save_seen,
        .observe = node_observe,
        .stage = node_stage,
        .renew = node_renew,
        .hang_up = node_hang_up };
    node->core = agent_core_new(&effects, 0);
    node->now_ms = 1000;
    *state = node;
    return 0;
}

static int close_node(void **state)
{
    struct node *node = *state;
    agent_core_free(node->core);
    free(node);
    return 0;
}

#define CASE(name, node) TEST_ON(name, struct node *node, open_node, close_node)

/* Until the timer has nothing to do before `ms` have passed; each heartbeat is answered when somebody lives.
 */
static void pass(struct node *node, int64_t ms, bool is_answered)
{
    for (int64_t until_ms = node->now_ms + ms; node->armed_ms > node->now_ms && node->armed_ms <= until_ms;) {
        unsigned beats = node->beats;
        node->now_ms = node->armed_ms;
        agent_core_timer(node->core, node->now_ms);
        struct message_heartbeat ack = { .sent_ms = node->beat_ms };
        if (is_answered && node->beats > beats)
            assert_int_equal(hear(node, MESSAGE_HEARTBEAT_ACK, &ack), 0);
    }
}

CASE(it_speaks_every_few_seconds, node)
{
    connect(node, BEAT_MS);
    pass(node, 10 * BEAT_MS, true);
    assert_int_equal(node->beats, 10);
    assert_int_equal(node->beat_ms, node->now_ms);
    assert_int_equal(node->hang_ups, 0);
}

CASE(a_controller_that_does_not_answer_is_given_up, node)
{
    connect(node, BEAT_MS);
    pass(node, 10 * BEAT_MS, true);
    pass(node, TIMEOUT_MS, false);
    assert_int_equal(node->hang_ups, 0);
    pass(node, 3 * BEAT_MS, false);
    assert_int_equal(node->hang_ups, 1);
    connect(node, BEAT_MS); // and the next link starts anew
    pass(node, 3 * BEAT_MS, true);
    assert_int_equal(node->hang_ups, 1);
}

/* The answers are behind thousands of orders, for which the node needs longer than the timeout. */
CASE(a_controller_that_sends_orders_is_not_given_up, node)
{
    connect(node, BEAT_MS);
    for (int i = 0; i < 20; i++) {
        struct message_release_attempt order = { .id.job = 5, .id.attempt = 1, .token = 7 };
        pass(node, TIMEOUT_MS / 5, false);
        assert_int_equal(hear(node, MESSAGE_RELEASE_ATTEMPT, &order), 0);
    }
    assert_int_equal(node->hang_ups, 0);
    pass(node, TIMEOUT_MS + 3 * BEAT_MS, false);
    assert_int_equal(node->hang_ups, 1);
}

CASE(a_controller_that_wants_no_heartbeat_gets_none, node)
{
    connect(node, 0);
    assert_int_equal(node->armed_ms, 0);
}

#define LEASE_MS 100000

static void launch(struct node *node)
{
    struct message_launch order = { .id.job = 5, .id.attempt = 1, .token = 7, .lease_ms = LEASE_MS };
    assert_int_equal(hear(node, MESSAGE_LAUNCH, &order), 0);
}

CASE(a_lease_counts_from_what_the_controller_has_heard, node)
{
    connect(node, BEAT_MS);
    int64_t greeted_ms = node->now_ms;
    node->now_ms += 4000; // a LAUNCH that was long under way
    launch(node);
    assert_int_equal(node->staged_until_ms, greeted_ms + LEASE_MS);
    pass(node, LEASE_MS, true);
    assert_in_range(node->renewed_until_ms, node->now_ms + LEASE_MS / 2, node->now_ms + LEASE_MS);
    assert_in_range(node->renewals, 3, 4);
}

CASE(nothing_is_renewed_that_the_controller_has_not_heard, node)
{
    connect(node, BEAT_MS);
    launch(node);
    pass(node, LEASE_MS, false);
    assert_int_equal(node->renewals, 0);
    struct message_heartbeat ahead = { .sent_ms = node->now_ms + 1000000 };
    connect(node, BEAT_MS);
    node->renewals = 0;
    assert_int_equal(hear(node, MESSAGE_HEARTBEAT_ACK, &ahead), 0); // we never said that
    assert_int_equal(node->renewals, 0);
}

/* By then the controller may have given the job to another node. */
CASE(a_lease_that_has_expired_is_not_renewed, node)
{
    connect(node, BEAT_MS);
    launch(node);
    node->now_ms += LEASE_MS - 1;
    connect(node, BEAT_MS);
    assert_int_equal(node->renewals, 1);
    node->now_ms += LEASE_MS;
    connect(node, BEAT_MS);
    pass(node, LEASE_MS, true);
    assert_int_equal(node->renewals, 1);
}

static void look_up(struct node *node, bool is_answered)
{
    struct spool_id id = { .job = 5, .attempt = 1 };
    node->is_looking_up = !is_answered;
    agent_core_reconcile(node->core, node->now_ms, &id);
}

/* The node was away for as long: what it is told of the job comes after the WELCOME. */
CASE(a_launch_whose_lease_has_expired_while_it_was_staged_has_expired, node)
{
    connect(node, BEAT_MS);
    int64_t greeted_ms = node->now_ms;
    node->is_looking_up = true;
    launch(node);
    node->now_ms += LEASE_MS;
    connect(node, BEAT_MS);
    look_up(node, true);
    assert_int_equal(node->staged_until_ms, greeted_ms + LEASE_MS);
}

CASE(a_lease_is_renewed_while_its_launch_is_staged, node)
{
    connect(node, BEAT_MS);
    node->is_looking_up = true;
    launch(node);
    pass(node, 2 * LEASE_MS, true);
    look_up(node, true);
    assert_in_range(node->staged_until_ms, node->now_ms + LEASE_MS / 2, node->now_ms + LEASE_MS);
}

/* What a compromised controller may ask for costs the node next to nothing. */
CASE(heartbeats_are_never_more_than_ten_a_second, node)
{
    connect(node, 1);
    pass(node, 1000, true);
    assert_in_range(node->beats, 9, 10);
}
