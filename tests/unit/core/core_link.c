/* SPDX-License-Identifier: MIT */
/* Which HELLO is accepted, late copies of it, and what is known of disconnected nodes.
 */
#include "bench.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "memory_store.h"

#define TIMEOUT_MS 30000

static int one, two;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static int open_watching(void **state)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.loss = (struct loss_settings){ .timeout_ms = TIMEOUT_MS, .lease_ms = TIMEOUT_MS };
    bench_configure(b);
    return 0;
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_watching, bench_close)

/* Of a node with two GPUs that knows of no attempt. Nothing of it is durable yet. */
static int say_hello(struct bench *b, uint32_t link, const char *node, const char *boot, int64_t sent_ms)
{
    struct message_hello message = { .protocol = LINK_PROTOCOL,
        .node = xstrdup(node),
        .boot_id = xstrdup(boot),
        .cpus = 2,
        .sent_ms = sent_ms };
    struct gpu_state *states = xcalloc(2, sizeof(*states));
    for (uint32_t i = 0; i < 2; i++)
        states[i] = (struct gpu_state){
            .index = i, .uuid = xasprintf("%s-%u", node, i), .memory_bytes = 24ULL << 30, .numa = -1
        };
    message.gpus = (struct record_list){ states, 2 };
    struct error err;
    int r = core_link_up(b->core, b->now_ms, b->now_ms, link, &message, &err);
    record_clear(&message_hello_record, &message);
    return r;
}

static int hello(struct bench *b, uint32_t link, const char *node, const char *boot, int64_t sent_ms)
{
    int r = say_hello(b, link, node, boot, sent_ms);
    bench_settle(b);
    return r;
}

static void run_one(struct bench *b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    (void)bench_started(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11));
    bench_settle(b);
}

static void lose(struct bench *b, uint32_t link)
{
    core_link_down(b->core, b->now_ms, b->now_ms, link);
    bench_settle(b);
}

CASE(words_of_an_older_connection_are_not_believed, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    run_one(b);
    assert_int_equal(hello(b, 2, "box", "boot", 400), -ESTALE);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    assert_int_equal(core_node_named(b->core, "box")->link, 1);
}

CASE(they_are_not_believed_while_the_node_is_away_either, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    run_one(b);
    lose(b, 1);
    assert_int_equal(hello(b, 2, "box", "boot", 400), -ESTALE);
    assert_false(core_node_named(b->core, "box")->is_up);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

CASE(a_newer_connection_takes_the_place_of_one_that_looks_alive, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    assert_int_equal(hello(b, 2, "box", "boot", 600), 0);
    assert_int_equal(core_node_named(b->core, "box")->link, 2);
}

CASE(an_agent_that_tells_no_time_is_believed, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    assert_int_equal(hello(b, 2, "box", "boot", 0), 0);
}

CASE(another_machine_with_the_name_of_one_that_is_up_stays_out, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    run_one(b);
    assert_int_equal(hello(b, 2, "box", "boot of a copy", 10), -EBUSY);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    assert_int_equal(core_node_named(b->core, "box")->link, 1);
}

/* Two containers on one host have its boot id, and each its spool. */
CASE(another_spool_of_a_boot_that_is_up_stays_out, b)
{
    assert_int_equal(hello(b, 1, "box", "boot+1", 500), 0);
    run_one(b);
    assert_int_equal(hello(b, 2, "box", "boot+2", 600), -EBUSY);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    assert_int_equal(hello(b, 3, "box", "boot+2", 700), 0); // it was emptied
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_UNKNOWN);
}

/* Its machine was reset, and the old connection looks alive until it is found to be silent. */
CASE(a_node_that_started_anew_is_let_in_when_its_silence_is_noticed, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    run_one(b);
    assert_int_equal(hello(b, 2, "box", "next boot", 10), -EBUSY);
    while (core_node_named(b->core, "box")->is_up) {
        b->now_ms = b->armed_ms;
        core_timer(b->core, b->now_ms, b->now_ms);
        bench_settle(b);
    }
    assert_int_equal(hello(b, 3, "box", "next boot", 20), 0);
    assert_int_equal(core_job(b->core, 11)->end, END_REBOOT);
}

CASE(the_boot_before_does_not_come_back, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    lose(b, 1);
    assert_int_equal(hello(b, 2, "box", "next boot", 10), 0);
    run_one(b);
    lose(b, 2);
    assert_int_equal(hello(b, 3, "box", "boot", 900), -ESTALE);
    assert_int_equal(hello(b, 4, "box", "next boot", 20), 0);
}

/* A machine whose place another one had for a while. */
CASE(no_word_is_late_after_a_quarter_of_an_hour, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    lose(b, 1);
    assert_int_equal(hello(b, 2, "box", "next boot", 10), 0);
    lose(b, 2);
    b->now_ms += 15LL * 60 * 1000;
    assert_int_equal(hello(b, 3, "box", "boot", 900), 0);
}

/* Emptied while its agent was dead: perhaps the job has run, so it is not launched there again. */
CASE(an_attempt_is_not_launched_again_into_another_spool, b)
{
    assert_int_equal(hello(b, 1, "box", "boot+1", 500), 0);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 11));
    lose(b, 1);
    b->n_sent = 0;
    assert_int_equal(hello(b, 2, "box", "boot+2", 600), 0);
    assert_null(bench_sent(b, MESSAGE_LAUNCH, 11));
    assert_int_equal(core_job(b->core, 11)->end, END_UNKNOWN);
}

CASE(the_spool_before_does_not_come_back, b)
{
    assert_int_equal(hello(b, 1, "box", "boot+2", 600), 0);
    assert_int_equal(hello(b, 2, "box", "boot+1", 500), -ESTALE);
    assert_int_equal(hello(b, 3, "box", "boot+3", 700), -EBUSY); // its old connection is not missed yet
    lose(b, 1);
    assert_int_equal(hello(b, 3, "box", "boot+3", 700), 0);
}

CASE(an_attempt_is_launched_again_into_the_same_spool, b)
{
    assert_int_equal(hello(b, 1, "box", "boot+1", 500), 0);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    lose(b, 1);
    b->n_sent = 0;
    assert_int_equal(hello(b, 2, "box", "boot+1", 600), 0);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 11));
}

CASE(another_spool_of_another_boot_is_a_start_of_the_machine, b)
{
    assert_int_equal(hello(b, 1, "box", "boot+1", 500), 0);
    run_one(b);
    lose(b, 1);
    assert_int_equal(hello(b, 2, "box", "boot 2+1", 600), 0);
    assert_int_equal(core_job(b->core, 11)->end, END_REBOOT);
}

CASE(launches_are_numbered_above_all_that_welcome_told_of, b)
{
    assert_int_equal(hello(b, 1, "box", "boot", 500), 0);
    uint64_t before = bench_sent(b, MESSAGE_WELCOME, 0)->order;
    run_one(b);
    uint64_t first = bench_sent(b, MESSAGE_LAUNCH, 11)->order;
    assert_true(first > before);
    bench_submit(b, 1000, 1, NULL, &two);
    bench_settle(b);
    uint64_t second = bench_sent(b, MESSAGE_LAUNCH, 12)->order;
    assert_true(second > first);
    lose(b, 1);
    b->n_sent = 0;
    assert_int_equal(hello(b, 2, "box", "boot", 600), 0);
    assert_true(bench_sent(b, MESSAGE_WELCOME, 0)->order >= second);
    bench_restart(b, NULL);
    b->n_sent = 0;
    assert_int_equal(hello(b, 1, "box", "boot", 700), 0);
    assert_true(bench_sent(b, MESSAGE_WELCOME, 0)->order > second);
}

/* --- sizes --- */

static void submit_wide(struct bench *b, uint32_t nodes, void *request)
{
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = 2 * nodes;
    spec->ask.nodes = nodes;
    bench_submit_spec(b, &owner, spec, request);
}

/* What the store keeps of a node's HELLO. */
static void take_row(struct bench *b, uint32_t link, const char *node, struct buffer *ret)
{
    assert_int_equal(say_hello(b, link, node, "boot", 0), 0);
    bench_turn(b);
    assert_non_null(b->flying);
    for (size_t i = 0; i < b->flying->n_states; i++) {
        const struct state_change *row = &b->flying->states[i];
        if (strcmp(row->kind, CORE_NODE_SIZE) == 0 && strcmp(row->key, node) == 0)
            buffer_append(ret, row->value.bytes, row->value.length);
    }
    bench_settle(b);
    assert_true(ret->length > 0);
}

CASE(what_could_run_before_a_restart_is_taken_before_its_nodes_are_back, b)
{
    _cleanup_buffer_ struct buffer near = { 0 }, far = { 0 };
    take_row(b, 1, "near", &near);
    take_row(b, 2, "far", &far);
    core_free(b->core);
    b->core = core_new(&b->options, &b->effects);
    core_load_summary(b->core, &(struct store_summary){ .epoch = 4, .last_job = 10, .last_event = 100 });
    struct error err = { 0 };
    assert_int_equal(core_load_state(b->core, CORE_NODE_SIZE, "near", near.bytes, near.length, &err), 0);
    assert_int_equal(core_load_state(b->core, CORE_NODE_SIZE, "far", far.bytes, far.length, &err), 0);
    core_load_end(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    assert_int_equal(hello(b, 1, "near", "boot", 0), 0);
    submit_wide(b, 3, &one);
    assert_int_equal(bench_answer(b, &one)->code, -EBADSLT);
    submit_wide(b, 2, &two);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    uint64_t job = bench_answer(b, &two)->job;
    assert_int_equal(core_job(b->core, job)->state, JOB_QUEUED);
    assert_int_equal(hello(b, 2, "far", "boot", 0), 0);
    assert_int_equal(core_job(b->core, job)->state, JOB_STARTING);
}

CASE(a_row_without_a_node_is_refused, b)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct error err = { 0 };
    record_encode(&cluster_change_record, &(struct cluster_change){ .kind = CHANGE_NODE_UP }, &bytes);
    assert_int_equal(
        core_load_state(b->core, CORE_NODE_SIZE, "x", bytes.bytes, bytes.length, &err), -EBADMSG);
}

/* The node is refused until it is durable that it is held. */
static void hello_is_held(struct bench *bench, uint32_t link, uint64_t epoch, int64_t began_ms,
    uint64_t event, const struct known_attempt *known)
{
    assert_int_equal(bench_hello_seen(bench, link, epoch, began_ms, event, known), -EAGAIN);
    assert_null(bench_sent(bench, MESSAGE_WELCOME, 0));
    bench_settle(bench);
    assert_int_equal(bench_hello_seen(bench, link + 10, epoch, began_ms, event, known), 0);
    bench_settle(bench);
    assert_true(core_node_named(bench->core, "box")->mark->is_held);
}

/* A job that is queued in an older copy of the store may have run since. */
TEST_WITH(a_restored_store_starts_nothing_until_its_nodes_are_resumed, bench_open, bench_close)
{
    struct bench *bench = *state;
    const struct store_summary summary = {
        .epoch = 4, .last_job = 10, .last_event = 100, .is_old_copy = true
    };
    const struct identity root = { .is_known = true, .role = ROLE_ADMIN };
    int submitted = 0, resumed = 0;
    core_free(bench->core);
    bench->core = core_new(&bench->options, &bench->effects);
    core_load_summary(bench->core, &summary);
    core_load_end(bench->core, bench->now_ms, bench->now_ms);
    bench_settle(bench);
    hello_is_held(bench, 1, 0, 0, 0, NULL);
    bench_submit(bench, 1000, 1, NULL, &submitted);
    bench_settle(bench);
    uint64_t job = bench_answer(bench, &submitted)->job;
    assert_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    core_drain(bench->core, bench->now_ms, bench->now_ms, &root, "box", NULL, 0, true, &resumed);
    bench_settle(bench);
    assert_int_equal(bench_answer(bench, &resumed)->code, 0);
    assert_non_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    assert_int_equal(bench_hello(bench, 2, "b00t", 1, NULL, 0), 0); // and it is not drained again
    bench_settle(bench);
    assert_null(core_node_named(bench->core, "box")->mark);
}

/* A core on a store in whose time nodes were told of event 100 at most, and of epoch 3. */
static void restart_at_event_100(struct bench *bench)
{
    const struct store_summary summary = { .epoch = 4, .last_job = 10, .last_event = 100 };
    core_free(bench->core);
    bench->core = core_new(&bench->options, &bench->effects);
    core_load_summary(bench->core, &summary);
    core_load_end(bench->core, bench->now_ms, bench->now_ms);
    bench_settle(bench);
}

static uint64_t submit(struct bench *bench, void *request)
{
    bench_submit(bench, 1000, 1, NULL, request);
    bench_settle(bench);
    return bench_answer(bench, request)->job;
}

TEST_ON(a_node_that_knows_no_more_than_the_store_is_not_held, struct bench *bench, bench_open, bench_close)
{
    restart_at_event_100(bench);
    assert_int_equal(bench_hello_seen(bench, 1, 3, 77, 100, NULL), 0);
    bench_settle(bench);
    assert_false(core_is_store_old(bench->core));
    uint64_t job = submit(bench, &one);
    assert_int_equal(job, 11);
    assert_non_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    /* What it was told since is of this run. */
    const struct sent *launch = bench_sent(bench, MESSAGE_LAUNCH, job);
    assert_true(launch->event > 100);
    struct known_attempt known = {
        .id.job = job, .id.attempt = 1, .token = launch->token, .phase = PHASE_RUNNING
    };
    const struct sent *welcome = bench_sent(bench, MESSAGE_WELCOME, 0);
    assert_int_equal(bench_hello_seen(bench, 2, 4, welcome->began_ms, launch->event, &known), 0);
    assert_false(core_is_store_old(bench->core));
}

TEST_WITH(a_node_that_knows_more_than_the_store_shows_that_the_store_is_old, bench_open, bench_close)
{
    const struct {
        uint64_t epoch;
        int64_t began_ms;
        uint64_t event;
    } rows[] = {
        { 5, 0, 0 },    // a later epoch
        { 5, 77, 20 },  // and another run of it
        { 4, 77, 20 },  // the same epoch, of another run
        { 3, 77, 101 }, // an event behind the last one
        { 3000000, 77, 9000000 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *bench = *state;
        bench->n_sent = bench->n_answers = 0;
        restart_at_event_100(bench);
        hello_is_held(bench, 1, rows[i].epoch, rows[i].began_ms, rows[i].event, NULL);
        assert_true(core_is_store_old(bench->core));
        assert_true(bench_sent(bench, MESSAGE_WELCOME, 0)->epoch > rows[i].epoch);
        uint64_t job = submit(bench, &one);
        assert_true(job > 10 + RESTORE_GAP);
        assert_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    }
}

/* It shows that the node has stored the epoch. */
static void beat(struct bench *bench, uint32_t link)
{
    const struct message_heartbeat heartbeat = { .sent_ms = 1 };
    assert_int_equal(core_link_message(bench->core, bench->now_ms, bench->now_ms, link, MESSAGE_HEARTBEAT,
                         &heartbeat, NULL),
        0);
    bench_settle(bench);
}

TEST_WITH(a_job_that_an_old_store_does_not_know_runs_until_its_node_is_resumed, bench_open, bench_close)
{
    struct bench *bench = *state;
    const struct identity root = { .is_known = true, .role = ROLE_ADMIN };
    const struct known_attempt known = { .id.job = 12, .id.attempt = 1, .token = 99, .phase = PHASE_RUNNING };
    restart_at_event_100(bench);
    hello_is_held(bench, 1, 3, 77, 130, &known);
    assert_null(bench_sent(bench, MESSAGE_STOP, 12));
    /* Another start knows by the mark that the node is held. */
    core_drain(bench->core, bench->now_ms, bench->now_ms, &root, "box", "mine", 0, false, &one);
    assert_int_equal(bench_hello_seen(bench, 12, 3, 77, 130, &known), 0);
    bench_settle(bench);
    assert_null(bench_sent(bench, MESSAGE_STOP, 12));
    beat(bench, 12);
    core_drain(bench->core, bench->now_ms, bench->now_ms, &root, "box", NULL, 0, true, &two);
    bench_settle(bench);
    assert_non_null(bench_sent(bench, MESSAGE_STOP, 12));
    uint64_t job = submit(bench, bench);
    assert_null(bench_sent(bench, MESSAGE_LAUNCH, job)); // its GPU may be the other's
    const struct sent over = { .job = 12, .attempt = 1, .token = 99 };
    assert_int_equal(bench_exited(bench, 12, &over, END_CANCELLED, 0), 0);
    bench_settle(bench);
    assert_non_null(bench_sent(bench, MESSAGE_LAUNCH, job));
}

static void start_in_epoch(struct bench *bench, uint64_t epoch)
{
    const struct store_summary summary = {
        .epoch = epoch, .last_job = RESTORE_GAP, .last_event = RESTORE_GAP
    };
    bench->n_sent = 0;
    core_free(bench->core);
    bench->core = core_new(&bench->options, &bench->effects);
    core_load_summary(bench->core, &summary);
    core_load_end(bench->core, bench->now_ms, bench->now_ms);
    bench_settle(bench);
}

/* A node from before the restore is held, and then resumed. */
static void resume_after_restore(struct bench *bench)
{
    const struct identity root = { .is_known = true, .role = ROLE_ADMIN };
    start_in_epoch(bench, RESTORE_GAP + 10);
    hello_is_held(bench, 1, 5, 77, 100, NULL);
    core_drain(bench->core, bench->now_ms, bench->now_ms, &root, "box", NULL, 0, true, NULL);
    bench_settle(bench);
}

/* It was off, or mgpud died before it was durable that the node is held. */
CASE(a_node_that_connects_when_a_restored_mgpud_was_started_again_is_held, bench)
{
    resume_after_restore(bench);
    /* Now it has accepted the new epoch. */
    start_in_epoch(bench, RESTORE_GAP + 11);
    assert_int_equal(bench_hello_seen(bench, 1, RESTORE_GAP + 10, 0, 0, NULL), 0);
    bench_settle(bench);
    assert_null(core_node_named(bench->core, "box")->mark);
    /* A new one has accepted none. */
    start_in_epoch(bench, RESTORE_GAP + 12);
    assert_int_equal(bench_hello_seen(bench, 1, 0, 0, 0, NULL), 0);
    bench_settle(bench);
    assert_null(core_node_named(bench->core, "box")->mark);
}

/* It may have run in the time that the store does not know. */
TEST_WITH(a_job_that_was_starting_in_an_old_store_is_not_launched_again, bench_open, bench_close)
{
    struct bench *bench = *state;
    assert_int_equal(bench_hello(bench, 1, "b00t", 1, NULL, 0), 0);
    uint64_t job = submit(bench, &one);
    assert_int_equal(core_job(bench->core, job)->state, JOB_STARTING);
    bench_restart(bench, bench_stored(bench, job));
    bench->n_sent = 0;
    hello_is_held(bench, 2, 1000, 77, 5000, NULL);
    assert_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    assert_int_equal(core_job(bench->core, job)->state, JOB_DONE);
    assert_int_equal(core_job(bench->core, job)->end, END_UNKNOWN);
}

/* If WELCOME is lost, it connects with the epoch from before once more, also to the next mgpud. */
TEST_WITH(nothing_is_allocated_on_a_node_before_it_has_stored_the_epoch_of_a_restored_store, bench_open,
    bench_close)
{
    struct bench *bench = *state;
    resume_after_restore(bench);
    uint64_t job = submit(bench, &one);
    assert_int_equal(core_job(bench->core, job)->state, JOB_QUEUED);
    assert_int_equal(bench_hello_seen(bench, 21, 5, 77, 100, NULL), 0);
    bench_settle(bench);
    assert_int_equal(core_job(bench->core, job)->state, JOB_QUEUED);
    beat(bench, 21);
    assert_int_equal(core_job(bench->core, job)->state, JOB_STARTING);
    assert_non_null(bench_sent(bench, MESSAGE_LAUNCH, job));
}

/* The node is resumed at once, and accepted then. */
static void resume_when_found_old(struct bench *bench)
{
    const struct identity root = { .is_known = true, .role = ROLE_ADMIN };
    bench->n_sent = 0;
    assert_int_equal(bench_hello_seen(bench, 2, 1000, 77, 5000, NULL), -EAGAIN);
    bench_settle(bench);
    core_drain(bench->core, bench->now_ms, bench->now_ms, &root, "box", NULL, 0, true, NULL);
    bench_settle(bench);
    assert_int_equal(bench_hello_seen(bench, 3, 1000, 77, 5000, NULL), 0);
    bench_settle(bench);
    assert_null(core_node_named(bench->core, "box")->mark);
}

TEST_ON(nor_if_its_node_is_resumed_before_it_is_accepted, struct bench *bench, bench_open, bench_close)
{
    assert_int_equal(bench_hello(bench, 1, "b00t", 1, NULL, 0), 0);
    uint64_t job = submit(bench, &one);
    bench_restart(bench, bench_stored(bench, job));
    resume_when_found_old(bench);
    assert_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    assert_int_equal(core_job(bench->core, job)->end, END_UNKNOWN);
}

static uint64_t allocate(struct bench *bench)
{
    assert_int_equal(bench_hello(bench, 1, "b00t", 1, NULL, 0), 0);
    uint64_t job = submit(bench, &one);
    bench->n_sent = 0;
    return job;
}

/* It has not run before: this mgpud would know of its end. */
TEST_WITH(a_job_that_was_allocated_before_the_store_was_found_old_is_launched_again, bench_open, bench_close)
{
    struct bench *bench = *state;
    uint64_t job = allocate(bench);
    hello_is_held(bench, 2, 1000, 77, 5000, NULL);
    assert_non_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    assert_int_equal(core_job(bench->core, job)->state, JOB_STARTING);
}

TEST_ON(also_if_its_node_is_resumed_before_it_is_accepted, struct bench *bench, bench_open, bench_close)
{
    uint64_t job = allocate(bench);
    resume_when_found_old(bench);
    assert_non_null(bench_sent(bench, MESSAGE_LAUNCH, job));
    assert_int_equal(core_job(bench->core, job)->state, JOB_STARTING);
}

/* The sums would wrap, and all nodes refuse an epoch that is lower than before. */
TEST_ON(numbers_that_cannot_exist_are_refused, struct bench *bench, bench_open, bench_close)
{
    const struct known_attempt known = { .id.job = UINT64_MAX, .id.attempt = 1, .phase = PHASE_RUNNING };
    assert_int_equal(bench_hello_seen(bench, 1, UINT64_MAX, 77, 100, NULL), -EPROTO);
    assert_int_equal(bench_hello_seen(bench, 1, 1, 77, UINT64_MAX, NULL), -EPROTO);
    assert_int_equal(bench_hello_seen(bench, 1, 1, 77, 100, &known), -EPROTO);
    assert_false(core_is_store_old(bench->core));
}

/* They have accepted an epoch from before the gap. */
TEST_ON(other_nodes_connect_again_when_the_store_is_found_old, struct bench *bench, bench_open, bench_close)
{
    assert_int_equal(bench_hello_as(bench, 7, "other", 1), 0);
    bench_settle(bench);
    resume_when_found_old(bench);
    assert_int_equal(bench->closed, 7);
}
