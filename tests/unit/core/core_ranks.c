/* SPDX-License-Identifier: MIT */
/* Jobs on several nodes: all parts start or none does, and the first that fails ends the others. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"
#include "memory_store.h"

static int one, two;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

#define JOB 11U

static int hello(struct bench *b, uint32_t link, const char *node, const char *boot_id,
    const struct known_attempt *known, size_t n_known)
{
    struct message_hello message = {
        .protocol = LINK_PROTOCOL, .node = xstrdup(node), .boot_id = xstrdup(boot_id), .cpus = 8
    };
    struct gpu_state *states = xcalloc(2, sizeof(*states));
    for (uint32_t i = 0; i < 2; i++)
        states[i] = (struct gpu_state){
            .index = i, .uuid = xasprintf("GPU-%s-%u", node, i), .memory_bytes = 24ULL << 30, .numa = -1
        };
    struct known_attempt *attempts = xcalloc(n_known + 1, sizeof(*attempts));
    for (size_t i = 0; i < n_known; i++)
        attempts[i] = known[i];
    message.gpus = (struct record_list){ states, 2 };
    message.attempts = (struct record_list){ attempts, n_known };
    struct error err;
    int r = core_link_up(b->core, b->now_ms, b->now_ms, link, &message, &err);
    record_clear(&message_hello_record, &message);
    return r;
}

/* Nodes "a" (rank 0, link 1) and "b" (rank 1, link 2), and a job that needs all of both. */
static int open_with(void **state, bool goes_on)
{
    (void)bench_open(state);
    struct bench *b = *state;
    (void)hello(b, 1, "a", "boot-a", NULL, 0);
    (void)hello(b, 2, "b", "boot-b", NULL, 0);
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = 4;
    spec->ask.nodes = 2;
    spec->ask.requeue_on_node_lost = goes_on;
    bench_submit_spec(b, &owner, spec, &one);
    return core_job(b->core, JOB)->state == JOB_STARTING ? 0 : -1;
}

static int open_with_job(void **state)
{
    return open_with(state, false);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_with_job, bench_close)

static int open_with_job_that_goes_on(void **state)
{
    return open_with(state, true);
}

static const struct sent *find_sent(const struct bench *b, uint16_t id, uint32_t rank)
{
    for (size_t i = b->n_sent; i-- > 0;)
        if (b->sent[i].id == id && b->sent[i].rank == rank && b->sent[i].job == JOB)
            return &b->sent[i];
    return NULL;
}

static size_t count_sent(const struct bench *b, uint16_t id)
{
    size_t count = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        count += b->sent[i].id == id;
    return count;
}

static uint64_t token(const struct bench *b)
{
    return core_job(b->core, JOB)->token;
}

static void ready_at(struct bench *b, uint32_t rank, uint32_t port)
{
    bench_say(b, rank + 1, MESSAGE_READY,
        &(struct message_ready){
            .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b), .port = port });
}

static void ready(struct bench *b, uint32_t rank)
{
    ready_at(b, rank, 0);
}

static void started(struct bench *b, uint32_t rank)
{
    char path[] = "/tmp/11.log";
    bench_say(b, rank + 1, MESSAGE_STARTED,
        &(struct launch_started){
            .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b), .log_path = path });
}

static void exited(struct bench *b, uint32_t rank, enum job_end end, int32_t exit_code, const char *text)
{
    _cleanup_free_ char *copy = xstrdup(text);
    bench_say(b, rank + 1, MESSAGE_EXITED,
        &(struct launch_exit){ .id.job = JOB,
            .id.attempt = 1,
            .id.rank = rank,
            .token = token(b),
            .end = end,
            .exit_code = exit_code,
            .is_executed = end != END_UNKNOWN && end != END_START_FAILED,
            .cpu_ms = 100,
            .max_rss = 1000 + rank,
            .log_bytes = 7,
            .text = copy });
}

static void returned(struct bench *b, uint32_t rank)
{
    char text[] = "fork: try again";
    bench_say(b, rank + 1, MESSAGE_RETURNED,
        &(struct message_returned){
            .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b), .text = text });
}

static void commit_starts(struct bench *b)
{
    b->now_ms += 10; // they may be committed late
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
}

static void run_both(struct bench *b)
{
    ready(b, 0);
    ready(b, 1);
    started(b, 0);
    started(b, 1);
    commit_starts(b);
}

/* Two ranks with one long path each stand for a thousand whose paths are too long for a record together. */
CASE(an_end_that_is_too_long_is_recorded_without_its_nodes, b)
{
    _cleanup_free_ char *path = xcalloc(1, RECORD_BODY_MAX * 3U / 4);
    memset(path, '/', RECORD_BODY_MAX * 3U / 4 - 1);
    ready(b, 0);
    ready(b, 1);
    for (uint32_t rank = 0; rank < 2; rank++)
        bench_say(b, rank + 1, MESSAGE_STARTED,
            &(struct launch_started){
                .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = token(b), .log_path = path });
    exited(b, 0, END_EXIT, 3, NULL);
    exited(b, 1, END_EXIT, 0, NULL);
    struct job *job = bench_stored(b, JOB);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_EXIT);
    assert_int_equal(job->exit_code, 3);
    assert_string_equal(job_node_name(job, 1), "b");
    assert_null(job_node(job, 1)->log_path);
    job_free(job);
}

CASE(each_node_is_allocated_its_rank, b)
{
    const struct sent *first = find_sent(b, MESSAGE_LAUNCH, 0), *second = find_sent(b, MESSAGE_LAUNCH, 1);
    assert_string_equal(first->user, "ana");
    assert_int_equal(first->link, 1);
    assert_int_equal(second->link, 2);
    assert_int_equal(first->n_gpus, 2);
    assert_int_equal(second->n_gpus, 2);
    assert_int_equal(first->token, second->token);
    assert_string_equal(first->meeting, "127.0.0.1:29612");
    assert_string_equal(second->meeting, "127.0.0.1:29612");
}

/* What the part on the second node is told when it is launched again. */
static const char *meeting_by(struct bench *b, uint32_t link, const char *address)
{
    struct known_attempt known = { .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b) };
    core_set_address(b->core, 1, address, NULL);
    (void)hello(b, link, "b", "boot-b", &known, 1);
    bench_settle(b);
    return find_sent(b, MESSAGE_LAUNCH, 1)->meeting;
}

CASE(ranks_meet_at_the_address_of_the_first_node, b)
{
    core_set_address(b->core, 9, "nobody's", NULL);
    assert_string_equal(meeting_by(b, 3, "10.0.0.1"), "10.0.0.1:29612");
    assert_string_equal(meeting_by(b, 4, "10.0.0.2:55804"), "10.0.0.2:29612");
    assert_string_equal(meeting_by(b, 5, "[fd00::1]:55804"), "fd00::1:29612");
    assert_string_equal(meeting_by(b, 6, "fd00::2"), "fd00::2:29612");
}

/* Its own node has no address; the others know one of its machine. */
CASE(the_controllers_own_node_is_met_where_others_reach_the_controller, b)
{
    struct known_attempt known = { .id.job = JOB, .id.attempt = 1, .id.rank = 0, .token = token(b) };
    core_set_address(b->core, 2, "10.0.0.2:55804", "10.0.0.1:9124");
    (void)hello(b, 3, "a", "boot-a", &known, 1);
    bench_settle(b);
    assert_string_equal(find_sent(b, MESSAGE_LAUNCH, 0)->meeting, "10.0.0.1:29612");
}

CASE(a_first_rank_that_fails_before_its_start_is_reported_has_started, b)
{
    ready(b, 0);
    ready(b, 1);
    exited(b, 0, END_EXIT, 3, NULL);
    commit_starts(b);
    assert_int_equal(b->published[b->n_published - 1], EVENT_STARTED);
    assert_true(core_job(b->core, JOB)->started_ms != 0);
}

/* A node that was started beside the controller, with --controller 127.0.0.1. */
CASE(a_loopback_address_is_told_to_nobody_on_another_machine, b)
{
    struct known_attempt known = { .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b) };
    core_set_address(b->core, 1, "127.0.0.1:55803", "127.0.0.1:9124");
    core_set_address(b->core, 2, "10.0.0.2:55804", "10.0.0.1:9124");
    (void)hello(b, 3, "b", "boot-b", &known, 1);
    bench_settle(b);
    assert_string_equal(find_sent(b, MESSAGE_LAUNCH, 1)->meeting, "10.0.0.1:29612");
}

static int open_empty(void **state)
{
    (void)bench_open(state);
    return 0;
}

/* Two nodes that came by loopback, and a job on both. */
static const struct job *run_on_loopback(struct bench *b, const char *boot_a, const char *boot_b)
{
    (void)hello(b, 1, "a", boot_a, NULL, 0);
    (void)hello(b, 2, "b", boot_b, NULL, 0);
    core_set_address(b->core, 1, "127.0.0.1:55803", "127.0.0.1:9124");
    core_set_address(b->core, 2, "127.0.0.1:55804", "127.0.0.1:9124");
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = 4;
    spec->ask.nodes = 2;
    bench_submit_spec(b, &owner, spec, &one);
    return core_job(b->core, JOB);
}

TEST_ON(loopback_will_do_on_one_machine, struct bench *b, open_empty, bench_close)
{
    assert_int_equal(run_on_loopback(b, "boot-a", "boot-a")->state, JOB_STARTING);
    assert_string_equal(find_sent(b, MESSAGE_LAUNCH, 1)->meeting, "127.0.0.1:29612");
}

TEST_ON(a_job_whose_nodes_cannot_reach_each_other_is_refused, struct bench *b, open_empty, bench_close)
{
    const struct job *job = run_on_loopback(b, "boot-a", "boot-b");
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_START_FAILED);
    assert_non_null(strstr(job->text, "the other nodes cannot reach node b"));
    assert_int_equal(count_sent(b, MESSAGE_LAUNCH), 0);
}

CASE(nobody_is_let_go_before_all_are_ready, b)
{
    ready(b, 0);
    ready(b, 0);
    assert_null(find_sent(b, MESSAGE_GO, 0));
    ready(b, 1);
    assert_int_equal(find_sent(b, MESSAGE_GO, 0)->link, 1);
    assert_int_equal(find_sent(b, MESSAGE_GO, 1)->link, 2);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_STARTING);
    started(b, 1);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_STARTING);
    started(b, 0);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_RUNNING);
    assert_string_equal(job_run(core_job(b->core, JOB))->log_path, "/tmp/11.log");
}

CASE(attempt_ends_when_all_ranks_have_ended, b)
{
    run_both(b);
    exited(b, 1, END_EXIT, 0, NULL);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_RUNNING);
    assert_null(find_sent(b, MESSAGE_STOP, 0));
    assert_int_equal(count_sent(b, MESSAGE_RELEASE_ATTEMPT), 0); // it is said again to the next controller
    exited(b, 0, END_EXIT, 0, NULL);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->end, END_EXIT);
    assert_int_equal(job->exit_code, 0);
    assert_int_equal(job_run(job)->cpu_ms, 200);
    assert_int_equal(job_run(job)->max_rss, 1001);
    assert_int_equal(job_run(job)->log_bytes, 14);
    assert_null(job->text);
    assert_non_null(find_sent(b, MESSAGE_RELEASE_ATTEMPT, 0));
    assert_non_null(find_sent(b, MESSAGE_RELEASE_ATTEMPT, 1));
}

CASE(the_first_failure_ends_the_others_and_is_the_jobs, b)
{
    run_both(b);
    exited(b, 1, END_EXIT, 3, NULL);
    assert_int_equal(find_sent(b, MESSAGE_STOP, 0)->link, 1);
    assert_null(find_sent(b, MESSAGE_STOP, 1));
    assert_int_equal(core_job(b->core, JOB)->state, JOB_RUNNING); // its GPUs are held: rank 0 still runs
    assert_int_equal(core_job(b->core, JOB)->grants.count, 4);
    exited(b, 0, END_CANCELLED, 143, NULL);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_EXIT);
    assert_int_equal(job->exit_code, 3);
    assert_string_equal(job->text, "rank 1 on b: exit 3");
    assert_int_equal(job_node(job, 0)->end, END_CANCELLED);
    assert_int_equal(job_node(job, 1)->exit_code, 3);
}

CASE(node_that_cannot_start_its_rank_requeues_the_job, b)
{
    ready(b, 0);
    returned(b, 1);
    assert_int_equal(find_sent(b, MESSAGE_STOP, 0)->link, 1);
    assert_null(find_sent(b, MESSAGE_GO, 0));
    assert_int_equal(core_job(b->core, JOB)->state, JOB_STARTING);
    returned(b, 0);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_string_equal(job->text, "rank 1 on b: fork: try again");
    assert_non_null(find_sent(b, MESSAGE_RELEASE_ATTEMPT, 0));
    assert_non_null(find_sent(b, MESSAGE_RELEASE_ATTEMPT, 1));
}

CASE(rank_that_cannot_start_fails_the_job_and_names_its_node, b)
{
    ready(b, 0);
    exited(b, 1, END_START_FAILED, 125, "cannot enter directory /data: No such file or directory");
    returned(b, 0);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_START_FAILED);
    assert_string_equal(job->text, "rank 1 on b: cannot enter directory /data: No such file or directory");
}

CASE(a_node_that_reboots_before_the_go_sends_the_job_back, b)
{
    ready(b, 0);
    (void)hello(b, 3, "b", "boot-b2", NULL, 0);
    bench_settle(b);
    returned(b, 0);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_QUEUED);
}

/* The record of what it did is gone with the spool: a second launch could run the command twice. */
CASE(a_rank_whose_spool_was_emptied_is_not_launched_again, b)
{
    ready(b, 1);
    size_t launches = count_sent(b, MESSAGE_LAUNCH);
    (void)hello(b, 3, "b", "boot-b" BOOT_SPOOL_MARK "2", NULL, 0);
    bench_settle(b);
    assert_int_equal(count_sent(b, MESSAGE_LAUNCH), launches);
    returned(b, 0);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_QUEUED); // nobody was told to go
}

CASE(a_node_that_reboots_while_it_runs_ends_the_others, b)
{
    run_both(b);
    (void)hello(b, 3, "b", "boot-b2", NULL, 0);
    bench_settle(b);
    assert_non_null(find_sent(b, MESSAGE_STOP, 0));
    exited(b, 0, END_CANCELLED, 143, NULL);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->end, END_REBOOT);
    assert_string_equal(job->text, "rank 1 on b: its node rebooted while it ran");
}

CASE(all_are_let_go_with_the_port_of_the_first, b)
{
    ready_at(b, 0, 29777);
    ready_at(b, 1, 0);
    assert_int_equal(find_sent(b, MESSAGE_GO, 0)->port, 29777);
    assert_int_equal(find_sent(b, MESSAGE_GO, 1)->port, 29777);
}

extern const struct core_concern core_concern_ranks;

/* After a start of the controller, of which the first rank has not heard yet while it runs. */
CASE(nobody_is_let_go_before_the_first_has_said_its_port, b)
{
    run_both(b);
    struct core_entry *entry = core_find(b->core, JOB);
    size_t before = count_sent(b, MESSAGE_GO);
    core_concern_ranks.gone(b->core, entry);
    core_concern_ranks.resume(b->core, entry);
    struct known_attempt known = { .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b) };
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    (void)hello(b, 2, "b", "boot-b", &known, 1);
    bench_settle(b);
    ready(b, 1);
    assert_int_equal(count_sent(b, MESSAGE_GO), before);
    char path[] = "/tmp/11.log";
    bench_say(b, 1, MESSAGE_STARTED,
        &(struct launch_started){
            .id.job = JOB, .id.attempt = 1, .token = token(b), .log_path = path, .port = 29778 });
    assert_int_equal(count_sent(b, MESSAGE_GO), before + 1);
    assert_int_equal(find_sent(b, MESSAGE_GO, 1)->port, 29778);
}

CASE(a_go_that_was_lost_is_resent, b)
{
    ready(b, 0);
    ready(b, 1);
    started(b, 0);
    size_t before = count_sent(b, MESSAGE_GO);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    struct known_attempt known = { .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b) };
    (void)hello(b, 3, "b", "boot-b", &known, 1);
    struct message_ready again = { .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b) };
    struct error err = { 0 };
    bench_settle(b);
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 3, MESSAGE_READY, &again, &err), 0);
    bench_settle(b);
    assert_int_equal(count_sent(b, MESSAGE_GO), before + 1);
    assert_int_equal(find_sent(b, MESSAGE_GO, 1)->link, 3);
}

CASE(what_is_ready_on_a_node_that_is_away_is_not_counted, b)
{
    ready(b, 1);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    ready(b, 0);
    assert_null(find_sent(b, MESSAGE_GO, 0));
}

CASE(cancel_stops_every_rank_and_releases_none, b)
{
    ready(b, 0);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, JOB, -1, &two);
    ready(b, 1);
    assert_null(find_sent(b, MESSAGE_GO, 0));
    assert_non_null(find_sent(b, MESSAGE_STOP, 0));
    assert_non_null(find_sent(b, MESSAGE_STOP, 1));
    returned(b, 0);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_STOPPING);
    returned(b, 1);
    assert_int_equal(core_job(b->core, JOB)->end, END_CANCELLED);
}

CASE(signal_and_update_reach_every_rank, b)
{
    run_both(b);
    core_signal(b->core, b->now_ms, b->now_ms, &owner, JOB, 10, 0, &two);
    bench_settle(b);
    assert_int_equal(find_sent(b, MESSAGE_SIGNAL, 0)->link, 1);
    assert_int_equal(find_sent(b, MESSAGE_SIGNAL, 1)->link, 2);
    core_suspend(b->core, b->now_ms, b->now_ms, &owner, JOB, false, NULL);
    bench_settle(b);
    assert_non_null(find_sent(b, MESSAGE_UPDATE, 0));
    assert_non_null(find_sent(b, MESSAGE_UPDATE, 1));
}

CASE(lost_rank_is_stopped_when_its_node_reports_it_again, b)
{
    run_both(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    core_begin(b->core, b->now_ms, b->now_ms);
    core_hook_lost(b->core, core_find(b->core, JOB), 1, END_UNKNOWN, "its node is gone for ever");
    bench_settle(b);
    assert_non_null(find_sent(b, MESSAGE_STOP, 0));
    struct known_attempt known = {
        .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b), .phase = PHASE_RUNNING
    };
    (void)hello(b, 3, "b", "boot-b", &known, 1);
    bench_settle(b);
    assert_int_equal(find_sent(b, MESSAGE_STOP, 1)->link, 3);
    exited(b, 0, END_CANCELLED, 143, NULL);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_DONE);
    assert_string_equal(core_job(b->core, JOB)->text, "rank 1 on b: its node is gone for ever");
}

/* Node "b" has no power any more; rank 0 notifications before anybody here does. */
static void fence_second(struct bench *b)
{
    static const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    core_fence(b->core, b->now_ms, b->now_ms, &admin, "b", "it has no power", &two);
    bench_settle(b);
}

TEST_WITH(
    a_failure_after_the_last_word_of_a_lost_node_is_that_nodes_fault, open_with_job_that_goes_on, bench_close)
{
    struct bench *b = *state;
    run_both(b);
    exited(b, 0, END_EXIT, 1, "NCCL: remote process exited or there was a network error");
    fence_second(b);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->restarts, 1);
    assert_string_equal(job->text, "rank 1 on b: node b was fenced: it has no power");
}

/* mgpud starts anew, with the mark of the fence and the job as they are stored. */
static void restart_fenced(struct bench *b, const struct state_change *mark)
{
    const struct store_summary summary = {
        .epoch = 4, .last_job = core_last_job(b->core), .last_event = 100
    };
    struct job *job = bench_stored(b, JOB);
    struct error err = { 0 };
    core_free(b->core);
    b->core = core_new(&b->options, &b->effects);
    core_load_summary(b->core, &summary);
    assert_int_equal(
        core_load_state(b->core, mark->kind, mark->key, mark->value.bytes, mark->value.length, &err), 0);
    core_load_job(b->core, job);
    core_load_end(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
}

/* An earlier controller lost a rank, and stopped the other; then it died, and both nodes have returned. */
static void restart_after_loss(struct bench *b)
{
    run_both(b);
    uint64_t known = token(b);
    bench_restart(b, bench_stored(b, JOB));
    const struct known_attempt first = { { .job = JOB, .attempt = 1 }, known, PHASE_RUNNING };
    const struct known_attempt second = { { .job = JOB, .attempt = 1, .rank = 1 }, known, PHASE_EXITED };
    (void)hello(b, 3, "a", "boot-a", &first, 1);
    (void)hello(b, 4, "b", "boot-b", &second, 1);
    bench_settle(b);
}

/* `ago_ms` is 0 from the agent of an older version. */
static void ended_ago_on(
    struct bench *b, uint32_t link, uint32_t rank, enum job_end end, int64_t ended_ms, int64_t ago_ms)
{
    struct error err = { 0 };
    const struct launch_exit record = { .id.job = JOB,
        .id.attempt = 1,
        .id.rank = rank,
        .token = token(b),
        .end = end,
        .exit_code = 1,
        .is_executed = 1,
        .ended_wall_ms = ended_ms,
        .ended_ago_ms = ago_ms };
    assert_int_equal(
        core_link_message(b->core, b->now_ms, b->now_ms, link, MESSAGE_EXITED, &record, &err), 0);
    bench_settle(b);
}

static void ended_on(struct bench *b, uint32_t link, uint32_t rank, enum job_end end, int64_t ended_ms)
{
    ended_ago_on(b, link, rank, end, ended_ms, 0);
}

/* Its end is reported while the others still end: with them it is released, and its node gets jobs again. */
CASE(a_lost_rank_that_ends_before_the_others_does_not_keep_its_node, b)
{
    run_both(b);
    fence_second(b);
    struct known_attempt known = {
        .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b), .phase = PHASE_RUNNING
    };
    (void)hello(b, 3, "b", "boot-b", &known, 1);
    bench_settle(b);
    ended_on(b, 3, 1, END_CANCELLED, b->now_ms);
    assert_int_equal(core_find_node(b->core, "b")->n_orphaned, 1); // its record is not released yet
    exited(b, 0, END_CANCELLED, 143, NULL);
    assert_int_equal(find_sent(b, MESSAGE_RELEASE_ATTEMPT, 1)->link, 3);
    assert_int_equal(core_find_node(b->core, "b")->n_orphaned, 0);
}

CASE(a_stop_nobody_asked_for_is_the_loss_of_a_node, b)
{
    restart_after_loss(b);
    ended_on(b, 4, 1, END_CANCELLED, 100);
    ended_on(b, 3, 0, END_CANCELLED, 200);
    assert_int_equal(core_job(b->core, JOB)->end, END_NODE_LOST);
}

CASE(what_fails_after_such_a_stop_is_not_the_reason, b)
{
    restart_after_loss(b);
    ended_on(b, 3, 0, END_EXIT, 50); // its node's clock may be wrong
    ended_on(b, 4, 1, END_CANCELLED, 100);
    assert_int_equal(core_job(b->core, JOB)->end, END_NODE_LOST);
}

/* The other node connects only when the rank that was stopped has ended: it is the clocks that tell. */
CASE(what_failed_after_such_a_stop_and_is_told_late_is_not_the_reason, b)
{
    run_both(b);
    uint64_t known = token(b);
    bench_restart(b, bench_stored(b, JOB));
    const struct known_attempt first = { { .job = JOB, .attempt = 1 }, known, PHASE_EXITED };
    const struct known_attempt second = { { .job = JOB, .attempt = 1, .rank = 1 }, known, PHASE_RUNNING };
    (void)hello(b, 4, "b", "boot-b", &second, 1);
    bench_settle(b);
    ended_on(b, 4, 1, END_CANCELLED, 100);
    (void)hello(b, 3, "a", "boot-a", &first, 1);
    bench_settle(b);
    ended_on(b, 3, 0, END_EXIT, 200);
    assert_int_equal(core_job(b->core, JOB)->end, END_NODE_LOST);
}

/* Both ranks have ended before this controller hears from their nodes. */
static void restart_after_end(struct bench *b)
{
    run_both(b);
    uint64_t known = token(b);
    bench_restart(b, bench_stored(b, JOB));
    const struct known_attempt first = { { .job = JOB, .attempt = 1 }, known, PHASE_EXITED };
    const struct known_attempt second = { { .job = JOB, .attempt = 1, .rank = 1 }, known, PHASE_EXITED };
    (void)hello(b, 3, "a", "boot-a", &first, 1);
    (void)hello(b, 4, "b", "boot-b", &second, 1);
    bench_settle(b);
}

CASE(a_failure_that_an_earlier_controller_knew_is_the_reason, b)
{
    restart_after_end(b);
    ended_on(b, 4, 1, END_CANCELLED, 200);
    ended_on(b, 3, 0, END_EXIT, 100);
    assert_int_equal(core_job(b->core, JOB)->end, END_EXIT);
    assert_int_equal(core_job(b->core, JOB)->exit_code, 1);
}

/* The clock of the first node is an hour ahead. */
CASE(a_failure_on_a_node_whose_clock_is_ahead_is_the_reason, b)
{
    restart_after_end(b);
    ended_ago_on(b, 4, 1, END_CANCELLED, 200, 50);
    ended_ago_on(b, 3, 0, END_EXIT, 3600100, 150);
    assert_int_equal(core_job(b->core, JOB)->end, END_EXIT);
}

/* It is an hour behind. */
CASE(what_failed_after_a_stop_on_a_node_whose_clock_is_behind_is_not_the_reason, b)
{
    restart_after_end(b);
    ended_ago_on(b, 4, 1, END_CANCELLED, 3600100, 150);
    ended_ago_on(b, 3, 0, END_EXIT, 200, 50);
    assert_int_equal(core_job(b->core, JOB)->end, END_NODE_LOST);
}

/* Also where no silence of a node is ever a loss. */
TEST_WITH(what_a_fence_ended_is_over_after_a_restart_too, open_with_job_that_goes_on, bench_close)
{
    static const struct identity admin = { .is_known = true, .role = ROLE_ADMIN };
    struct bench *b = *state;
    run_both(b);
    assert_true(b->options.loss.timeout_ms == 0);
    uint64_t known_token = token(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    core_fence(b->core, b->now_ms, b->now_ms, &admin, "b", "it has no power", &two);
    bench_turn(b);
    assert_non_null(b->flying);
    assert_string_equal(b->flying->states[0].kind, "node");
    struct buffer bytes = { 0 };
    buffer_append(&bytes, b->flying->states[0].value.bytes, b->flying->states[0].value.length);
    char kind[] = "node", key[] = "b";
    const struct state_change mark = { .kind = kind, .key = key, .value = bytes };
    bench_settle(b);
    restart_fenced(b, &mark);
    buffer_clear(&bytes);
    struct known_attempt known = {
        .id.job = JOB, .id.attempt = 1, .id.rank = 0, .token = known_token, .phase = PHASE_EXITED
    };
    assert_int_equal(hello(b, 1, "a", "boot-a", &known, 1), 0);
    exited(b, 0, END_CANCELLED, 143, NULL);
    assert_true(
        core_job(b->core, JOB)->state == JOB_STOPPING || core_job(b->core, JOB)->state == JOB_RUNNING);
    bench_pass(b, 2000);
    assert_int_equal(core_job(b->core, JOB)->state, JOB_QUEUED);
    assert_int_equal(core_job(b->core, JOB)->restarts, 1);
}

TEST_ON(a_failure_before_that_word_is_the_jobs_own, struct bench *b, open_with_job_that_goes_on, bench_close)
{
    run_both(b);
    exited(b, 0, END_EXIT, 1, NULL);
    bench_say(b, 2, MESSAGE_HEARTBEAT, &(struct message_heartbeat){ .sent_ms = 1 });
    fence_second(b);
    const struct job *job = core_job(b->core, JOB);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->end, END_EXIT);
    assert_string_equal(job->text, "rank 0 on a: exit 1");
}

TEST_WITH(a_failure_before_the_reboot_of_another_node_was_heard_is_that_nodes_fault,
    open_with_job_that_goes_on, bench_close)
{
    struct bench *b = *state;
    run_both(b);
    exited(b, 0, END_EXIT, 1, NULL);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    (void)hello(b, 3, "b", "boot-b2", NULL, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, JOB)->restarts, 1);
    assert_string_equal(core_job(b->core, JOB)->text, "rank 1 on b: its node rebooted while it ran");
}

TEST_WITH(a_lease_that_a_shepherd_has_ended_is_a_loss_too, open_with_job_that_goes_on, bench_close)
{
    struct bench *b = *state;
    run_both(b);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    exited(b, 0, END_EXIT, 1, NULL);
    struct known_attempt known = {
        .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b), .phase = PHASE_EXITED
    };
    (void)hello(b, 2, "b", "boot-b", &known, 1);
    exited(b, 1, END_NODE_LOST, 143, NULL);
    assert_int_equal(core_job(b->core, JOB)->restarts, 1);
}

CASE(what_fails_because_its_peer_was_stopped_was_stopped_too, b)
{
    run_both(b);
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, JOB, -1, false, &two);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &two)->code, 0);
    exited(b, 0, END_EXIT, 1, NULL); // before its own STOP came
    exited(b, 1, END_CANCELLED, 143, NULL);
    assert_int_equal(core_job(b->core, JOB)->attempt, 2);
}

CASE(a_job_that_was_requeued_goes_back_however_its_ranks_end, b)
{
    run_both(b);
    core_requeue(b->core, b->now_ms, b->now_ms, &owner, JOB, -1, false, &two);
    bench_settle(b);
    exited(b, 0, END_EXIT, 1, NULL);
    exited(b, 1, END_EXIT, 0, NULL);
    assert_int_equal(core_job(b->core, JOB)->attempt, 2);
}

CASE(node_reports_only_its_own_rank, b)
{
    struct message_ready lie = { .id.job = JOB, .id.attempt = 1, .id.rank = 1, .token = token(b) };
    ready(b, 0);
    bench_say(b, 1, MESSAGE_READY, &lie);
    assert_null(find_sent(b, MESSAGE_GO, 0));
}

/* What a node says about the connection of a command is believed only of its own rank. */
CASE(an_attempt_is_found_on_its_nodes_alone, b)
{
    const struct job *job = core_job(b->core, JOB);
    const struct spool_id first = { .job = JOB, .attempt = job->attempt },
                          second = { .job = JOB, .attempt = job->attempt, .rank = 1 };
    struct spool_id other = first;
    assert_ptr_equal(core_job_at(b->core, "a", &first, job->token), job);
    assert_ptr_equal(core_job_at(b->core, "b", &second, job->token), job);
    assert_null(core_job_at(b->core, "b", &first, job->token));
    assert_null(core_job_at(b->core, "a", &second, job->token));
    assert_null(core_job_at(b->core, "c", &first, job->token));
    assert_null(core_job_at(b->core, "a", &first, job->token + 1));
    other.attempt++;
    assert_null(core_job_at(b->core, "a", &other, job->token));
    other = first;
    other.step = 1;
    assert_null(core_job_at(b->core, "a", &other, job->token));
    other = first;
    other.job++;
    assert_null(core_job_at(b->core, "a", &other, job->token));
}

/* Commands in a job change that job, and those that they have submitted. */
CASE(commands_in_a_job_control_it_and_what_they_submitted, b)
{
    const struct job *job = core_job(b->core, JOB);
    struct job other = { .id = JOB + 1, .uid = 1000, .ask = job->ask };
    struct identity who = { .is_known = true, .uid = 1000 };
    struct error err = { 0 };
    who.token = (struct identity_token){ .id = JOB_TOKEN | JOB, .scopes = SCOPE_READ | SCOPE_JOB };
    assert_true(core_may(&who, ACTION_CONTROL, job));
    assert_false(core_may(&who, ACTION_SUBMIT, NULL));
    assert_false(core_may(&who, ACTION_CONTROL, &other));
    assert_true(core_may(&who, ACTION_READ, &other));
    assert_true(core_token_lacks(&who, ACTION_CONTROL, &other, &err));
    assert_non_null(strstr(err.message, "commands in job 11 can change only that job"));
    other.api_token = JOB_TOKEN | JOB;
    assert_true(core_may(&who, ACTION_CONTROL, &other));
    other.api_token = JOB_TOKEN | (JOB + 1);
    assert_false(core_may(&who, ACTION_CONTROL, &other));
    who.token.scopes |= SCOPE_SUBMIT;
    assert_true(core_may(&who, ACTION_SUBMIT, NULL));
    assert_false(core_may(&who, ACTION_CONTROL, &other));
    assert_false(core_may(&who, ACTION_TOKEN, NULL));
    who.uid = 1001;
    assert_false(core_may(&who, ACTION_CONTROL, job));
    assert_int_equal(core_refuse_scope(&who, SCOPE_SUBMIT, &err), -EPERM);
    assert_non_null(strstr(err.hint, "job-access"));
}
