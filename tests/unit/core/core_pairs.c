/* SPDX-License-Identifier: MIT */
/* Arrays whose elements wait for those of other arrays (AFTER_CORR). One element runs at a time. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

char *__real_array_without(const char *text, uint32_t index);
char *__wrap_array_without(const char *text, uint32_t index);

static size_t n_compared; // lists of elements, with the index of one

char *__wrap_array_without(const char *text, uint32_t index)
{
    n_compared++;
    return __real_array_without(text, index);
}

static const struct identity owner = { .is_known = true, .uid = 1000, .gid = 1000 };

static int open_with_node(void **state)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.recent_done_max = 64;
    bench_configure(b);
    return bench_hello(*state, 1, "boot", 1, NULL, 0);
}

#define CASE(name, b) TEST_ON(name, struct bench *b, open_with_node, bench_close)

/* An array with these elements, and `after`; its id. */
static uint64_t submit_array(struct bench *b, const char *elements, char *after)
{
    static int requests[16];
    static size_t n_requests;
    void *request = &requests[n_requests++ % 16];
    struct job_spec *spec = bench_spec("true");
    spec->ask.gpus = 1;
    spec->ask.array = xstrdup(elements);
    spec->ask.after = after;
    spec->ask.cancel_if_never = after != NULL;
    bench_submit_spec(b, &owner, spec, request);
    assert_int_equal(bench_answer(b, request)->code, 0);
    return bench_answer(b, request)->job;
}

static uint64_t submit(struct bench *b, char *after)
{
    return submit_array(b, "0-1", after);
}

static char *pair_of(uint64_t array)
{
    return xasprintf("%llu:corr", (unsigned long long)array);
}

/* NULL: it has not been split off. */
static const struct job *element(const struct bench *b, uint64_t array, uint32_t index)
{
    for (uint64_t id = array + 1; id <= core_last_job(b->core); id++) {
        const struct job *job = core_job(b->core, id);
        if (job != NULL && job->array_job == array && job->array_index == index)
            return job;
    }
    return NULL;
}

static bool has_started(const struct bench *b, uint64_t array, uint32_t index)
{
    const struct job *job = element(b, array, index);
    return job != NULL && job->attempt > 0;
}

static void end(struct bench *b, uint64_t array, uint32_t index, int exit_code)
{
    assert_true(has_started(b, array, index));
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, element(b, array, index)->id);
    assert_int_equal(bench_started(b, 1, launch), 0);
    bench_settle(b);
    assert_int_equal(bench_exited(b, 1, launch, END_EXIT, exit_code), 0);
    bench_settle(b);
}

CASE(an_element_starts_when_its_partner_has_ended_well, b)
{
    uint64_t first = submit(b, NULL), second = submit(b, pair_of(first));
    end(b, first, 0, 0);
    assert_false(has_started(b, second, 1));
    end(b, first, 1, 1);
    end(b, second, 0, 0);
    assert_int_equal(element(b, second, 1)->end, END_DEPENDENCY);
}

/* The end of the second element is what the third waits for. */
CASE(a_chain_of_arrays_is_given_up_in_one_turn, b)
{
    uint64_t first = submit(b, NULL), second = submit(b, pair_of(first)), third = submit(b, pair_of(second));
    end(b, first, 0, 1);
    const struct job *last = element(b, third, 0), *middle = element(b, second, 0);
    assert_non_null(last);
    assert_int_equal(last->end, END_DEPENDENCY);
    assert_int_equal(last->ended_ms, middle->ended_ms);
    assert_null(element(b, third, 1));
}

static void hold(struct bench *b, uint64_t array, uint32_t index, bool is_release)
{
    bool waits = false;
    uint64_t id = core_element(b->core, b->now_ms, b->now_ms, array, index, true, &waits);
    core_hold(b->core, b->now_ms, b->now_ms, &owner, id, is_release, NULL);
    bench_settle(b);
}

/* Otherwise it would wait for the whole array, and be given up when another element of that fails. */
CASE(an_element_that_was_held_waits_for_its_partner_alone, b)
{
    uint64_t first = submit(b, NULL), second = submit(b, pair_of(first));
    hold(b, second, 0, false);
    assert_int_equal(element(b, second, 0)->state, JOB_QUEUED);
    end(b, first, 0, 0);
    hold(b, second, 0, true);
    hold(b, second, 1, false); // its partner runs
    end(b, first, 1, 1);
    assert_int_equal(element(b, second, 1)->end, END_DEPENDENCY);
    end(b, second, 0, 0);
}

CASE(an_element_that_is_held_when_its_partner_is_over_does_not_wait_for_the_others, b)
{
    uint64_t first = submit(b, NULL);
    end(b, first, 0, 0);
    uint64_t second = submit(b, pair_of(first));
    hold(b, second, 0, false);
    end(b, first, 1, 1);
    assert_int_equal(element(b, second, 0)->state, JOB_QUEUED);
    hold(b, second, 0, true);
    end(b, second, 0, 0);
}

CASE(an_element_with_two_partners_waits_for_both, b)
{
    uint64_t first = submit(b, NULL), other = submit(b, NULL);
    char *after = xasprintf("%llu:corr,%llu:corr", (unsigned long long)first, (unsigned long long)other);
    uint64_t second = submit(b, after);
    end(b, first, 0, 0);
    end(b, first, 1, 0);
    assert_false(has_started(b, second, 0));
    end(b, other, 0, 0);
    end(b, other, 1, 1);
    end(b, second, 0, 0);
    assert_int_equal(element(b, second, 1)->end, END_DEPENDENCY);
}

CASE(the_end_of_an_element_costs_nothing_to_those_that_wait_for_other_arrays, b)
{
    uint64_t waiting[5];
    b->options.queue_max = 64;
    bench_configure(b);
    uint64_t first = submit_array(b, "0-3", NULL), other = submit(b, NULL);
    n_compared = 0;
    end(b, first, 0, 0);
    size_t alone = n_compared;
    for (size_t i = 0; i < 5; i++)
        waiting[i] = submit(b, pair_of(other));
    n_compared = 0;
    end(b, first, 1, 0);
    assert_int_equal(n_compared, alone);
    end(b, first, 2, 0);
    end(b, first, 3, 0);
    end(b, other, 0, 0);
    end(b, other, 1, 1);
    for (size_t i = 0; i < 5; i++) {
        end(b, waiting[i], 0, 0);
        assert_int_equal(element(b, waiting[i], 1)->end, END_DEPENDENCY);
    }
}

CASE(an_array_waits_for_what_an_edit_names, b)
{
    int request;
    b->options.queue_max = 64;
    bench_configure(b);
    uint64_t first = submit(b, NULL), other = submit(b, NULL), second = submit(b, pair_of(first));
    struct job_ask ask;
    job_ask_copy(&ask, core_job(b->core, second)->ask);
    free(ask.after);
    ask.after = pair_of(other);
    core_edit(b->core, b->now_ms, b->now_ms, &owner, second, &ask, NULL, NULL, &request);
    bench_settle(b);
    job_ask_clear(&ask);
    assert_int_equal(bench_answer(b, &request)->code, 0);
    end(b, first, 0, 1);
    end(b, first, 1, 1);
    assert_null(element(b, second, 0));
    end(b, other, 0, 0);
    end(b, other, 1, 1);
    end(b, second, 0, 0);
    assert_int_equal(element(b, second, 1)->end, END_DEPENDENCY);
}

CASE(an_array_that_is_cancelled_waits_for_no_other, b)
{
    uint64_t first = submit(b, NULL), second = submit(b, pair_of(first));
    struct core_entry *waiting = core_find(b->core, second), *array = core_find(b->core, first);
    assert_ptr_not_equal(core_extra(waiting)->pairs, NULL);
    assert_ptr_not_equal(core_extra(array)->pair_first, NULL);
    core_cancel(b->core, b->now_ms, b->now_ms, &owner, second, -1, NULL);
    bench_settle(b);
    assert_null(core_extra(waiting)->pairs);
    assert_null(core_extra(array)->pair_first);
}

CASE(a_cancel_of_what_waits_spares_the_element_that_runs, b)
{
    static int request, again;
    uint64_t array = submit_array(b, "0-3", NULL);
    assert_true(has_started(b, array, 0));
    core_cancel_waiting(b->core, b->now_ms, b->now_ms, &owner, array, &request);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &request)->code, 0);
    assert_string_equal(core_job(b->core, array)->array_left, "");
    assert_int_equal(element(b, array, 0)->stop_reason, END_NONE);
    core_cancel_waiting(b->core, b->now_ms, b->now_ms, &owner, array, &again);
    bench_settle(b);
    assert_int_equal(bench_answer(b, &again)->code, -EALREADY);
    end(b, array, 0, 0);
    assert_int_equal(element(b, array, 0)->end, END_EXIT);
}
