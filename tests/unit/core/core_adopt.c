/* SPDX-License-Identifier: MIT */
/* Leases: who may adopt a process, which GPUs it gets, and what happens when it ends or is let go. */
#include "bench.h"

#include <errno.h>
#include <signal.h>

#include "base/memory.h"
#include "memory_store.h"

#define CASE(name, b) TEST_ON(name, struct bench *b, bench_open_with_two, bench_close)

#define PID   8123U
#define START 4711U
#define GIB   (1ULL << 30)

static int one, two, three;
static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };
static const struct identity admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };

/* One process of PID on GPU 0, of that job; `stranger` is another one of that much memory. */
static void see(struct bench *b, uint64_t job, uint64_t stranger)
{
    char first[] = "GPU-0", second[] = "GPU-1";
    struct gpu_process processes[] = {
        { .pid = PID, .start = START, .job = job, .memory_bytes = 2 * GIB, .is_memory_known = 1 },
        { .pid = 9000, .start = START, .memory_bytes = stranger, .is_memory_known = 1 },
    };
    struct gpu_state gpus[] = {
        { .uuid = first,
            .memory_bytes = 24 * GIB,
            .valid = GPU_PROCESSES,
            .processes = { processes, stranger > 0 ? 2 : 1 } },
        { .uuid = second, .index = 1, .memory_bytes = 24 * GIB, .valid = GPU_PROCESSES },
    };
    struct message_gpus sample = { .gpus = { gpus, 2 } };
    struct error err;
    b->now_ms += 1000;
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_GPUS, &sample, &err), 0);
    bench_settle(b);
}

static uint64_t ask(
    struct bench *b, const struct identity *who, uint32_t gpus, const char *gpu_ids, void *request)
{
    struct job_spec *spec = xcalloc(1, sizeof(*spec));
    job_spec_init(spec);
    spec->ask.adopted_pid = PID;
    spec->ask.gpus = gpus;
    spec->ask.gpu_ids = xstrdup(gpu_ids);
    size_t before = b->n_sent;
    core_adopt(b->core, b->now_ms, b->now_ms, who, spec, NULL, request);
    bench_settle(b);
    return b->n_sent > before ? b->sent[before].job
                              : 0; // the number of the question, in the place of the job of a launch
}

static void say(struct bench *b, struct message_process_info process)
{
    struct error err;
    char word[] = "python";
    char *words[] = { word };
    process.pid = PID;
    process.start = START;
    process.uid = process.uid != 0 ? process.uid : 1000;
    process.gid = 1000;
    process.command = (struct strings){ .items = words, .count = 1 };
    assert_int_equal(
        core_link_message(b->core, b->now_ms, b->now_ms, 1, MESSAGE_PROCESS_INFO, &process, &err), 0);
    bench_settle(b);
}

static void adopt(struct bench *b, uint32_t gpus, char *seen, void *request)
{
    say(b, (struct message_process_info){ .question = ask(b, &owner, gpus, NULL, request), .gpu_ids = seen });
}

static int code(const struct bench *b, const void *request)
{
    const struct core_answer *answer = bench_answer(b, request);
    return answer == NULL ? 1 : answer->code;
}

CASE(adoption_is_created_once_its_node_has_reported_the_process, b)
{
    uint64_t question = ask(b, &owner, 1, NULL, &one);
    assert_null(bench_answer(b, &one));
    say(b, (struct message_process_info){ .question = question });
    assert_int_equal(code(b, &one), 0);
    const struct job *job = core_job(b->core, 11);
    assert_int_equal(job->state, JOB_STARTING);
    assert_string_equal(job->name, "python");
    assert_true(job->ask->adopted_start == START);
    assert_string_equal(job->ask->adopted_boot, "boot");
    assert_non_null(bench_sent(b, MESSAGE_LAUNCH, 11));
}

CASE(what_its_node_refuses_is_refused, b)
{
    char text[] = "there is no process 8123";
    say(b, (struct message_process_info){
               .question = ask(b, &owner, 1, NULL, &one), .error = ESRCH, .text = text });
    assert_int_equal(code(b, &one), -ENOENT);
    assert_null(core_job(b->core, 11));
}

CASE(a_process_of_another_is_for_operators_and_stays_its_owners, b)
{
    say(b, (struct message_process_info){ .question = ask(b, &owner, 1, NULL, &one), .uid = 1001 });
    assert_int_equal(code(b, &one), -EPERM);
    say(b, (struct message_process_info){ .question = ask(b, &admin, 1, NULL, &two), .uid = 1001 });
    assert_int_equal(code(b, &two), 0);
    assert_int_equal(core_job(b->core, 11)->uid, 1001);
}

CASE(a_process_is_adopted_once, b)
{
    adopt(b, 1, NULL, &one);
    adopt(b, 1, NULL, &two);
    assert_int_equal(code(b, &two), -EEXIST);
}

CASE(it_must_ask_for_the_gpus_that_its_process_is_on, b)
{
    char both[] = "0,1";
    adopt(b, 0, NULL, &one);
    assert_int_equal(code(b, &one), -EINVAL);
    adopt(b, 1, both, &two);
    assert_int_equal(code(b, &two), -EINVAL);
    adopt(b, 0, both, &three);
    assert_int_equal(code(b, &three), 0);
    assert_string_equal(core_job(b->core, 11)->ask->gpu_ids, "box:0,1");
}

CASE(a_process_on_the_gpu_of_a_job_is_refused, b)
{
    char seen[] = "0";
    bench_submit(b, 1001, 2, NULL, &one);
    bench_settle(b);
    adopt(b, 0, seen, &two);
    assert_int_equal(code(b, &two), -EBUSY);
    adopt(b, 1, NULL, &three);
    assert_int_equal(code(b, &three), 0);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
}

CASE(gpu_used_by_the_adopted_process_alone_is_free_for_its_adoption_only, b)
{
    char seen[] = "0";
    see(b, 0, 0);
    bench_submit(b, 1001, 2, NULL, &one);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    adopt(b, 0, seen, &two);
    assert_int_equal(core_job(b->core, 12)->state, JOB_STARTING);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
}

CASE(another_external_process_delays_the_adoption, b)
{
    char seen[] = "0";
    see(b, 0, 4 * GIB);
    adopt(b, 0, seen, &one);
    assert_int_equal(core_job(b->core, 11)->state, JOB_QUEUED);
    see(b, 11, 0);
    assert_int_equal(core_job(b->core, 11)->state, JOB_STARTING);
}

CASE(one_whose_process_ends_while_it_waits_is_cancelled, b)
{
    char text[] = "process 8123 ended while it waited to be adopted";
    bench_submit(b, 1001, 2, NULL, &one);
    bench_settle(b);
    adopt(b, 1, NULL, &two);
    say(b, (struct message_process_info){ .job = 12, .error = ESRCH, .text = text });
    assert_int_equal(core_job(b->core, 12)->state, JOB_DONE);
    assert_int_equal(core_job(b->core, 12)->end, END_CANCELLED);
    assert_string_equal(core_job(b->core, 12)->text, text);
}

CASE(one_that_waits_ends_with_the_boot_of_its_node, b)
{
    bench_submit(b, 1001, 2, NULL, &one);
    bench_settle(b);
    adopt(b, 1, NULL, &two);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    (void)bench_hello(b, 2, "boot", 2, NULL, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
    core_link_down(b->core, b->now_ms, b->now_ms, 2);
    (void)bench_hello(b, 3, "another boot", 2, NULL, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 12)->end, END_CANCELLED);
}

CASE(a_question_ends_with_its_link, b)
{
    (void)ask(b, &owner, 1, NULL, &one);
    core_link_down(b->core, b->now_ms, b->now_ms, 1);
    bench_settle(b);
    assert_int_equal(code(b, &one), -EHOSTDOWN);
    assert_int_equal(ask(b, &owner, 1, NULL, &two), 0);
    assert_int_equal(code(b, &two), -EHOSTDOWN);
}

CASE(a_question_ends_when_its_node_comes_on_another_link, b)
{
    (void)ask(b, &owner, 1, NULL, &one);
    assert_int_equal(bench_hello(b, 2, "boot", 2, NULL, 0), 0);
    bench_settle(b);
    assert_int_equal(code(b, &one), -EHOSTDOWN);
}

CASE(adoption_of_a_disconnected_client_is_dropped, b)
{
    uint64_t question = ask(b, &owner, 1, NULL, &one);
    core_forget(b->core, &one);
    say(b, (struct message_process_info){ .question = question });
    assert_null(core_job(b->core, 11));
}

CASE(the_gpu_of_a_process_that_was_let_go_is_closed_at_once, b)
{
    char seen[] = "0";
    see(b, 0, 0);
    adopt(b, 0, seen, &one);
    struct sent launch = *bench_sent(b, MESSAGE_LAUNCH, 11);
    (void)bench_started(b, 1, &launch);
    for (int i = 0; i < 5; i++)
        see(b, 11, 0);
    bench_submit(b, 1001, 2, NULL, &two);
    bench_settle(b);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, 0, &three);
    bench_settle(b);
    (void)bench_exited(b, 1, &launch, END_CANCELLED, 0);
    bench_settle(b);
    assert_int_equal(core_job(b->core, 11)->end, END_CANCELLED);
    assert_int_equal(core_job(b->core, 12)->state, JOB_QUEUED);
}

static const struct sent *run_adopted(struct bench *b)
{
    adopt(b, 1, NULL, &one);
    (void)bench_started(b, 1, bench_sent(b, MESSAGE_LAUNCH, 11));
    b->now_ms += 10; // a start may be committed late
    core_timer(b->core, b->now_ms, b->now_ms);
    bench_settle(b);
    return bench_sent(b, MESSAGE_LAUNCH, 11);
}

/* mgpud starts anew while the adoption is being stopped. What it tells the node then. */
static const struct sent *stop_after_restart(struct bench *b, const struct sent *launch)
{
    struct known_attempt known = {
        .id.job = 11, .id.attempt = 1, .token = launch->token, .phase = PHASE_RUNNING
    };
    bench_restart(b, bench_stored(b, 11));
    b->n_sent = 0;
    assert_int_equal(bench_hello(b, 2, "boot", 2, &known, 1), 0);
    bench_settle(b);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11));
    return bench_sent(b, MESSAGE_STOP, 11);
}

CASE(a_process_that_was_to_be_ended_still_is_after_a_restart, b)
{
    const struct sent launch = *run_adopted(b);
    core_cancel_process(b->core, b->now_ms, b->now_ms, &owner, 11, 500, &two);
    bench_settle(b);
    const struct sent before = *bench_sent(b, MESSAGE_STOP, 11);
    assert_int_equal(before.signal, SIGTERM | STOP_ADOPTED);
    assert_int_equal(before.grace_ms, 500);
    const struct sent *after = stop_after_restart(b, &launch);
    assert_int_equal(after->signal, before.signal);
    assert_int_equal(after->grace_ms, before.grace_ms);
}

CASE(terms_of_a_second_cancel_hold_after_a_restart, b)
{
    const struct sent launch = *run_adopted(b);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, -1, &two);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->signal, SIGTERM);
    core_cancel_process(b->core, b->now_ms, b->now_ms, &owner, 11, 0, &three);
    bench_settle(b);
    const struct sent *after = stop_after_restart(b, &launch);
    assert_int_equal(after->signal, SIGTERM | STOP_ADOPTED);
    assert_int_equal(after->grace_ms, 0);
}

CASE(an_operator_cannot_have_the_process_ended, b)
{
    const struct identity operator= { .is_known = true, .uid = 78, .role = ROLE_OPERATOR };
    (void)run_adopted(b);
    core_cancel_process(b->core, b->now_ms, b->now_ms, &operator, 11, 0, &two);
    bench_settle(b);
    assert_int_equal(bench_sent(b, MESSAGE_STOP, 11)->signal, SIGTERM);
}

CASE(a_cancel_that_says_nothing_new_makes_no_event, b)
{
    (void)run_adopted(b);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, 500, &two);
    bench_settle(b);
    size_t before = b->n_published;
    b->n_sent = 0;
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, 11, 500, &three);
    bench_settle(b);
    assert_int_equal(b->n_published, before);
    assert_non_null(bench_sent(b, MESSAGE_STOP, 11)); // but it is told again
}

CASE(process_of_an_adoption_cannot_be_edited, b)
{
    _cleanup_(job_ask_clear) struct job_ask edit;
    bench_submit(b, 1001, 2, NULL, &one);
    bench_settle(b);
    adopt(b, 1, NULL, &two);
    job_ask_copy(&edit, core_job(b->core, 12)->ask);
    edit.adopted_pid++;
    core_edit(b->core, b->now_ms, b->now_ms, &owner, 12, &edit, NULL, NULL, &three);
    bench_settle(b);
    assert_int_equal(code(b, &three), -EINVAL);
}
