/* SPDX-License-Identifier: MIT */
/* The core with a modelled node: one attempt whose spool is a struct, and a list of the messages sent. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent_core.h"
#include "job/state.h"
#include "unit_test.h"

#define TOKEN      77
#define LAST_EVENT 77
#define SENT_MAX   64

struct node {
    struct persist_seen seen;
    struct agent_core *core;
    struct attempt_observation spool; // of attempt 5.1.0.0
    bool is_there;
    int stages, starts, adopts, commands, kills, removes, logs, terminals, exec_steps, rejoins, ports;
    uint32_t signal;
    int64_t grace_ms;
    int stage_fails, start_fails, command_fails, epoch_fails, remove_fails; // negative errno
    bool is_refused;                                                        // stage leaves an exit record
    bool loses_race;                                                        // "go" wins against the next nogo
    uint64_t saved_epoch;
    unsigned tells;
    int64_t armed_at;
    int releases, restores;
    int waiting, prepares, takes, take_fails, admit_fails, looks;
    bool has_copy;             // of its exit record
    struct launch_exit exited; // the last EXITED, without its texts
    uint32_t port;             // of the last of them
    uint32_t ready_port;       // of the last READY
    uint16_t sent[SENT_MAX];
    size_t sent_count;
    char text[EVENT_TEXT_MAX]; // of the last RETURNED
    uint64_t returned_token;
    uint64_t known; // attempts in the last HELLO
    uint32_t phase;
    struct known_attempt recalled; // what the spool has of orders about it
    struct known_attempt told;     // the first one of the last HELLO
};

static const struct spool_id id = { 5, 1, 0, 0 };

static void node_send(void *arg, const struct record_type *type, const void *message)
{
    struct node *node = arg;
    assert_true(node->sent_count < SENT_MAX);
    node->sent[node->sent_count++] = type->id;
    if (type->id == MESSAGE_READY)
        node->ready_port = ((const struct message_ready *)message)->port;
    if (type->id == MESSAGE_EXITED)
        node->exited = *(const struct launch_exit *)message;
    if (type->id == MESSAGE_RETURNED)
        node->returned_token = ((const struct message_returned *)message)->token;
    if (type->id == MESSAGE_RETURNED)
        (void)snprintf(
            node->text, sizeof(node->text), "%s", ((const struct message_returned *)message)->text);
    if (type->id == MESSAGE_HELLO) {
        const struct message_hello *hello = message;
        const struct known_attempt *known = hello->attempts.items;
        node->known = hello->attempts.count;
        node->phase = node->known > 0 ? known[0].phase : 99;
        node->told = node->known > 0 ? known[0] : (struct known_attempt){ 0 };
    }
}

static void node_observe(
    void *arg, const struct spool_id *which, bool is_reported, struct attempt_observation *observed)
{
    struct node *node = arg;
    node->looks++;
    *observed = which->job == id.job ? node->spool : (struct attempt_observation){ 0 };
    observed->started.log_path = NULL;
    observed->started.text = node->spool.started.text != NULL ? xstrdup(node->spool.started.text) : NULL;
}

static int node_stage(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    node->stages++;
    if (node->stage_fails != 0)
        return error_set(err, node->stage_fails, "the spool is full");
    node->spool.has_spec = true;
    if (node->is_refused) {
        node->spool.has_exit = true;
        node->spool.verdict = VERDICT_NOGO;
        node->spool.exit.id.job = launch->id.job;
    }
    return 0;
}

static int node_start(void *arg, const struct spool_id *which, enum shepherd_task task, struct error *err)
{
    struct node *node = arg;
    *(task == SHEPHERD_ADOPTS ? &node->adopts : &node->starts) += 1;
    node->waiting += task == SHEPHERD_WAITS;
    if (node->start_fails != 0)
        return error_set(err, node->start_fails, "no more processes");
    node->spool.is_alive = true;
    node->spool.is_watched = true;
    return 0;
}

static bool node_watch(void *arg, const struct spool_id *which, const struct attempt_observation *observed)
{
    struct node *node = arg;
    return node->spool.is_watched;
}

static int node_settle(void *arg, const struct spool_id *which, uint64_t token, struct error *err)
{
    struct node *node = arg;
    if (node->loses_race)
        node->spool.verdict = VERDICT_GO;
    if (node->spool.verdict == VERDICT_NONE)
        node->spool.verdict = VERDICT_NOGO;
    return (int)node->spool.verdict;
}

static int node_command(void *arg, const struct spool_id *which, uint32_t signal, int64_t grace_ms)
{
    struct node *node = arg;
    node->commands++;
    node->signal = signal;
    node->grace_ms = grace_ms;
    return node->command_fails;
}

static int node_release(void *arg, const struct spool_id *which, uint32_t port)
{
    struct node *node = arg;
    node->releases++;
    node->port = port;
    return 0;
}

static void node_kill(void *arg, const struct spool_id *which)
{
    struct node *node = arg;
    node->kills++;
}

static int node_restore(void *arg, const struct spool_id *which)
{
    struct node *node = arg;
    node->restores++;
    if (!node->has_copy)
        return -ENOENT;
    node->spool.verdict = VERDICT_GO;
    node->spool.has_exit = true;
    node->spool.exit = (struct launch_exit){ .id.job = 5, .end = END_EXIT, .exit_code = 33 };
    return 0;
}

static int node_remove(void *arg, const struct spool_id *which)
{
    struct node *node = arg;
    node->removes++;
    if (node->remove_fails == 0)
        node->spool = (struct attempt_observation){ 0 };
    return node->remove_fails;
}

static void node_save_seen(void *arg, const struct persist_seen *seen)
{
    ((struct node *)arg)->seen = *seen;
}

static int node_save_epoch(void *arg, uint64_t epoch, struct error *err)
{
    struct node *node = arg;
    if (node->epoch_fails != 0)
        return error_set(err, node->epoch_fails, "the disk is full");
    node->saved_epoch = epoch;
    return 0;
}

static void node_open_log(void *arg, const struct message_open_log *request)
{
    struct node *node = arg;
    node->logs++;
}

static void node_open_terminal(void *arg, const struct message_open_terminal *request)
{
    struct node *node = arg;
    node->terminals++;
}

static void node_open_guest(void *arg, const struct message_open_step *request)
{
    struct node *node = arg;
    node->exec_steps++;
}

static void node_rejoin(void *arg, const struct message_rejoin_step *request)
{
    struct node *node = arg;
    node->rejoins++;
}

static void node_open_port(void *arg, const struct message_open_port *request)
{
    struct node *node = arg;
    node->ports++;
}

static void node_notify(void *arg, const struct message_notify *request)
{
    struct node *node = arg;
    node->tells++;
}

static void node_arm(void *arg, int64_t boot_ms)
{
    struct node *node = arg;
    node->armed_at = boot_ms;
}

static void hello(struct node *node)
{
    struct message_hello facts = { .protocol = LINK_PROTOCOL };
    agent_core_link_up(node->core, 0, &facts);
}

static int node_prepare(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    node->prepares++;
    node->spool.has_spec = true;
    return 0;
}

static int node_take(void *arg, const struct message_launch *launch, struct error *err)
{
    struct node *node = arg;
    node->takes++;
    return node->take_fails != 0 ? error_set(err, node->take_fails, "it was prepared otherwise") : 0;
}

static int node_admit(void *arg, const struct spool_id *which, struct error *err)
{
    struct node *node = arg;
    return node->admit_fails != 0 ? error_set(err, node->admit_fails, "its GPU is not clean") : 0;
}

static int welcome(struct node *node, uint64_t epoch)
{
    struct error err = { 0 };
    struct message_welcome message = { epoch };
    return agent_core_message(node->core, 0, MESSAGE_WELCOME, &message, &err);
}

static void node_recall(void *arg, const struct spool_id *which, struct known_attempt *known)
{
    const struct node *node = arg;
    known->terms = node->recalled.terms;
    known->park_number = node->recalled.park_number;
    known->park_seen = node->recalled.park_seen;
}

static int node_update(
    void *arg, const struct spool_id *which, const struct spool_terms *terms, struct error *err)
{
    return 0;
}

static struct node *node_new(uint64_t epoch)
{
    struct node *node = xcalloc(1, sizeof(*node));
    struct agent_effects effects = { node, node_send, node_observe, node_stage, node_start, node_watch,
        node_settle, node_command, node_kill, node_remove, node_save_epoch, node_open_log, node_open_terminal,
        node_open_guest, node_rejoin, node_open_port, node_arm, .notify = node_notify,
        .release = node_release, .restore = node_restore, .save_seen = node_save_seen,
        .prepare = node_prepare, .take = node_take, .admit = node_admit, .recall = node_recall,
        .update = node_update };
    node->core = agent_core_new(&effects, epoch);
    return node;
}

static struct node *node_connected(void)
{
    struct node *node = node_new(0);
    hello(node);
    assert_int_equal(welcome(node, 1), 0);
    node->sent_count = 0;
    return node;
}

static void node_free(struct node *node)
{
    agent_core_free(node->core);
    free(node);
}

static void node_freep(struct node **node)
{
    node_free(*node);
}

static int connect_node(void **state)
{
    *state = node_connected();
    return 0;
}

static int free_node(void **state)
{
    node_free(*state);
    return 0;
}

#define CASE(name, node) TEST_ON(name, struct node *node, connect_node, free_node)

static int order(struct node *node, uint16_t which, int64_t now, uint64_t token)
{
    struct error err = { 0 };
    struct message_launch launch = { .id.job = 5, .id.attempt = 1, .token = token };
    struct message_stop stop = { .id.job = 5, .id.attempt = 1, .token = token, .signal = 15, .grace_ms = 9 };
    struct message_release_attempt forget = {
        .id.job = 5, .id.attempt = 1, .token = token, .event = LAST_EVENT
    };
    struct message_go go = { .id.job = 5, .id.attempt = 1, .token = token, .port = 29777 };
    const void *message = which == MESSAGE_LAUNCH || which == MESSAGE_PREPARE ? (const void *)&launch
                          : which == MESSAGE_GO                               ? (const void *)&go
                          : which == MESSAGE_STOP                             ? (const void *)&stop
                                                                              : (const void *)&forget;
    return agent_core_message(node->core, now, which, message, &err);
}

static void gate_opens(struct node *node)
{
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = 5;
    agent_core_reconcile(node->core, 0, &id);
}

static void step_ends(struct node *node)
{
    node->spool.has_exit = true;
    node->spool.exit.id.job = 5;
    agent_core_reconcile(node->core, 0, &id);
}

static void shepherd_dies(struct node *node, int64_t now)
{
    node->spool.is_alive = false;
    node->spool.is_watched = false;
    agent_core_reconcile(node->core, now, &id);
}

#define assert_sent(node, ...)                                                                               \
    do {                                                                                                     \
        const uint16_t wanted[] = { __VA_ARGS__ };                                                           \
        assert_int_equal((node)->sent_count, sizeof(wanted) / sizeof(wanted[0]));                            \
        assert_memory_equal((node)->sent, wanted, sizeof(wanted));                                           \
        (node)->sent_count = 0;                                                                              \
    } while (0)

CASE(an_attempt_lives_from_launch_to_forget, node)
{
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    assert_int_equal(node->stages, 1);
    assert_int_equal(node->starts, 1);
    gate_opens(node);
    assert_sent(node, MESSAGE_STARTED);
    step_ends(node);
    assert_sent(node, MESSAGE_EXITED);
    assert_int_equal(order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN), 0);
    assert_int_equal(node->removes, 1);
    assert_int_equal(node->seen.event, LAST_EVENT); // it has run, whatever an older copy of the store says
    assert_int_equal(agent_core_attempts(node->core), 0);
}

CASE(an_end_is_reported_with_the_time_since_then, node)
{
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    gate_opens(node);
    node->spool.has_exit = true;
    node->spool.exit.id.job = 5;
    node->spool.exit.ended_boot_ms = 700;
    agent_core_reconcile(node->core, 1000, &id);
    assert_sent(node, MESSAGE_STARTED, MESSAGE_EXITED);
    assert_int_equal(node->exited.ended_ago_ms, 300);
}

CASE(a_repeated_launch_starts_nothing_twice, node)
{
    for (int i = 0; i < 3; i++)
        assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    gate_opens(node);
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    step_ends(node);
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    assert_int_equal(node->stages, 1);
    assert_int_equal(node->starts, 1);
    assert_sent(node, MESSAGE_STARTED, MESSAGE_EXITED);
}

CASE(reports_are_repeated_after_each_hello_until_forget, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    assert_sent(node, MESSAGE_STARTED);
    agent_core_link_down(node->core);
    hello(node);
    assert_int_equal(node->known, 1);
    assert_int_equal(node->phase, PHASE_RUNNING);
    assert_int_equal(welcome(node, 1), 0);
    assert_sent(node, MESSAGE_HELLO, MESSAGE_STARTED);
    agent_core_link_down(node->core);
    step_ends(node);
    assert_int_equal(node->sent_count, 0);
    for (int i = 0; i < 2; i++) {
        hello(node);
        assert_int_equal(node->phase, PHASE_EXITED);
        assert_int_equal(welcome(node, 2), 0);
        assert_sent(node, MESSAGE_HELLO, MESSAGE_EXITED);
        agent_core_link_down(node->core);
    }
}

CASE(a_stop_before_the_verdict_returns_the_attempt, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_int_equal(node->commands, 0);
    assert_sent(node, MESSAGE_RETURNED);
    (void)order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN);
    assert_int_equal(node->removes, 0); // its shepherd still ends
    shepherd_dies(node, 0);
    assert_int_equal(node->removes, 1);
}

CASE(ready_rank_reports_until_released, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->sent_count, 0);
    node->spool.is_ready = true;
    node->spool.started.port = 29555;
    agent_core_reconcile(node->core, 0, &id);
    assert_sent(node, MESSAGE_READY);
    assert_int_equal(node->ready_port, 29555);
    agent_core_link_down(node->core);
    hello(node);
    assert_sent(node, MESSAGE_HELLO);
    (void)welcome(node, 1);
    assert_sent(node, MESSAGE_READY);
    assert_int_equal(node->releases, 0);
    (void)order(node, MESSAGE_GO, 0, TOKEN);
    assert_int_equal(node->releases, 1);
    assert_int_equal(node->port, 29777);
    (void)order(node, MESSAGE_GO, 0, TOKEN);
    gate_opens(node);
    assert_sent(node, MESSAGE_STARTED);
    (void)order(node, MESSAGE_GO, 0, TOKEN);
    assert_int_equal(node->starts, 1);
}

CASE(rank_stopped_at_its_gate_never_runs, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    node->spool.is_ready = true;
    agent_core_reconcile(node->core, 0, &id);
    assert_sent(node, MESSAGE_READY);
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_int_equal(node->releases, 1); // it finds that out, and ends
    assert_sent(node, MESSAGE_RETURNED);
    (void)order(node, MESSAGE_GO, 0, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
}

/* --- before its turn --- */

static struct node *node_prepared(void)
{
    struct node *node = node_connected();
    (void)order(node, MESSAGE_PREPARE, 0, TOKEN);
    assert_int_equal(node->prepares, 1);
    assert_int_equal(node->starts, 1);
    node->spool.is_ready = true;
    agent_core_reconcile(node->core, 0, &id);
    return node;
}

TEST(a_rank_of_several_is_not_prepared)
{
    struct error err = { 0 };
    _cleanup_(node_freep) struct node *node = node_connected();
    struct launch_peer peers[2] = { 0 };
    struct message_launch launch = { .id.job = 5, .id.attempt = 1, .token = TOKEN, .peers = { peers, 2 } };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_PREPARE, &launch, &err), 0);
    assert_int_equal(node->prepares, 0);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

TEST(what_was_prepared_waits_unseen_and_runs_when_it_is_launched)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    (void)order(node, MESSAGE_GO, 0, TOKEN); // of no rank
    assert_int_equal(node->releases, 0);
    assert_int_equal(node->sent_count, 0);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->releases, 1);
    assert_int_equal(node->stages, 0);
    gate_opens(node);
    step_ends(node);
    assert_sent(node, MESSAGE_STARTED, MESSAGE_EXITED);
    assert_int_equal(node->starts, 1);
}

TEST(a_hint_of_a_prepared_attempt_is_not_followed_until_it_is_launched)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    int looks = node->looks;
    agent_core_hint(node->core, 0, &id, true);
    assert_int_equal(node->looks, looks);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = 5;
    agent_core_hint(node->core, 0, &id, true);
    assert_sent(node, MESSAGE_STARTED);
}

/* An element of an array with a shepherd that has just opened its gate. */
static struct node *node_with_element(void)
{
    struct node *node = node_connected();
    struct message_launch launch = { .id.job = 5, .id.attempt = 1, .token = TOKEN, .array_job = 4 };
    struct error err = { 0 };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_LAUNCH, &launch, &err), 0);
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = 5;
    agent_core_hint(node->core, 0, &id, true);
    assert_int_equal(node->sent_count, 0);
    return node;
}

static void element_ends_at_once(struct node *node)
{
    node->spool.has_exit = true;
    node->spool.exit.id.job = 5;
    agent_core_hint(node->core, 5, &id, false);
    assert_sent(node, MESSAGE_EXITED);
    int looks = node->looks;
    agent_core_timer(node->core, 10);
    assert_int_equal(node->looks, looks); // nothing is left to look for
    assert_int_equal(node->sent_count, 0);
    node_free(node);
}

TEST(a_short_element_is_reported_once_with_its_end)
{
    element_ends_at_once(node_with_element());
}

TEST(a_short_element_that_was_prepared_is_reported_once_too)
{
    struct node *node = node_prepared();
    struct message_launch launch = { .id.job = 5, .id.attempt = 1, .token = TOKEN, .array_job = 4 };
    struct error err = { 0 };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_LAUNCH, &launch, &err), 0);
    assert_int_equal(node->releases, 1);
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = 5;
    agent_core_hint(node->core, 0, &id, true);
    assert_int_equal(node->sent_count, 0);
    element_ends_at_once(node);
}

CASE(the_start_of_an_element_s_rank_is_reported_at_once, node)
{
    struct message_launch launch = { .id.job = 5, .id.attempt = 1, .token = TOKEN, .array_job = 4 };
    struct error err = { 0 };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_LAUNCH, &launch, &err), 0);
    node->spool.is_ready = true;
    agent_core_reconcile(node->core, 0, &id);
    assert_sent(node, MESSAGE_READY);
    (void)order(node, MESSAGE_GO, 0, TOKEN);
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = 5;
    agent_core_hint(node->core, 0, &id, true);
    assert_sent(node, MESSAGE_STARTED);
}

TEST(a_remark_about_a_start_that_was_not_reported_comes_before_the_end)
{
    _cleanup_(node_freep) struct node *node = node_with_element();
    char text[] = "cannot change to directory /gone; running in /";
    node->spool.started.text = text;
    node->spool.has_exit = true;
    node->spool.exit.id.job = 5;
    agent_core_hint(node->core, 5, &id, false);
    assert_sent(node, MESSAGE_STARTED, MESSAGE_EXITED);
    node->spool.started.text = NULL;
}

TEST(an_element_that_runs_on_is_reported_as_started_soon)
{
    _cleanup_(node_freep) struct node *node = node_with_element();
    assert_in_range(node->armed_at, 1, 10);
    agent_core_timer(node->core, node->armed_at);
    assert_sent(node, MESSAGE_STARTED);
    step_ends(node);
    assert_sent(node, MESSAGE_EXITED);
}

TEST(an_element_is_stopped_before_its_start_was_reported)
{
    _cleanup_(node_freep) struct node *node = node_with_element();
    (void)order(node, MESSAGE_STOP, 1, TOKEN);
    assert_int_equal(node->commands, 1);
    assert_sent(node, MESSAGE_STARTED);
}

TEST(a_start_that_waits_to_be_reported_is_in_the_next_hello)
{
    _cleanup_(node_freep) struct node *node = node_with_element();
    agent_core_link_down(node->core);
    hello(node);
    assert_int_equal(node->phase, PHASE_RUNNING);
    (void)welcome(node, 1);
    assert_sent(node, MESSAGE_HELLO, MESSAGE_STARTED);
}

CASE(the_start_of_a_job_that_is_no_element_is_reported_at_once, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    node->spool.verdict = VERDICT_GO;
    node->spool.started.id.job = 5;
    agent_core_hint(node->core, 0, &id, true);
    assert_sent(node, MESSAGE_STARTED);
}

CASE(a_launch_before_it_is_ready_opens_the_gate_when_it_is, node)
{
    (void)order(node, MESSAGE_PREPARE, 0, TOKEN);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->releases, 0);
    node->spool.is_ready = true;
    agent_core_reconcile(node->core, 0, &id);
    assert_int_equal(node->releases, 1);
}

TEST(the_gate_stays_closed_until_its_gpus_were_looked_at)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->admit_fails = -EINPROGRESS;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->releases, 0);
    assert_int_not_equal(node->armed_at, 0);
    node->admit_fails = 0;
    agent_core_reconcile(node->core, 0, &id);
    assert_int_equal(node->releases, 1);
}

/* No GPU is needed to wait for one. */
TEST(a_shepherd_that_dies_before_its_turn_is_replaced_at_once)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    assert_int_equal(node->waiting, 1);
    node->admit_fails = -EALREADY;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    node->spool.is_ready = false;
    shepherd_dies(node, 0);
    assert_int_equal(node->waiting, 2);
    assert_int_equal(node->starts, 2);
    node->admit_fails = 0;
    node->spool.is_ready = true;
    agent_core_reconcile(node->core, 0, &id);
    assert_int_equal(node->releases, 1);
}

/* The end of the other attempt is announced. */
TEST(an_attempt_behind_another_is_seldom_looked_at)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->admit_fails = -EALREADY;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->releases, 0);
    int looks = node->looks;
    agent_core_timer(node->core, 999);
    assert_int_equal(node->looks, looks);
    node->admit_fails = 0;
    agent_core_timer(node->core, 1000);
    assert_int_equal(node->releases, 1);
}

TEST(what_was_prepared_for_an_unclean_gpu_is_returned)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->admit_fails = -EBUSY;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_sent(node, MESSAGE_RETURNED);
    assert_string_equal(node->text, "its GPU is not clean");
}

TEST(what_was_prepared_otherwise_is_removed_before_it_is_staged_anew)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->take_fails = -ESTALE;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN + 1);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_int_equal(node->stages, 0); // its shepherd has not left yet
    assert_int_equal(node->removes, 0);
    shepherd_dies(node, 0);
    assert_int_equal(node->removes, 1);
    assert_int_equal(node->stages, 1);
    assert_int_equal(node->starts, 2);
    assert_int_equal(node->sent_count, 0);
}

TEST(launch_waits_for_the_user_of_what_was_prepared)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->take_fails = -EINPROGRESS;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->releases, 0);
    node->take_fails = 0;
    agent_core_reconcile(node->core, 0, &id);
    assert_int_equal(node->takes, 2);
    assert_int_equal(node->releases, 1);
}

/* It may still run, so a controller that gave the GPUs to another job must know. */
TEST(a_launch_that_waits_for_the_user_is_in_the_next_hello)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->take_fails = -EINPROGRESS;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    agent_core_link_down(node->core);
    hello(node);
    assert_int_equal(node->known, 1);
}

static int release_first(struct node *node)
{
    struct error err = { 0 };
    struct message_launch other = { .id.job = 6, .id.attempt = 1, .token = TOKEN };
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    step_ends(node);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_PREPARE, &other, &err), 0);
    assert_int_equal(order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN), 0);
    return node->removes;
}

CASE(a_removal_waits_for_the_start_of_a_prepared_job, node)
{
    assert_int_equal(release_first(node), 0);
    assert_int_not_equal(node->armed_at, 0);
    agent_core_timer(node->core, node->armed_at);
    assert_int_equal(node->removes, 1);
}

CASE(a_job_that_was_not_prepared_is_staged_after_the_removal, node)
{
    struct error err = { 0 };
    struct message_launch third = { .id.job = 7, .id.attempt = 1, .token = TOKEN };
    assert_int_equal(release_first(node), 0);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_LAUNCH, &third, &err), 0);
    assert_int_equal(node->removes, 1);
}

TEST(a_withdrawn_guess_leaves_no_trace)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    (void)order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    shepherd_dies(node, 0);
    assert_int_equal(node->removes, 1);
    assert_int_equal(agent_core_attempts(node->core), 0);
    assert_int_equal(node->sent_count, 0);
}

TEST(a_launch_during_the_removal_of_its_guess_runs_after_it)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    (void)order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN + 1);
    assert_int_equal(node->takes, 0);
    shepherd_dies(node, 0);
    assert_int_equal(node->stages, 1);
}

TEST(a_stop_during_the_removal_of_its_guess_returns_the_attempt)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    node->take_fails = -ESTALE;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN + 1);
    (void)order(node, MESSAGE_STOP, 0, TOKEN + 1);
    assert_sent(node, MESSAGE_RETURNED);
    assert_int_equal(node->returned_token, TOKEN + 1);
    shepherd_dies(node, 0);
    (void)order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN + 1);
    assert_int_equal(agent_core_attempts(node->core), 0);
    assert_int_equal(node->stages, 0);
}

TEST(a_guess_whose_shepherd_dies_is_not_prepared_again)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    shepherd_dies(node, 0);
    assert_int_equal(node->starts, 1);
    assert_int_equal(agent_core_attempts(node->core), 0);
    assert_int_equal(node->sent_count, 0);
}

TEST(another_controller_hears_of_no_guess_and_gets_rid_of_it)
{
    _cleanup_(node_freep) struct node *node = node_prepared();
    agent_core_link_down(node->core);
    hello(node);
    assert_int_equal(node->known, 0);
    (void)welcome(node, 2);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_sent(node, MESSAGE_HELLO);
}

TEST(a_guess_of_an_earlier_agent_is_dropped_but_not_what_it_took)
{
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        struct node *node = node_new(0);
        node->spool = (struct attempt_observation){ .has_spec = true, .is_alive = true, .is_watched = true };
        agent_core_load(node->core, 0, &id, TOKEN);
        node->loses_race = is_taken; // it was told that it may start
        agent_core_note_prepared(node->core, 0, &id);
        assert_int_equal(node->spool.verdict, is_taken ? VERDICT_GO : VERDICT_NOGO);
        hello(node);
        assert_int_equal(node->known, is_taken);
        (void)welcome(node, 1);
        node->sent_count = 0;
        if (is_taken) {
            gate_opens(node);
            step_ends(node);
            assert_sent(node, MESSAGE_STARTED, MESSAGE_EXITED);
        }
        node_free(node);
    }
}

CASE(a_stop_that_loses_the_race_is_told_to_the_shepherd, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    node->loses_race = true;
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->commands, 1);
    assert_int_equal(node->signal, 15);
    assert_int_equal(node->grace_ms, 9);
    assert_int_equal(node->sent_count, 0);
    gate_opens(node);
    assert_int_equal(node->commands, 1);
    assert_sent(node, MESSAGE_STARTED);
}

static void take_back(struct node *node, uint64_t token)
{
    struct error err;
    struct message_stop stop = { .id = id, .token = token, .signal = STOP_UNSTARTED };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_STOP, &stop, &err), 0);
}

CASE(an_attempt_is_taken_back_if_it_has_no_verdict, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    take_back(node, TOKEN + 1); // of another history
    assert_int_equal(node->spool.verdict, VERDICT_NONE);
    take_back(node, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_int_equal(node->commands, 0);
    assert_sent(node, MESSAGE_RETURNED);
}

CASE(one_that_has_a_verdict_is_not_taken_back, node)
{
    take_back(node, TOKEN); // which is not there yet
    assert_int_equal(agent_core_attempts(node->core), 0);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    take_back(node, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_GO);
    assert_int_equal(node->commands, 0);
    step_ends(node);
    assert_sent(node, MESSAGE_STARTED, MESSAGE_EXITED);
}

CASE(a_stop_of_an_unknown_attempt_keeps_it_from_ever_running, node)
{
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_sent(node, MESSAGE_RETURNED);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->stages + node->starts, 0);
}

CASE(a_stop_is_told_again_to_the_shepherd_that_adopts, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->commands, 1);
    shepherd_dies(node, 0);
    assert_int_equal(node->adopts, 1);
    agent_core_reconcile(node->core, 1, &id); // "I am here"
    assert_int_equal(node->commands, 2);
}

/* Somebody has removed it; the shepherd is a process that was seen before. */
static void lose_entry(struct node *node)
{
    node->spool = (struct attempt_observation){ .is_alive = true, .is_watched = true };
    agent_core_reconcile(node->core, 0, &id);
}

static struct node *node_running(void)
{
    struct node *node = node_connected();
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    assert_sent(node, MESSAGE_STARTED);
    return node;
}

TEST(what_ran_without_an_entry_is_never_returned)
{
    _cleanup_(node_freep) struct node *node = node_running();
    lose_entry(node);
    assert_int_equal(node->sent_count, 0);
    shepherd_dies(node, 0);
    assert_sent(node, MESSAGE_EXITED);
    assert_int_equal(node->exited.end, END_UNKNOWN);
    assert_int_equal(node->exited.token, TOKEN);
    assert_int_equal(node->exited.is_executed, 1);
    assert_int_equal(order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN), 0);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

TEST(a_durable_copy_tells_how_it_ended)
{
    _cleanup_(node_freep) struct node *node = node_running();
    lose_entry(node);
    node->has_copy = true;
    shepherd_dies(node, 0);
    assert_sent(node, MESSAGE_EXITED);
    assert_int_equal(node->exited.exit_code, 33);
}

TEST(without_an_entry_it_is_killed_when_it_is_to_stop)
{
    _cleanup_(node_freep) struct node *node = node_running();
    lose_entry(node);
    node->has_copy = true; // written when it was killed
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->kills, 1);
    assert_int_equal(node->sent_count, 0);
    shepherd_dies(node, 0);
    assert_sent(node, MESSAGE_EXITED);
    assert_int_equal(node->exited.end, END_CANCELLED);
}

TEST(what_is_left_of_it_is_killed_before_the_end_is_reported)
{
    _cleanup_(node_freep) struct node *node = node_running();
    lose_entry(node);
    node->spool.is_populated = true;
    shepherd_dies(node, 0);
    assert_int_equal(node->kills, 1);
    assert_int_equal(node->sent_count, 0);
    node->spool.is_populated = false;
    agent_core_reconcile(node->core, 200, &id);
    assert_sent(node, MESSAGE_EXITED);
}

TEST(a_hello_says_that_it_runs)
{
    _cleanup_(node_freep) struct node *node = node_running();
    lose_entry(node);
    agent_core_link_down(node->core);
    hello(node);
    assert_int_equal(node->known, 1);
    assert_int_equal(node->phase, PHASE_RUNNING);
}

CASE(a_second_stop_is_told_too, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->commands, 2);
}

CASE(a_command_nobody_hears_is_sent_again, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    node->command_fails = -ECONNREFUSED;
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    node->command_fails = 0;
    assert_int_equal(node->armed_at, 100);
    agent_core_timer(node->core, 100);
    assert_int_equal(node->commands, 2);
    agent_core_timer(node->core, 1000);
    assert_int_equal(node->commands, 2);
}

CASE(a_shepherd_that_dies_before_its_verdict_is_tried_three_times, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    shepherd_dies(node, 0);
    shepherd_dies(node, 0);
    assert_int_equal(node->starts, 3);
    assert_int_equal(node->sent_count, 0);
    shepherd_dies(node, 0);
    assert_int_equal(node->starts, 3);
    assert_sent(node, MESSAGE_RETURNED);
    assert_string_equal(node->text, "mgpu-shepherd ends before the start, each of 3 times");
}

CASE(a_shepherd_that_cannot_be_started_returns_the_attempt_with_the_reason, node)
{
    node->start_fails = -EAGAIN;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_sent(node, MESSAGE_RETURNED);
    assert_string_equal(node->text, "no more processes");
}

CASE(an_attempt_waits_for_its_gpus_to_be_looked_at, node)
{
    node->start_fails = -EINPROGRESS;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    for (int i = 0; i < 5; i++)
        agent_core_reconcile(node->core, 0, &id);
    assert_int_equal(node->sent_count, 0);
    node->start_fails = 0;
    agent_core_reconcile(node->core, 0, &id);
    assert_int_equal(node->starts, 7); // the effect is asked each time
    assert_int_equal(node->sent_count, 0);
}

CASE(an_attempt_that_cannot_be_staged_is_returned_with_the_reason, node)
{
    node->stage_fails = -ENOSPC;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_sent(node, MESSAGE_RETURNED);
    assert_string_equal(node->text, "the spool is full");
    assert_int_equal(node->starts, 0);
}

CASE(an_attempt_that_can_never_run_here_ends_with_an_exit_record, node)
{
    node->is_refused = true;
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->starts, 0);
    assert_sent(node, MESSAGE_EXITED);
}

TEST(a_dead_shepherd_is_replaced_without_a_controller_and_ever_more_slowly)
{
    _cleanup_(node_freep) struct node *node = node_new(0);
    node->spool = (struct attempt_observation){ .has_spec = true, .verdict = VERDICT_GO };
    agent_core_load(node->core, 0, &id, TOKEN);
    assert_int_equal(node->adopts, 1);
    shepherd_dies(node, 10);
    assert_int_equal(node->adopts, 1);
    agent_core_timer(node->core, 100);
    assert_int_equal(node->adopts, 2);
    shepherd_dies(node, 110);
    agent_core_timer(node->core, 200);
    assert_int_equal(node->adopts, 2);
    agent_core_timer(node->core, 300);
    assert_int_equal(node->adopts, 3);
}

TEST(a_shepherd_nobody_announces_is_looked_at_each_second)
{
    _cleanup_(node_freep) struct node *node = node_new(0);
    node->spool = (struct attempt_observation){ .has_spec = true, .verdict = VERDICT_GO, .is_alive = true };
    agent_core_load(node->core, 0, &id, TOKEN);
    assert_int_equal(node->armed_at, 1000);
    node->spool.is_alive = false;
    agent_core_timer(node->core, 1000);
    assert_int_equal(node->adopts, 1);
}

/* The hint of its shepherd was lost. */
CASE(a_start_that_nobody_announces_is_noticed, node)
{
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    assert_int_equal(node->armed_at, 1000);
    agent_core_timer(node->core, 1000); // its shepherd prepares the start
    assert_int_equal(node->armed_at, 2000);
    node->spool.verdict = VERDICT_GO;
    agent_core_timer(node->core, 2000); // and has not written "started" yet
    assert_int_equal(node->armed_at, 3000);
    assert_int_equal(node->sent_count, 0);
    node->spool.started.id.job = 5;
    agent_core_timer(node->core, 3000);
    assert_sent(node, MESSAGE_STARTED);
    int looks = node->looks;
    agent_core_timer(node->core, 60000);
    assert_int_equal(node->looks, looks);
}

CASE(leftovers_are_killed_before_the_end_is_reported, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    node->sent_count = 0;
    node->spool.is_populated = true;
    step_ends(node);
    assert_int_equal(node->kills, 1);
    assert_int_equal(node->sent_count, 0);
    node->spool.is_populated = false;
    agent_core_timer(node->core, 100);
    assert_sent(node, MESSAGE_EXITED);
}

/* It may wait for an init that its user has stopped. */
CASE(a_shepherd_whose_start_is_taken_back_is_notified, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_true(node->spool.is_alive);
    assert_int_equal(node->releases, 0);
    (void)order(node, MESSAGE_STOP, 0, TOKEN);
    assert_int_equal(node->spool.verdict, VERDICT_NOGO);
    assert_int_equal(node->releases, 1);
}

CASE(a_removal_that_must_wait_is_tried_again, node)
{
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    step_ends(node);
    node->remove_fails = -EBUSY;
    (void)order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN);
    assert_int_equal(agent_core_attempts(node->core), 1);
    node->remove_fails = 0;
    agent_core_timer(node->core, 100);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

TEST(an_epoch_that_is_over_is_refused)
{
    _cleanup_(node_freep) struct node *node = node_new(7);
    hello(node);
    assert_int_equal(welcome(node, 6), -ESTALE);
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), -EPROTO);
    assert_int_equal(node->saved_epoch, 0);
}

TEST(an_epoch_is_durable_before_it_is_obeyed)
{
    _cleanup_(node_freep) struct node *node = node_new(7);
    hello(node);
    node->epoch_fails = -ENOSPC;
    assert_int_equal(welcome(node, 8), -ENOSPC);
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), -EPROTO);
    node->epoch_fails = 0;
    assert_int_equal(welcome(node, 8), 0);
    assert_int_equal(node->saved_epoch, 8);
}

TEST(the_epoch_of_before_is_obeyed_without_a_write)
{
    _cleanup_(node_freep) struct node *node = node_new(7);
    hello(node);
    assert_int_equal(welcome(node, 7), 0);
    assert_int_equal(node->saved_epoch, 0);
}

/* A store that was restored from an older copy gives the same attempt out again. */
TEST(an_order_with_another_token_leaves_the_attempt_alone_and_the_link_up)
{
    _cleanup_(node_freep) struct node *node = node_running();
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN + 1), 0);
    assert_sent(node, MESSAGE_RETURNED);
    assert_int_equal(node->returned_token, TOKEN + 1);
    assert_string_equal(node->text, "the node still has another attempt with this number");
    assert_int_equal(order(node, MESSAGE_STOP, 0, TOKEN + 1), 0);
    assert_sent(node, MESSAGE_RETURNED);
    assert_int_equal(order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN + 1), 0);
    assert_int_equal(order(node, MESSAGE_GO, 0, TOKEN + 1), 0);
    assert_int_equal(node->commands, 0);
    step_ends(node);
    assert_sent(node, MESSAGE_EXITED);
    assert_int_equal(order(node, MESSAGE_RELEASE_ATTEMPT, 0, TOKEN), 0);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

/* Its HELLO has to fit into a frame (wire_message). */
TEST(a_full_node_returns_launches_and_prepares_nothing)
{
    _cleanup_(node_freep) struct node *node = node_new(0);
    node->spool = (struct attempt_observation){ .has_spec = true };
    for (uint64_t job = 1000; job < 1000 + NODE_ATTEMPTS_MAX; job++)
        agent_core_load(node->core, 0, &(struct spool_id){ job, 1, 0, 0 }, TOKEN);
    hello(node);
    assert_int_equal(node->known, NODE_ATTEMPTS_MAX);
    (void)welcome(node, 1);
    node->sent_count = 0;
    assert_int_equal(order(node, MESSAGE_PREPARE, 0, TOKEN), 0);
    assert_int_equal(node->sent_count, 0);
    assert_int_equal(order(node, MESSAGE_LAUNCH, 0, TOKEN), 0);
    assert_sent(node, MESSAGE_RETURNED);
    assert_string_equal(node->text, "the node has reached its limit of attempts");
    assert_int_equal(agent_core_attempts(node->core), NODE_ATTEMPTS_MAX);
}

/* A controller whose store is an older copy must not number its orders like earlier ones. */
TEST(the_hello_has_the_numbers_of_the_latest_orders_about_what_runs)
{
    _cleanup_free_ struct node *node = node_connected();
    struct error err = { 0 };
    struct message_update update = { .id.job = 5, .id.attempt = 1, .token = TOKEN, .number = 7 };
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    gate_opens(node);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_UPDATE, &update, &err), 0);
    agent_core_link_down(node->core);
    node->recalled = (struct known_attempt){ .terms = 1, .park_number = 4, .park_seen = PARK_SEEN_PARKED };
    hello(node);
    assert_int_equal(node->told.terms, 7);
    assert_int_equal(node->told.park_number, 4);
    assert_int_equal(node->told.park_seen, PARK_SEEN_PARKED);
    agent_core_free(node->core); // it is started again
    _cleanup_(node_freep) struct node *later = node_new(1);
    later->spool = node->spool;
    later->recalled = node->recalled;
    agent_core_load(later->core, 0, &id, TOKEN);
    hello(later);
    assert_int_equal(later->told.terms, 1);
}

CASE(what_only_an_agent_may_say_is_refused, node)
{
    struct error err = { 0 };
    struct message_gpus gpus = { 0 };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_GPUS, &gpus, &err), -EPROTO);
    assert_non_null(strstr(err.message, "GPUS"));
    assert_int_equal(welcome(node, 9), -EPROTO);
}

TEST(a_found_attempt_waits_for_the_controllers_word)
{
    _cleanup_(node_freep) struct node *node = node_new(0);
    node->spool = (struct attempt_observation){ .has_spec = true };
    agent_core_load(node->core, 0, &id, TOKEN);
    hello(node);
    assert_int_equal(node->phase, PHASE_STAGED);
    (void)welcome(node, 1);
    assert_int_equal(node->starts, 0);
    (void)order(node, MESSAGE_LAUNCH, 0, TOKEN);
    assert_int_equal(node->stages, 0);
    assert_int_equal(node->starts, 1);
}

TEST(samples_and_logs_pass_only_while_the_controller_is_obeyed)
{
    _cleanup_(node_freep) struct node *node = node_new(0);
    struct message_gpus gpus = { 0 };
    struct message_open_log request = { .stream = 1 };
    struct error err = { 0 };
    agent_core_gpus(node->core, &gpus);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_OPEN_LOG, &request, &err), -EPROTO);
    hello(node);
    (void)welcome(node, 1);
    agent_core_gpus(node->core, &gpus);
    assert_sent(node, MESSAGE_HELLO, MESSAGE_GPUS);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_OPEN_LOG, &request, &err), 0);
    assert_int_equal(node->logs, 1);
}

CASE(terminals_guests_and_signals_pass_and_change_no_attempt, node)
{
    struct message_open_terminal terminal = { .id.job = 5, .id.attempt = 1, .stream = 1 };
    struct message_open_step exec_step = { .id.job = 5, .id.attempt = 1, .stream = 2 };
    struct message_rejoin_step rejoin = { .id.job = 5, .id.attempt = 1, .stream = 4, .key = 9 };
    struct message_open_port port = { .id.job = 5, .id.attempt = 1, .stream = 3, .port = 80 };
    struct message_signal order = { .id.job = 5, .id.attempt = 1, .token = 77, .signal = 2 };
    struct error err = { 0 };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_OPEN_TERMINAL, &terminal, &err), 0);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_OPEN_STEP, &exec_step, &err), 0);
    assert_int_equal(node->terminals, 1);
    assert_int_equal(node->exec_steps, 1);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_REJOIN_STEP, &rejoin, &err), 0);
    assert_int_equal(node->rejoins, 1);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_OPEN_PORT, &port, &err), 0);
    assert_int_equal(node->ports, 1);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_SIGNAL, &order, &err), 0);
    assert_int_equal(node->commands, 0); // nobody knows that attempt
    assert_int_equal(agent_core_attempts(node->core), 0);
}

TEST(what_is_told_is_answered_while_the_link_is_up)
{
    _cleanup_(node_freep) struct node *node = node_new(0);
    struct message_notify tell = { .notification = 7, .job = 5, .time_ms = 1000 };
    const struct message_notified told = { .notification = 7 };
    struct error err = { 0 };
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_NOTIFY, &tell, &err), -EPROTO);
    agent_core_notified(node->core, &told);
    hello(node);
    (void)welcome(node, 1);
    assert_int_equal(agent_core_message(node->core, 0, MESSAGE_NOTIFY, &tell, &err), 0);
    assert_int_equal(node->tells, 1);
    agent_core_notified(node->core, &told);
    agent_core_link_down(node->core);
    agent_core_notified(node->core, &told);
    assert_sent(node, MESSAGE_HELLO, MESSAGE_NOTIFIED);
    assert_int_equal(agent_core_attempts(node->core), 0);
}

TEST(a_time_to_tell_in_that_is_none_is_refused)
{
    static const int64_t times_ms[] = { 0, -5, INT64_MIN, NOTIFY_TIME_MAX_MS + 1, INT64_MAX };
    _cleanup_(node_freep) struct node *node = node_new(0);
    struct error err = { 0 };
    hello(node);
    (void)welcome(node, 1);
    for (size_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++) {
        struct message_notify tell = { .notification = 7 + i, .job = 5, .time_ms = times_ms[i] };
        assert_int_equal(agent_core_message(node->core, 0, MESSAGE_NOTIFY, &tell, &err), 0);
    }
    assert_int_equal(node->tells, 0);
    assert_sent(node, MESSAGE_HELLO, MESSAGE_NOTIFIED, MESSAGE_NOTIFIED, MESSAGE_NOTIFIED, MESSAGE_NOTIFIED,
        MESSAGE_NOTIFIED);
}
