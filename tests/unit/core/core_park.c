/* SPDX-License-Identifier: MIT */
/* Jobs on several nodes are parked and returned as a whole: how the controller combines the answers of the
 * nodes. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/counts.h"
#include "controller/core/notification.h"
#include "controller/core/park.h"
#include "controller/core/state.h"
#include "job/park.h"
#include "sched/queue/fairshare.h"

static int submitted, asked;
static const char *notify_on; // of the next job; NULL: nobody is told
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

#define JOB       11U
#define SECOND_MS 1000
#define LIMIT_S   300
#define AFTERWARDS                                                                                           \
    60 // seconds: a shepherd, and then the controller, end a job within this time after its limit

static int hello(struct bench *b, uint32_t link, const char *node, const struct known_attempt *known)
{
    struct message_hello message = { .protocol = LINK_PROTOCOL,
        .node = xstrdup(node),
        .boot_id = xasprintf("boot-%s", node),
        .cpus = 8,
        .memory_bytes = 64ULL << 30,
        .parks_ranks = 1 };
    struct gpu_state *states = xcalloc(2, sizeof(*states));
    for (uint32_t i = 0; i < 2; i++)
        states[i] = (struct gpu_state){ .index = i,
            .uuid = xasprintf("GPU-%s-%u", node, i),
            .model = xstrdup("H200"),
            .memory_bytes = 24ULL << 30,
            .numa = -1 };
    struct node_feature *features = xcalloc(1, sizeof(*features));
    *features = (struct node_feature){ .name = xstrdup("park"), .is_on = 1 };
    struct known_attempt *attempts = xcalloc(1, sizeof(*attempts));
    if (known != NULL)
        *attempts = *known;
    message.gpus = (struct record_list){ states, 2 };
    message.features = (struct record_list){ features, 1 };
    message.attempts = (struct record_list){ attempts, known != NULL };
    struct error err;
    int r = core_link_up(b->core, b->now_ms, b->now_ms, link, &message, &err);
    bench_settle(b);
    record_clear(&message_hello_record, &message);
    return r;
}

static const struct job *job_of(struct bench *b)
{
    return core_job(b->core, JOB);
}

static uint32_t phase(struct bench *b)
{
    return job_park(job_of(b))->phase;
}

static void start_rank(struct bench *b, uint32_t rank)
{
    struct launch_started started = {
        .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = job_of(b)->token
    };
    bench_say(b, rank + 1, MESSAGE_STARTED, &started);
}

/* A job that runs on `nodes` nodes, "a" (rank 0, link 1) and "b" (rank 1, link 2). */
static int open_with(void **state, uint32_t nodes, uint32_t gpus, bool may_move, int64_t limit_s)
{
    (void)bench_open(state);
    struct bench *b = *state;
    (void)hello(b, 1, "a", NULL);
    if (nodes > 1)
        (void)hello(b, 2, "b", NULL);
    struct job_spec *spec = bench_spec("train");
    spec->ask.gpus = gpus;
    spec->ask.nodes = nodes;
    spec->ask.park_anywhere = may_move;
    spec->ask.time_limit_ms = limit_s * SECOND_MS;
    if (notify_on != NULL)
        strings_add(&spec->ask.notify, "true");
    spec->ask.notify_on = xstrdup(notify_on);
    bench_submit_spec(b, &owner, spec, &submitted);
    for (uint32_t rank = 0; nodes > 1 && rank < nodes; rank++)
        bench_say(b, rank + 1, MESSAGE_READY,
            &(struct message_ready){
                .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = job_of(b)->token });
    for (uint32_t rank = 0; rank < nodes; rank++)
        start_rank(b, rank);
    return job_of(b)->state == JOB_RUNNING ? 0 : -1;
}

static int open_wide(void **state)
{
    return open_with(state, 2, 4, false, 0);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_wide, bench_close)

static int open_movable(void **state)
{
    return open_with(state, 1, 1, true, 0);
}

static int open_notified(void **state)
{
    notify_on = "park,unpark";
    int r = open_with(state, 1, 1, true, 0);
    notify_on = NULL;
    return r;
}

static int open_limited(void **state)
{
    return open_with(state, 1, 2, false, LIMIT_S);
}

/* How many PARK of this kind were sent to this rank since the last call, with the job's latest number. */
static size_t orders(struct bench *b, uint32_t rank, enum park_action action)
{
    size_t count = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        if (b->sent[i].id == MESSAGE_PARK && b->sent[i].rank == rank) {
            assert_int_equal(b->sent[i].number, job_park(job_of(b))->number);
            assert_int_equal(b->sent[i].action, action);
            b->sent[i].id = 0;
            count++;
        }
    return count;
}

static void answer(struct bench *b, uint32_t rank, enum park_action action, enum park_outcome outcome)
{
    char why[] = "it is busy";
    struct message_park_result result = { .id.job = JOB,
        .id.attempt = 1,
        .id.rank = rank,
        .token = job_of(b)->token,
        .number = job_park(job_of(b))->number,
        .action = action,
        .outcome = outcome,
        .bytes = action == PARK_SAVE && outcome == PARK_DONE ? (rank + 1ULL) << 30 : 0,
        .text = outcome == PARK_DONE ? NULL : why };
    bench_say(b, rank + 1, MESSAGE_PARK_RESULT, &result);
}

static void park(struct bench *b)
{
    b->n_answers = 0;
    core_park(b->core, b->now_ms, b->now_ms, &owner, JOB, 0, &asked);
    bench_settle(b);
    assert_int_equal(phase(b), PARK_SAVING);
}

static void park_all(struct bench *b)
{
    park(b);
    assert_int_equal(orders(b, 0, PARK_SAVE), 1);
    assert_int_equal(orders(b, 1, PARK_SAVE), 1);
    answer(b, 1, PARK_SAVE, PARK_DONE);
    assert_int_equal(phase(b), PARK_SAVING);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    assert_int_equal(phase(b), PARK_PARKED);
}

static void unpark(struct bench *b)
{
    b->n_answers = 0;
    core_unpark(b->core, b->now_ms, b->now_ms, &owner, JOB, &asked);
    bench_settle(b);
    bench_turn(b);
    bench_settle(b);
    assert_int_equal(phase(b), PARK_RESTORING);
}

/* Events of the notifications of the job, in the order in which they were made. */
static void note_notification(void *arg, const struct notification *notification, bool is_sending)
{
    struct buffer *out = arg;
    buffer_printf(
        out, "%s: %s\n", notify_event_name((enum notify_event)notification->event), notification->subject);
}

static void assert_notified(struct bench *b, const char *wanted)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    buffer_append_text(&out, "");
    core_each_notification(b->core, JOB, note_notification, &out);
    assert_string_equal(buffer_text(&out), wanted);
}

TEST_WITH(its_owner_is_told_that_it_is_parked_and_that_it_continues, open_notified, bench_close)
{
    struct bench *b = *state;
    park(b);
    answer(b, 0, PARK_SAVE, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_NONE);
    assert_notified(b, ""); // it was not parked
    park(b);
    b->now_ms += SECOND_MS;
    answer(b, 0, PARK_SAVE, PARK_DONE);
    assert_int_equal(phase(b), PARK_PARKED);
    unpark(b);
    b->now_ms += 60 * SECOND_MS;
    answer(b, 0, PARK_RETURN, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_WAITING);
    bench_pass(b, 60 * SECOND_MS);
    assert_int_equal(phase(b), PARK_RESTORING);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_NONE);
    assert_notified(b, "park: job 11 (train) was parked on a; mgpu unpark 11 continues it\n"
                       "unpark: job 11 (train) continues on a; it was parked for 2m00s\n");
}

TEST_ON(parks_refusals_and_times_are_counted, struct bench *b, open_movable, bench_close)
{
    const struct core_counts *counts = core_counts(b->core);
    park(b);
    answer(b, 0, PARK_SAVE, PARK_REFUSED);
    assert_int_equal(counts->refused_parks, 1);
    assert_int_equal(counts->parks[PARK_ASKED], 0);
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    assert_int_equal(counts->parks[PARK_ASKED], 1);
    assert_int_equal(core_park_kept(b->core, "a"), 1ULL << 30);
    b->now_ms += 60 * SECOND_MS;
    unpark(b);
    answer(b, 0, PARK_RETURN, PARK_REFUSED);
    assert_int_equal(counts->refused_returns, 1);
    assert_int_equal(counts->parks[PARK_ASKED], 1);
    bench_pass(b, 60 * SECOND_MS);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    assert_int_equal(counts->parked_ms / SECOND_MS, 120);
    assert_int_equal(core_park_kept(b->core, "a"), 0);
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    b->now_ms += 10 * SECOND_MS;
    unpark(b);
    answer(b, 0, PARK_RETURN, PARK_LOST);
    assert_int_equal(counts->refused_returns, 2);
    assert_int_equal(counts->refused_parks, 1);
    assert_int_equal(counts->parked_ms / SECOND_MS, 130);
}

TEST_WITH(an_attempt_that_ends_while_it_is_parked_was_parked_up_to_its_end, open_movable, bench_close)
{
    struct bench *b = *state;
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    b->now_ms += 30 * SECOND_MS;
    b->n_answers = 0;
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, JOB, 0, &asked);
    bench_settle(b);
    assert_int_equal(bench_exited(b, 1, bench_sent(b, MESSAGE_LAUNCH, JOB), END_CANCELLED, 0), 0);
    bench_settle(b);
    assert_int_equal(job_of(b)->state, JOB_DONE);
    assert_int_equal(job_parked_ms(job_of(b), b->now_ms) / SECOND_MS, 30);
    assert_int_equal(core_counts(b->core)->parked_ms / SECOND_MS, 30);
}

CASE(it_is_parked_when_all_ranks_are_saved_and_returns_when_all_could, b)
{
    park_all(b);
    assert_int_equal(job_park(job_of(b))->bytes, 3ULL << 30);
    assert_int_equal(job_park_node_bytes(job_of(b)), 2ULL << 30);
    unpark(b);
    assert_int_equal(job_of(b)->grants.count, 4);
    assert_int_equal(orders(b, 0, PARK_CHECK), 1);
    assert_int_equal(orders(b, 1, PARK_CHECK), 1);
    answer(b, 0, PARK_CHECK, PARK_DONE);
    assert_int_equal(orders(b, 0, PARK_RETURN), 0);
    answer(b, 1, PARK_CHECK, PARK_DONE);
    assert_int_equal(orders(b, 0, PARK_RETURN), 1);
    assert_int_equal(orders(b, 1, PARK_RETURN), 1);
    answer(b, 1, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_RESTORING);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_NONE);
}

CASE(a_rank_that_refuses_to_be_saved_makes_all_return_at_once, b)
{
    park(b);
    (void)orders(b, 0, PARK_SAVE);
    (void)orders(b, 1, PARK_SAVE);
    answer(b, 1, PARK_SAVE, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_NONE);
    assert_string_equal(job_park(job_of(b))->text, "node b: it is busy");
    assert_int_equal(orders(b, 0, PARK_RETURN), 1);
    assert_int_equal(orders(b, 1, PARK_RETURN), 1);
    answer(b, 0, PARK_SAVE, PARK_DONE); // said before the order to return arrived
    assert_int_equal(phase(b), PARK_NONE);
    assert_int_equal(job_of(b)->state, JOB_RUNNING);
}

CASE(a_rank_that_is_lost_while_it_is_undone_ends_the_job, b)
{
    park(b);
    answer(b, 1, PARK_SAVE, PARK_REFUSED);
    answer(b, 0, PARK_RETURN, PARK_LOST);
    assert_int_equal(job_of(b)->state, JOB_STOPPING);
    assert_int_equal(job_of(b)->stop_reason, END_GPU_FAULT);
}

CASE(a_rank_that_could_not_return_leaves_all_parked, b)
{
    park_all(b);
    unpark(b);
    answer(b, 1, PARK_CHECK, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_RESTORING);
    answer(b, 0, PARK_CHECK, PARK_DONE);
    assert_int_equal(phase(b), PARK_WAITING);
    assert_string_equal(job_park(job_of(b))->text, "node b: it is busy");
    assert_int_equal(orders(b, 0, PARK_CHECK) + orders(b, 1, PARK_CHECK), 2);
}

CASE(a_rank_that_refuses_when_others_are_back_is_tried_again, b)
{
    park_all(b);
    unpark(b);
    answer(b, 0, PARK_CHECK, PARK_DONE);
    answer(b, 1, PARK_CHECK, PARK_DONE);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    b->n_sent = 0;
    answer(b, 1, PARK_RETURN, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_RESTORING);
    assert_int_equal(orders(b, 1, PARK_RETURN), 0);
    bench_pass(b, 6000);
    assert_int_equal(orders(b, 1, PARK_RETURN), 1);
    assert_int_equal(orders(b, 0, PARK_RETURN), 0);
    answer(b, 1, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_NONE);
}

/* It asks whether all could return, and one has done so. */
CASE(a_controller_that_starts_in_the_middle_lets_the_others_return_too, b)
{
    park_all(b);
    unpark(b);
    answer(b, 0, PARK_CHECK, PARK_DONE);
    answer(b, 1, PARK_CHECK, PARK_DONE);
    bench_restart(b, bench_stored(b, JOB));
    b->n_sent = 0;
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct known_attempt known = {
            .id.job = JOB, .id.attempt = 1, .id.rank = rank, .token = job_of(b)->token, .phase = PHASE_RUNNING
        };
        (void)hello(b, rank + 1, rank == 0 ? "a" : "b", &known);
    }
    assert_int_equal(orders(b, 0, PARK_CHECK), 1);
    assert_int_equal(orders(b, 1, PARK_CHECK), 1);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    answer(b, 1, PARK_CHECK, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_RESTORING);
    assert_int_equal(orders(b, 1, PARK_RETURN), 1);
    answer(b, 1, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_NONE);
}

TEST_ON(a_job_that_may_move_returns_on_a_free_gpu_of_its_node, struct bench *b, open_movable, bench_close)
{
    static int other;
    uint32_t before = ((const struct gpu_grant *)job_of(b)->grants.items)->index;
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    struct job_spec *spec = bench_spec("train");
    free(spec->ask.gpu_ids);
    spec->ask.gpu_ids = xasprintf("%u", before);
    bench_submit_spec(b, &owner, spec, &other);
    unpark(b);
    assert_int_equal(job_of(b)->grants.count, 1);
    assert_int_equal(((const struct gpu_grant *)job_of(b)->grants.items)->index, 1 - before);
    const struct sent *order = bench_sent(b, MESSAGE_PARK, JOB);
    assert_int_equal(order->action, PARK_RETURN);
    assert_int_equal(order->n_gpus, 1);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_NONE);
}

/* GPU-seconds that its owner has been charged for. */
static double held(struct bench *b)
{
    struct fairshare *fairshare = sched_fairshare(b->core->sched);
    return fairshare_held(fairshare_account(fairshare, owner.uid, ACCOUNT_USER), b->now_ms);
}

static void pass(struct bench *b, int64_t seconds)
{
    bench_pass(b, seconds * SECOND_MS);
    bench_turn(b);
    bench_settle(b);
}

TEST_WITH(a_parked_job_is_not_charged_and_its_time_limit_stands_still, open_limited, bench_close)
{
    struct bench *b = *state;
    pass(b, 100);
    assert_float_equal(held(b), 200, 0.1); // on two GPUs
    park(b);
    pass(b, 5); // until they are free
    answer(b, 0, PARK_SAVE, PARK_DONE);
    assert_float_equal(held(b), 210, 0.1);
    pass(b, 10 * LIMIT_S);
    assert_int_equal(phase(b), PARK_PARKED);
    assert_int_equal(job_of(b)->state, JOB_RUNNING);
    assert_float_equal(held(b), 210, 0.1);
    unpark(b);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    pass(b, LIMIT_S - 105 - 1);
    assert_int_equal(job_of(b)->state, JOB_RUNNING);
    assert_float_equal(held(b), 2 * (LIMIT_S - 1), 0.1);
    pass(b, 1 + AFTERWARDS);
    assert_int_equal(job_of(b)->state, JOB_STOPPING);
}

TEST_ON(a_late_answer_to_an_earlier_order_does_not_count, struct bench *b, open_limited, bench_close)
{
    park(b);
    uint32_t earlier = job_park(job_of(b))->number;
    answer(b, 0, PARK_SAVE, PARK_REFUSED);
    assert_int_equal(phase(b), PARK_NONE);
    park(b);
    const struct message_park_result late = { .id.job = JOB,
        .id.attempt = 1,
        .token = job_of(b)->token,
        .number = earlier,
        .action = PARK_SAVE,
        .outcome = PARK_DONE };
    bench_say(b, 1, MESSAGE_PARK_RESULT, &late);
    assert_int_equal(phase(b), PARK_SAVING);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    assert_int_equal(phase(b), PARK_PARKED);
}

/* Its node connects again, and says which orders it has had: later ones than this store knows of. */
static void find_rank(struct bench *b, uint32_t rank, struct known_attempt known)
{
    known.id = (struct spool_id){ .job = JOB, .attempt = 1, .rank = rank };
    known.token = job_of(b)->token;
    known.phase = PHASE_RUNNING;
    b->n_sent = 0;
    core_link_down(b->core, b->now_ms, b->now_ms, rank + 1);
    assert_int_equal(hello(b, rank + 1, rank == 0 ? "a" : "b", &known), 0);
}

static void find(struct bench *b, struct known_attempt known)
{
    find_rank(b, 0, known);
}

/* Its GPUs are free. */
static void expect_return(struct bench *b)
{
    assert_int_equal(phase(b), PARK_RESTORING);
    assert_int_equal(orders(b, 0, PARK_RETURN), 1);
    answer(b, 0, PARK_RETURN, PARK_DONE);
    assert_int_equal(phase(b), PARK_NONE);
}

TEST_ON(a_job_that_was_parked_after_a_backup_returns_by_itself, struct bench *b, open_limited, bench_close)
{
    find(b, (struct known_attempt){ .terms = 2, .park_number = 5, .park_seen = PARK_SEEN_PARKED });
    assert_int_equal(phase(b), PARK_SAVING);
    assert_true(job_park(job_of(b))->number > 5);
    assert_int_equal(orders(b, 0, PARK_SAVE), 1);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    expect_return(b);
}

TEST_WITH(a_job_that_was_returning_when_the_backup_was_made_is_parked_first, open_movable, bench_close)
{
    struct bench *b = *state;
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    unpark(b);
    find(b, (struct known_attempt){ .park_number = 4, .park_seen = PARK_SEEN_RUNNING });
    assert_int_equal(phase(b), PARK_SAVING);
    assert_int_equal(orders(b, 0, PARK_SAVE), 1);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    expect_return(b);
}

/* Others may have its GPUs in this store. */
TEST_ON(a_job_that_returned_after_a_backup_is_parked_again, struct bench *b, open_limited, bench_close)
{
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    find(b, (struct known_attempt){ .park_number = 2, .park_seen = PARK_SEEN_RUNNING });
    assert_int_equal(phase(b), PARK_PARKED);
    assert_int_equal(orders(b, 0, PARK_SAVE), 1);
    assert_int_equal(bench_sent(b, MESSAGE_UPDATE, JOB)->is_suspended, 0); // the driver saves what runs
    bench_turn(b);
    bench_settle(b);
    assert_int_equal(phase(b), PARK_PARKED);
    answer(b, 0, PARK_SAVE, PARK_REFUSED); // then it runs until it may
    expect_return(b);
}

/* Its node would restore it, and tell this store of a number that it does not wait for. */
TEST_ON(a_job_that_is_returning_is_parked_again, struct bench *b, open_limited, bench_close)
{
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    find(b, (struct known_attempt){ .park_number = 2, .park_seen = PARK_SEEN_CHANGING });
    assert_int_equal(phase(b), PARK_PARKED);
    assert_int_equal(orders(b, 0, PARK_SAVE), 1);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    expect_return(b);
}

/* The first rank to connect continued the numbers. */
CASE(a_rank_that_is_returning_is_parked_again_though_its_numbers_are_known, b)
{
    park(b);
    for (uint32_t rank = 0; rank < 2; rank++)
        answer(b, rank, PARK_SAVE, PARK_DONE);
    find_rank(b, 0, (struct known_attempt){ .park_number = 5, .park_seen = PARK_SEEN_PARKED });
    assert_int_equal(phase(b), PARK_PARKED);
    assert_false(job_park_is_unconfirmed(job_of(b)));
    find_rank(b, 1, (struct known_attempt){ .park_number = 5, .park_seen = PARK_SEEN_CHANGING });
    assert_true(job_park_is_unconfirmed(job_of(b)));
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(orders(b, rank, PARK_SAVE), 1);
        answer(b, rank, PARK_SAVE, PARK_DONE);
    }
    assert_false(job_park_is_unconfirmed(job_of(b)));
}

TEST_WITH(
    a_job_that_stays_parked_stays_so_and_its_orders_go_on_behind_those_of_its_node, open_limited, bench_close)
{
    struct bench *b = *state;
    park(b);
    answer(b, 0, PARK_SAVE, PARK_DONE);
    find(b, (struct known_attempt){ .park_number = 9, .park_seen = PARK_SEEN_PARKED });
    assert_int_equal(phase(b), PARK_PARKED);
    assert_int_equal(orders(b, 0, PARK_SAVE), 0);
    unpark(b);
    assert_true(job_park(job_of(b))->number > 10);
    assert_int_equal(orders(b, 0, PARK_RETURN), 1);
}

TEST_ON(a_job_that_was_suspended_after_a_backup_goes_on, struct bench *b, open_limited, bench_close)
{
    find(b, (struct known_attempt){ .terms = 3 });
    assert_int_equal(phase(b), PARK_NONE);
    assert_int_equal(bench_sent(b, MESSAGE_UPDATE, JOB)->is_suspended, 0);
    assert_true(bench_sent(b, MESSAGE_UPDATE, JOB)->number > 3);
    uint32_t number = job_run(job_of(b))->terms;
    find(b, (struct known_attempt){ .terms = number });
    assert_int_equal(job_run(job_of(b))->terms, number); // its node knows no more now
}

/* A node may send any numbers. */
TEST_ON(numbers_that_no_order_can_have_had_are_ignored, struct bench *b, open_limited, bench_close)
{
    for (int i = 0; i < 2; i++) {
        find(b, (struct known_attempt){
                    .terms = UINT32_MAX, .park_number = UINT32_MAX, .park_seen = PARK_SEEN_PARKED });
        assert_int_equal(phase(b), PARK_NONE);
        assert_int_equal(job_park(job_of(b))->number, 0);
        assert_int_equal(job_run(job_of(b))->terms, 0);
    }
}

/* As mgpud sees the wall clock for five minutes after it was set. */
CASE(it_returns_after_the_time_it_was_parked_for_whatever_the_wall_clock_says, b)
{
    core_park(b->core, b->now_ms, b->now_ms + 3600 * SECOND_MS, &owner, JOB, 5 * SECOND_MS, &asked);
    bench_settle(b);
    assert_int_equal(job_park(job_of(b))->return_ms, b->core->last_ms + 5 * SECOND_MS);
}
