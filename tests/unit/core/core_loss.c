/* SPDX-License-Identifier: MIT */
/* Nodes that fall silent, on a clock made by hand. */
#include "bench.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"

#define TIMEOUT_MS 30000
#define LEASE_MS   300000
#define MARGIN_MS  (LEASE_MS / 100 + 30000)

static int one, two;
static const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };

static int open_watching(void **state)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.loss = (struct loss_settings){ .timeout_ms = TIMEOUT_MS, .lease_ms = LEASE_MS };
    bench_configure(b);
    return bench_hello(b, 1, "boot", 2, NULL, 0);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_watching, bench_close)

static const struct core_node *box(const struct bench *b)
{
    return core_node_named(b->core, "box");
}

/* The timer fires on time. */
static void pass(struct bench *b, int64_t ms)
{
    for (int64_t until_ms = b->now_ms + ms; b->now_ms < until_ms;) {
        b->now_ms = b->armed_ms > b->now_ms && b->armed_ms < until_ms ? b->armed_ms : until_ms;
        core_timer(b->core, b->now_ms, b->now_ms);
        bench_settle(b);
    }
}

static int say_heartbeat(struct bench *b, uint32_t link)
{
    struct message_heartbeat heartbeat = { .sent_ms = b->now_ms };
    struct error err;
    return core_link_message(b->core, b->now_ms, b->now_ms, link, MESSAGE_HEARTBEAT, &heartbeat, &err);
}

/* A job that requests to be requeued after a loss, or not. */
static struct sent run_leased(struct bench *b, bool goes_on)
{
    struct identity who = { .is_known = true, .uid = 1000, .gid = 1000 };
    struct job_spec *spec = bench_spec("true");
    spec->ask.requeue_on_node_lost = goes_on;
    bench_submit_spec(b, &who, spec, &one);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    (void)bench_started(b, 1, &launch);
    bench_settle(b);
    return launch;
}

static void lose(struct bench *b)
{
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    bench_settle(b);
}

static int fence(struct bench *b, const char *name)
{
    core_fence(b->core, b->now_ms, b->now_ms, &admin, name, "it has no power", &two);
    bench_settle(b);
    int code = bench_answer(b, &two)->code;
    b->n_answers = 0;
    return code;
}

static struct sent run_one(struct bench *b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    (void)bench_started(b, 1, &launch);
    bench_settle(b);
    return launch;
}

CASE(a_silent_node_is_unreachable_and_its_jobs_stay, b)
{
    (void)run_one(b);
    int64_t last_contact_ms = b->now_ms;
    pass(b, TIMEOUT_MS - 1000);
    assert_true(box(b)->is_up);
    pass(b, 2000);
    assert_false(box(b)->is_up);
    assert_true(box(b)->is_unreachable);
    assert_in_range(box(b)->last_contact_wall_ms, last_contact_ms - 10, last_contact_ms + 10);
    assert_int_equal(b->closed, 1);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    pass(b, 100 * TIMEOUT_MS);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

/* A store that was restored gives attempts the numbers of others. */
CASE(end_of_an_attempt_with_another_token_is_ignored, b)
{
    struct sent other = run_one(b);
    other.token++;
    (void)bench_exited(b, 1, &other, END_EXIT, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

CASE(nothing_starts_on_an_unreachable_node, b)
{
    pass(b, TIMEOUT_MS + 1000);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
}

CASE(heartbeats_are_answered_and_keep_a_node_up, b)
{
    for (int i = 0; i < 20; i++) {
        b->n_sent = 0;
        assert_int_equal(say_heartbeat(b, 1), 0);
        assert_int_equal(b->sent[0].id, MESSAGE_HEARTBEAT_ACK);
        pass(b, TIMEOUT_MS - 1000);
    }
    assert_true(box(b)->is_up);
}

/* The node counts its lease from the heartbeat that was answered last, and so does the controller. */
CASE(each_heartbeat_that_is_answered_renews_the_lease, b)
{
    (void)run_leased(b, true);
    for (int64_t until_ms = b->now_ms + 2 * (LEASE_MS + MARGIN_MS); b->now_ms < until_ms;) {
        assert_int_equal(say_heartbeat(b, 1), 0);
        pass(b, TIMEOUT_MS - 1000);
    }
    assert_int_equal(say_heartbeat(b, 1), 0);
    pass(b, LEASE_MS - 1000);
    assert_false(box(b)->is_up);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    assert_int_equal(core_job(b->core, 11)->restarts, 0);
    pass(b, MARGIN_MS + 2000);
    assert_int_equal(core_job(b->core, 11)->restarts, 1);
}

CASE(a_short_lease_is_renewed_in_time, b)
{
    b->options.loss.lease_ms = 3000;
    bench_configure(b);
    b->n_sent = 0;
    assert_int_equal(bench_hello(b, 2, "boot", 2, NULL, 0), 0);
    assert_int_equal(b->sent[0].id, MESSAGE_WELCOME);
    assert_in_range(b->sent[0].heartbeat_ms, 1, 3000 / 4);
}

CASE(a_node_that_comes_back_is_up_and_its_results_count, b)
{
    struct sent launch = run_one(b);
    pass(b, TIMEOUT_MS + 1000);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = launch.attempt, .token = launch.token, .phase = PHASE_EXITED
    };
    assert_int_equal(say_heartbeat(b, 1), -EPROTO); // the old link is over
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_true(box(b)->is_up);
    assert_false(box(b)->is_unreachable);
    assert_int_equal(bench_exited(b, 2, &launch, END_EXIT, 7), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->exit_code, 7);
}

CASE(a_closed_link_is_down_at_once_and_unreachable_later, b)
{
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    bench_settle(b);
    assert_false(box(b)->is_up);
    assert_false(box(b)->is_unreachable);
    pass(b, TIMEOUT_MS + 1000);
    assert_true(box(b)->is_unreachable);
}

CASE(our_own_absence_is_not_held_against_a_node, b)
{
    b->now_ms += 10 * TIMEOUT_MS; // stopped, or the machine slept
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    assert_true(box(b)->is_up);
    pass(b, TIMEOUT_MS + 1000);
    assert_true(box(b)->is_unreachable);
}

CASE(a_fence_ends_what_ran, b)
{
    (void)run_leased(b, false);
    lose(b);
    assert_int_equal(fence(b, "box"), 0);
    const struct job *job = core_job(b->core, 11);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_NODE_LOST);
    assert_string_equal(job->text, "node box was fenced: it has no power");
    assert_int_equal(core_node_named(b->core, "box")->mark->kind, CHANGE_NODE_FENCE);
}

CASE(a_fence_queues_again_what_asked_for_it, b)
{
    (void)run_leased(b, true);
    lose(b);
    assert_int_equal(fence(b, "box"), 0);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_equal(core_job(b->core, 11)->restarts, 1);
}

CASE(what_may_run_on_a_node_does_until_it_is_fenced, b)
{
    assert_false(core_has_attempts_on(b->core, "box"));
    (void)run_leased(b, false);
    lose(b);
    assert_true(core_has_attempts_on(b->core, "box"));
    assert_int_equal(fence(b, "box"), 0);
    assert_false(core_has_attempts_on(b->core, "box"));
}

CASE(a_node_that_is_up_or_unknown_is_not_fenced, b)
{
    (void)run_leased(b, true);
    assert_int_equal(fence(b, "box"), -EISCONN);
    assert_int_equal(fence(b, "moon"), -ENOENT);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

CASE(a_fenced_node_that_returns_gets_nothing_before_its_old_attempts_are_over, b)
{
    struct sent old = run_leased(b, true);
    lose(b);
    assert_int_equal(fence(b, "box"), 0);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = old.attempt, .token = old.token, .phase = PHASE_RUNNING
    };
    b->n_sent = 0;
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    core_drain(b->core, b->now_ms, b->now_ms, &admin, "box", NULL, 0, true, &two); // put back too early
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_equal(box(b)->n_orphaned, 1);
    assert_int_equal(bench_exited(b, 2, &old, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_int_equal(box(b)->n_orphaned, 0);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
    assert_int_equal(core_job(b->core, 11)->attempt, 2);
}

/* Its job is over, and its GPU free in the ledger: the next job must not get it while the old one runs. */
CASE(what_a_fenced_node_still_runs_of_a_job_that_is_over_is_killed_first, b)
{
    struct sent old = run_leased(b, false);
    lose(b);
    assert_int_equal(fence(b, "box"), 0);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    core_drain(b->core, b->now_ms, b->now_ms, &admin, "box", NULL, 0, true, &two);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = old.attempt, .token = old.token, .phase = PHASE_RUNNING
    };
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->grace_ms, 0);
    bench_submit(b, 1000, 2, NULL, &one);
    bench_settle(b);
    assert_null(bench_sent(b, MESSAGE_LAUNCH, 12));
    assert_int_equal(bench_exited(b, 2, &old, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 12));
}

CASE(what_was_staged_of_a_job_that_is_over_is_taken_back, b)
{
    struct sent old = run_leased(b, false);
    lose(b);
    assert_int_equal(fence(b, "box"), 0);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = old.attempt, .token = old.token, .phase = PHASE_STAGED
    };
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    assert_int_equal(bench_returned(b, 2, &old), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 11));
    assert_int_equal(box(b)->n_orphaned, 0);
}

CASE(nothing_is_stopped_for_a_fence_that_is_not_durable, b)
{
    struct sent old = run_leased(b, true);
    lose(b);
    core_fence(b->core, b->now_ms, b->now_ms, &admin, "box", "it has no power", &two);
    bench_turn(b);
    assert_non_null(b->flying);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = old.attempt, .token = old.token, .phase = PHASE_RUNNING
    };
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    assert_null(bench_sent(b, MESSAGE_STOP, 11));
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
}

static void assert_told(struct bench *b, const enum change_kind *kinds, size_t n)
{
    assert_int_equal(b->n_changes, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(change_kind_name((enum change_kind)b->changes[i]), change_kind_name(kinds[i]));
    b->n_changes = 0;
}

CASE(each_coming_and_going_of_a_node_is_an_event, b)
{
    bench_settle(b);
    b->n_changes = 0;
    lose(b);
    assert_told(b, (const enum change_kind[]){ CHANGE_NODE_DOWN }, 1);
    assert_int_equal(bench_hello(b, 2, "boot", 2, NULL, 0), 0);
    bench_settle(b);
    assert_told(b, (const enum change_kind[]){ CHANGE_NODE_UP }, 1);
    assert_int_equal(bench_hello(b, 3, "boot", 2, NULL, 0), 0); // a newer link, before the older one's end
    bench_settle(b);
    assert_told(b, NULL, 0);
    core_note_node(b->core, b->now_ms, b->now_ms, CHANGE_NODE_FORGET, 0, "box");
    bench_settle(b);
    assert_told(b, (const enum change_kind[]){ CHANGE_NODE_FORGET }, 1);
}

CASE(a_node_that_is_not_rid_of_old_attempts_is_told_of_at_once, b)
{
    struct sent old = run_leased(b, true);
    lose(b);
    assert_int_equal(fence(b, "box"), 0);
    struct known_attempt known = {
        .id.job = 11, .id.attempt = old.attempt, .token = old.token, .phase = PHASE_RUNNING
    };
    b->n_changes = 0;
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_told(b, (const enum change_kind[]){ CHANGE_NODE_BACK }, 1);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    bench_settle(b);
    assert_told(b, (const enum change_kind[]){ CHANGE_NODE_DOWN }, 1);
    assert_int_equal(bench_hello(b, 3, "boot", 2, &known, 1), 0);
    assert_int_equal(bench_exited(b, 3, &old, END_CANCELLED, 143), 0);
    bench_settle(b);
    assert_told(b, (const enum change_kind[]){ CHANGE_NODE_BACK, CHANGE_NODE_UP }, 2);
}

CASE(a_lease_is_given_up_only_after_its_margin, b)
{
    struct sent launch = run_leased(b, true);
    assert_int_equal(job_run(core_job(b->core, 11))->node_lease_ms, LEASE_MS);
    assert_int_equal(say_heartbeat(b, 1), 0);
    lose(b);
    pass(b, LEASE_MS + MARGIN_MS - 1000);
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
    pass(b, 2000);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_equal(launch.attempt, 1);
}

CASE(a_job_that_did_not_ask_is_never_given_up, b)
{
    (void)run_leased(b, false);
    lose(b);
    pass(b, 10 * (LEASE_MS + MARGIN_MS));
    assert_int_equal(core_job(b->core, 11)->state, JOB_RUNNING);
}

static struct job *running_job(void)
{
    struct error err = { 0 };
    _cleanup_(job_spec_clear) struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    spec.cwd = xstrdup("/");
    spec.ask.requeue_on_node_lost = true;
    struct job *job = job_new(5, &spec);
    char node[] = "box", boot[] = "boot";
    struct job_event events[] = {
        { .job = 5, .type = EVENT_SUBMITTED, .wall_ms = 1 },
        { .job = 5,
            .type = EVENT_ALLOCATED,
            .attempt = 1,
            .token = 9,
            .node = node,
            .boot_id = boot,
            .node_lease_ms = LEASE_MS },
        { .job = 5, .type = EVENT_STARTED, .attempt = 1, .wall_ms = 2 },
    };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        assert_int_equal(job_apply(job, &events[i], &err), 0);
    return job;
}

/* The last word that the node had of the controller before it died may be as late as that. */
CASE(after_a_restart_every_lease_counts_from_then, b)
{
    b->now_ms = 10LL * LEASE_MS;
    bench_restart(b, running_job());
    assert_false(box(b)->is_up);
    pass(b, LEASE_MS + MARGIN_MS - 1000);
    assert_int_equal(core_job(b->core, 5)->state, JOB_RUNNING);
    assert_true(box(b)->is_unreachable);
    pass(b, 2000);
    assert_int_equal(core_job(b->core, 5)->state, JOB_QUEUED);
}
