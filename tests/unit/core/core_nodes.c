/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <errno.h>
#include <string.h>

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_two, bench_close)

static int one, two;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static const struct sent *launch_one(struct bench *b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    return bench_sent(b, MESSAGE_LAUNCH, 11);
}

CASE(a_launch_is_sent_only_when_the_attempt_is_durable, b)
{
    bench_submit(b, 1000, 1, NULL, &one);
    bench_turn(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
    assert_null(bench_sent(b, MESSAGE_LAUNCH, 11));
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, 11)->n_gpus, 1);
}

CASE(a_job_that_starts_in_its_submits_batch_is_launched_once, b)
{
    size_t count = 0;
    (void)launch_one(b);
    for (size_t i = 0; i < b->n_sent; i++)
        count += b->sent[i].id == MESSAGE_LAUNCH;
    assert_int_equal(count, 1);
}

/* Of an agent that lost its spool entry, and took that for an attempt that never ran. */
CASE(a_running_job_that_its_agent_returns_ends_as_unknown, b)
{
    const struct sent *launch = launch_one(b);
    (void)bench_started(b, 1, launch);
    bench_settle(b);
    (void)bench_returned(b, 1, launch);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_DONE);
    assert_int_equal(core_job(b->core, 11)->end, END_UNKNOWN);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 11));
}

CASE(an_end_is_forgotten_only_when_it_is_durable_and_frees_the_gpu_at_once, b)
{
    const struct sent *launch = launch_one(b);
    bench_submit(b, 1000, 2, NULL, &two);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
    assert_int_equal(bench_started(b, 1, launch), 0);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, 3), 0);
    bench_turn(b);
    assert_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 11));
    assert_int_equal(core_job(b->core, 12)->state, JOB_STARTING);
    uint64_t before = core_last_event(b->core);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 11));
    assert_true(
        bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 11)->event > before); // an older copy of the store shows
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 12));
    assert_int_equal(core_job(b->core, 11)->exit_code, 3);
}

CASE(a_repeated_end_changes_nothing_and_is_forgotten, b)
{
    struct sent launch = *launch_one(b);
    (void)bench_exited(b, 1, &launch, END_EXIT, 3);
    bench_settle(b);
    size_t published = b->n_published;
    b->n_sent = 0;
    assert_int_equal(bench_exited(b, 1, &launch, END_EXIT, 4), 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->exit_code, 3);
    assert_int_equal(b->n_published, published);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 11));
}

CASE(an_end_with_a_wrong_token_is_not_believed, b)
{
    struct sent launch = *launch_one(b);
    launch.token++;
    (void)bench_exited(b, 1, &launch, END_EXIT, 3);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
}

/* It would keep every later mgpud from starting: what is stored, and what is folded, goes without the text.
 */
CASE(an_event_that_could_not_be_read_back_is_recorded_in_part, b)
{
    const struct sent *launch = launch_one(b);
    char *text = xcalloc(1, EVENT_TEXT_MAX + 2);
    memset(text, 'x', EVENT_TEXT_MAX + 1);
    struct launch_exit record = { .id.job = launch->job,
        .id.attempt = launch->attempt,
        .token = launch->token,
        .end = END_START_FAILED,
        .text = text };
    struct error err = { 0 };
    assert_int_equal(core_link_message(b->core, b->now_ms, 5, 1, MESSAGE_EXITED, &record, &err), 0);
    bench_settle(b);
    free(text);
    _cleanup_(job_freep) struct job *job = bench_stored(b, launch->job);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(
        record_check(&job_event_record, &(struct job_event){ .job = 1, .text = job->text }, &err), 0);
}

CASE(a_returned_attempt_waits_and_is_tried_again, b)
{
    (void)bench_returned(b, 1, launch_one(b));
    bench_settle(b);
    char text[200];
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_string_equal(
        core_wait_reason(b->core, b->now_ms, core_find(b->core, 11), text, sizeof(text)), "backoff");
    assert_true(b->armed_ms <= b->now_ms + 1000); // others may have armed it for earlier
    bench_pass(b, 1000);
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, 11)->attempt, 2);
}

/* Nothing has failed, so nothing is waited for. */
CASE(an_attempt_that_was_stopped_to_be_requeued_before_it_started_is_tried_again_at_once, b)
{
    static int asked[12];
    for (uint32_t attempt = 1; attempt < 12; attempt++) { // more often than a start may fail
        const struct sent *launch = attempt == 1 ? launch_one(b) : bench_sent(b, MESSAGE_LAUNCH, 11);
        assert_int_equal(launch->attempt, attempt);
        core_requeue(b->core, b->now_ms, b->now_ms, &owner, 11, 0, false, &asked[attempt]);
        bench_settle(b);
        assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
        (void)bench_returned(b, 1, launch);
        bench_settle(b);
        assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
    }
}

CASE(a_job_that_never_starts_is_given_up, b)
{
    (void)launch_one(b);
    for (int i = 0; i < 20 && core_job(b->core, 11)->state != JOB_DONE; i++) {
        (void)bench_returned(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11));
        bench_settle(b);
        b->n_sent = core_job(b->core, 11)->state == JOB_DONE ? b->n_sent : 0;
        b->now_ms += 60000; // the longest that it waits
        core_timer(b->core, b->now_ms, b->now_ms);
        bench_settle(b);
    }
    assert_int_equal(core_job(b->core, 11)->end, END_START_FAILED);
    assert_int_equal(core_job(b->core, 11)->attempt, 8);
}

CASE(a_shepherd_that_died_before_the_gate_costs_an_attempt_not_the_job, b)
{
    const struct sent *launch = launch_one(b);
    (void)bench_started(b, 1, launch);
    bench_settle(b);
    (void)bench_exited(b, 1, launch, END_UNKNOWN, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    assert_int_equal(core_job(b->core, 11)->started_ms, 0);
}

CASE(a_cancel_of_a_starting_job_is_settled_by_the_agent, b)
{
    const struct sent *launch = launch_one(b);
    core_cancel(b->core, 1, 1, &owner, 11, 0, &two);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STOPPING);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    (void)bench_returned(b, 1, launch);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_CANCELLED);
}

CASE(after_a_new_link_everything_is_resent, b)
{
    struct sent launch = *launch_one(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    b->n_sent = 0;
    struct known_attempt known = {
        .id.job = 11, .id.attempt = 1, .token = launch.token, .phase = PHASE_STAGED
    };
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, 11)->link, 2);
    assert_null(bench_sent(b, MESSAGE_STOP, 11));
}

CASE(a_running_job_that_its_node_does_not_know_ends_as_unknown, b)
{
    (void)bench_started(b, 1, launch_one(b));
    bench_settle(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    (void)bench_hello(b, 2, "boot", 2, NULL, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_UNKNOWN);
}

CASE(a_new_boot_ends_what_ran_before_it, b)
{
    (void)launch_one(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    (void)bench_hello(b, 2, "another boot", 2, NULL, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_REBOOT);
}

CASE(an_attempt_that_nobody_wants_is_stopped_and_forgotten, b)
{
    struct known_attempt known = { .id.job = 9, .id.attempt = 1, .token = 99, .phase = PHASE_RUNNING };
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    (void)bench_hello(b, 2, "boot", 2, &known, 1);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 9)->token, 99);
    struct sent stray = { .job = 9, .attempt = 1, .token = 99 };
    (void)bench_exited(b, 2, &stray, END_EXIT, 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_RELEASE_ATTEMPT, 9));
}

CASE(an_entry_without_its_token_is_the_present_attempt_and_is_not_stopped, b)
{
    (void)launch_one(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    struct known_attempt known = { .id.job = 11, .id.attempt = 1, .token = 0, .phase = PHASE_STAGED };
    (void)bench_hello(b, 2, "boot", 2, &known, 1);
    bench_settle(b);
    assert_null(bench_sent(b, MESSAGE_STOP, 11));
    assert_int_equal(bench_sent(b, MESSAGE_LAUNCH, 11)->link, 2);
}

CASE(a_job_from_a_lost_future_is_left_alone_and_its_id_is_not_reused, b)
{
    struct known_attempt known = { .id.job = 50, .id.attempt = 1, .token = 99, .phase = PHASE_RUNNING };
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    (void)bench_hello(b, 2, "boot", 2, &known, 1);
    bench_submit(b, 1000, 1, NULL, &one);
    bench_settle(b);
    assert_null(bench_sent(b, MESSAGE_STOP, 50));
    assert_true(bench_answer(b, &one)->job > 50);
}

CASE(a_message_out_of_turn_is_refused, b)
{
    struct error err;
    struct message_welcome welcome = { .epoch = 1 };
    struct sent none = { .job = 11 };
    assert_int_equal(core_link_message(b->core, 1, 1, 1, MESSAGE_WELCOME, &welcome, &err), -EPROTO);
    assert_int_equal(bench_started(b, 7, &none), -EPROTO);
}

CASE(a_spec_that_is_not_in_memory_is_fetched_for_the_launch, b)
{
    _cleanup_(job_spec_clear) struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    struct job *job = job_new(5, &spec);
    struct job_event event = { .job = 5, .type = EVENT_SUBMITTED, .uid = 1000, .wall_ms = 1 };
    struct error err;
    assert_int_equal(job_apply(job, &event, &err), 0);
    core_load_job(b->core, job);
    core_load_end(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    assert_int_equal(b->fetched, 5);
    assert_null(bench_sent(b, MESSAGE_LAUNCH, 5));
    core_on_spec(b->core, 5, spec_bytes_new(&spec));
    assert_true(bench_sent(b, MESSAGE_LAUNCH, 5)->has_spec);
}

CASE(a_launch_whose_request_the_store_has_lost_is_left_to_the_agent_to_refuse, b)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "true");
    struct job *job = job_new(5, &spec);
    job_spec_clear(&spec);
    struct job_event event = { .job = 5, .type = EVENT_SUBMITTED, .uid = 1000, .wall_ms = 1 };
    struct error err;
    assert_int_equal(job_apply(job, &event, &err), 0);
    core_load_job(b->core, job);
    core_load_end(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    assert_int_equal(b->fetched, 5);
    core_on_spec(b->core, 5, NULL);
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 5));
    assert_false(bench_sent(b, MESSAGE_LAUNCH, 5)->has_spec);
}

CASE(what_a_failed_job_said_last_is_in_its_record, b)
{
    const struct sent *launch = launch_one(b);
    char tail[] = "out of memory\n", stray[] = "3";
    struct job_usage usage = { .valid = USAGE_GPU_MEMORY, .gpu_memory_peak = 7, .stray = stray };
    struct launch_exit record = { .id.job = 11,
        .id.attempt = launch->attempt,
        .token = launch->token,
        .end = END_EXIT,
        .exit_code = 1,
        .is_executed = 1,
        .started_wall_ms = 5,
        .tail = tail,
        .usage = { &usage, 1 } };
    struct error err;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_EXITED, &record, &err), 0);
    bench_settle(b);
    const struct job *job = core_job(b->core, 11);
    assert_non_null(job_run(job)->usage);
    assert_string_equal(job_run(job)->usage->tail, tail);
    assert_string_equal(job_run(job)->usage->stray, "3");
    assert_int_equal(job_run(job)->usage->gpu_memory_peak, 7);
}

static int64_t start_of_a_job_whose_node_says(struct bench *b, int64_t started_wall_ms)
{
    const struct sent *launch = launch_one(b);
    b->now_ms += 1000;
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    b->now_ms += 5000;
    struct launch_exit record = { .id.job = 11,
        .id.attempt = launch->attempt,
        .token = launch->token,
        .end = END_EXIT,
        .is_executed = 1,
        .started_wall_ms = started_wall_ms,
        .run_ms = 5000 };
    struct error err;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_EXITED, &record, &err), 0);
    bench_settle(b);
    return core_job(b->core, 11)->started_ms;
}

CASE(start_is_as_exact_as_the_nodes_word, b)
{
    int64_t began_ms = b->now_ms;
    int64_t started_ms = start_of_a_job_whose_node_says(b, began_ms + 990);
    assert_int_equal(started_ms, began_ms + 990);
}

CASE(start_on_a_node_whose_clock_is_ahead_is_not_after_it_was_heard, b)
{
    int64_t started_ms = start_of_a_job_whose_node_says(b, b->now_ms + 315360000000);
    const struct job *job = core_job(b->core, 11);
    assert_in_range(started_ms, job->submitted_ms, job->ended_ms - 5000);
}

CASE(start_on_a_node_whose_clock_is_behind_is_not_before_the_submit, b)
{
    int64_t started_ms = start_of_a_job_whose_node_says(b, 5);
    const struct job *job = core_job(b->core, 11);
    assert_in_range(started_ms, job->submitted_ms, job->ended_ms - 5000);
}

CASE(last_lines_need_no_measured_usage, b)
{
    const struct sent *launch = launch_one(b);
    char tail[] = "no such file\n";
    struct launch_exit record = { .id.job = 11,
        .id.attempt = launch->attempt,
        .token = launch->token,
        .end = END_EXIT,
        .exit_code = 1,
        .is_executed = 1,
        .started_wall_ms = 5,
        .tail = tail };
    struct error err;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_EXITED, &record, &err), 0);
    bench_settle(b);
    const struct job *job = core_job(b->core, 11);
    assert_string_equal(job_run(job)->usage->tail, tail);
    assert_int_equal(job_run(job)->usage->valid, 0);
}

static int say_usage(struct bench *b, const struct sent *launch, uint64_t peak)
{
    struct job_usage usage = { .valid = USAGE_GPU_MEMORY, .gpu_memory_peak = peak };
    struct attempt_usage said = {
        .id.job = launch->job, .id.attempt = launch->attempt, .token = launch->token, .usage = { &usage, 1 }
    };
    struct gpu_state gpus[2] = { { .index = 0 }, { .index = 1 } };
    struct message_gpus message = { .gpus = { gpus, 2 }, .usages = { &said, 1 } };
    struct error err;
    return core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &message, &err);
}

CASE(what_a_running_job_uses_is_known_until_its_end_says_more, b)
{
    const struct sent *launch = launch_one(b);
    (void)bench_started(b, 1, launch);
    assert_null(core_usage(core_find(b->core, 11)));
    assert_int_equal(say_usage(b, launch, 7), 0);
    assert_int_equal(core_usage(core_find(b->core, 11))->gpu_memory_peak, 7);
    assert_int_equal(say_usage(b, launch, 9), 0);
    assert_int_equal(core_usage(core_find(b->core, 11))->gpu_memory_peak, 9);
    (void)bench_exited(b, 1, launch, END_EXIT, 0);
    bench_settle(b);
    assert_null(core_usage(core_find(b->core, 11))); // its agent had nothing for the record
}

CASE(a_word_on_another_attempt_is_not_its_usage, b)
{
    struct sent launch = *launch_one(b);
    launch.token++;
    assert_int_equal(say_usage(b, &launch, 7), 0);
    assert_null(core_usage(core_find(b->core, 11)));
    launch.job = 4711;
    assert_int_equal(say_usage(b, &launch, 7), 0);
}

CASE(a_gpu_has_its_job_until_that_ends, b)
{
    const struct core_entry *entries[2] = { NULL };
    const struct core_node *node = core_node_named(b->core, "box");
    const struct sent *launch = launch_one(b);
    const struct job *job = core_job(b->core, 11);
    const struct gpu_grant *grant = job->grants.items;
    assert_int_equal(core_gpu_jobs(b->core, node->name, grant->index, entries, 2), 1);
    assert_ptr_equal(entries[0]->job, job);
    assert_int_equal(core_gpu_jobs(b->core, node->name, grant->index + 1, entries, 2), 0);
    assert_int_equal(core_gpu_jobs(b->core, "another", grant->index, entries, 2), 0);
    (void)bench_started(b, 1, launch);
    assert_int_equal(core_gpu_jobs(b->core, node->name, grant->index, entries, 2), 1);
    (void)bench_exited(b, 1, launch, END_EXIT, 0);
    bench_settle(b);
    assert_int_equal(core_gpu_jobs(b->core, node->name, grant->index, entries, 2), 0);
}
