/* SPDX-License-Identifier: MIT */
#include "sched/history/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sched/history/history_cell.h"
#include "unit_test.h"

#define MINUTE_MS 60000
#define HOUR_MS   3600000

static const struct history_key ada = { .uid = 1, .gid = 1, .command_hash = 7, .gpu_milli = 1000 };

static int open_history(void **state)
{
    *state = history_new(1000, HOUR_MS);
    return 0;
}

static int close_history(void **state)
{
    history_free(*state);
    return 0;
}

#define CASE(name, history) TEST_ON(name, struct history *history, open_history, close_history)

static struct estimate estimate(const struct history *history, struct history_key key)
{
    struct estimate ret;
    history_estimate(history, &key, 0, ESTIMATE_ALL, &ret);
    assert_true(ret.order_ms > 0 && ret.likely_ms > 0);
    assert_true(ret.safe_ms >= ret.likely_ms);
    return ret;
}

static void assert_about(int64_t value, int64_t expected)
{
    if (value < expected * 7 / 10 || value > expected * 14 / 10)
        fail_msg("%ld is not about %ld", (long)value, (long)expected);
}

static void add(struct history *history, struct history_key key, int64_t run_ms, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        history_add(history, &key, 0, run_ms);
}

CASE(without_history_the_default_is_expected, history)
{
    struct estimate none = estimate(history, ada);
    assert_int_equal(none.basis, BASIS_NONE);
    assert_int_equal(none.order_ms, HOUR_MS);
    assert_int_equal(none.likely_ms, HOUR_MS);
    assert_int_equal(none.samples, 0);
}

CASE(runs_of_the_same_command_decide_once_there_are_some, history)
{
    struct history_key other = ada;
    other.command_hash = 8;
    add(history, other, 10 * HOUR_MS, 30);
    add(history, ada, MINUTE_MS, 12);
    struct estimate known = estimate(history, ada);
    assert_int_equal(known.basis, BASIS_COMMAND);
    assert_int_equal(known.samples, 12);
    assert_about(known.likely_ms, MINUTE_MS);
    assert_about(estimate(history, other).likely_ms, 10 * HOUR_MS);
}

CASE(an_unknown_command_is_taken_to_be_like_the_users_others, history)
{
    const struct history_key bob = { .uid = 2, .gid = 1, .command_hash = 9, .gpu_milli = 8000 };
    add(history, ada, MINUTE_MS, 20);
    add(history, bob, 20 * HOUR_MS, 20);
    struct history_key asked = ada;
    asked.command_hash = 99;
    assert_int_equal(estimate(history, asked).basis, BASIS_USER_GPUS);
    assert_about(estimate(history, asked).likely_ms, MINUTE_MS);
    asked.gpu_milli = 4000;
    assert_int_equal(estimate(history, asked).basis, BASIS_USER);
    asked.uid = 3;
    assert_int_equal(estimate(history, asked).basis, BASIS_ALL);
    struct estimate of_all = estimate(history, asked);
    assert_true(of_all.likely_ms > MINUTE_MS && of_all.safe_ms > 10 * HOUR_MS);
}

CASE(one_run_moves_an_estimate_but_does_not_decide_it, history)
{
    struct history_key asked = ada;
    add(history, ada, 10 * HOUR_MS, 40);
    asked.command_hash = 99;
    int64_t before_ms = estimate(history, asked).order_ms;
    add(history, asked, MINUTE_MS, 1);
    struct estimate after = estimate(history, asked);
    assert_true(after.order_ms < before_ms);
    assert_about(after.likely_ms, 10 * HOUR_MS);
    assert_int_equal(after.basis, BASIS_USER_GPUS);
}

CASE(old_runs_fade, history)
{
    add(history, ada, 10 * HOUR_MS, 200);
    add(history, ada, MINUTE_MS, 60);
    assert_about(estimate(history, ada).likely_ms, MINUTE_MS);
    add(history, ada, MINUTE_MS, 2000);
    assert_true(estimate(history, ada).safe_ms < 5 * MINUTE_MS);
}

CASE(durations_of_any_length_are_taken, history)
{
    add(history, ada, 0, 40);
    assert_true(estimate(history, ada).likely_ms < 8000);
    add(history, ada, INT64_MAX, 100);
    assert_true(estimate(history, ada).likely_ms > 100 * 24 * (int64_t)HOUR_MS);
}

CASE(what_has_run_longer_is_expected_to_run_longer, history)
{
    struct estimate before = { 0 }, now;
    add(history, ada, 10 * MINUTE_MS, 10);
    for (int64_t elapsed_ms = 0; elapsed_ms < 400 * 24 * (int64_t)HOUR_MS;
         elapsed_ms = elapsed_ms * 3 / 2 + 1000) {
        history_estimate(history, &ada, elapsed_ms, ESTIMATE_ALL, &now);
        assert_true(now.order_ms > elapsed_ms && now.likely_ms > elapsed_ms && now.safe_ms >= now.likely_ms);
        assert_true(now.likely_ms >= before.likely_ms && now.safe_ms >= before.safe_ms);
        before = now;
    }
    history_estimate(history, &ada, INT64_MAX, ESTIMATE_ALL, &now);
    assert_true(now.likely_ms > 0);
}

CASE(a_time_limit_bounds_what_is_expected, history)
{
    struct history_key limited = ada;
    limited.limit_ms = HOUR_MS;
    add(history, ada, 10 * HOUR_MS, 40);
    assert_about(estimate(history, ada).likely_ms, 10 * HOUR_MS);
    assert_true(estimate(history, limited).likely_ms < 2 * HOUR_MS);
    add(history, limited, MINUTE_MS, 40);
    assert_int_equal(estimate(history, limited).basis, BASIS_COMMAND_LIMIT);
    assert_about(estimate(history, limited).likely_ms, MINUTE_MS);
    limited.limit_ms = 2 * HOUR_MS;
    assert_int_equal(estimate(history, limited).basis, BASIS_COMMAND);
}

/* --- bursts --- */

#define CLASS UINT64_C(77)

static struct history_key member(struct history *history, int64_t submit_ms)
{
    struct history_key key = ada;
    key.burst = history_burst(history, CLASS, submit_ms);
    return key;
}

CASE(jobs_submitted_shortly_after_each_other_are_one_burst, history)
{
    uint64_t first = history_burst(history, CLASS, 0);
    assert_true(first != 0);
    assert_int_equal(history_burst(history, CLASS, 30000), first);
    assert_int_equal(history_burst(history, CLASS, 60000), first);
    uint64_t second = history_burst(history, CLASS, 90001);
    assert_int_not_equal(second, first);
    assert_int_not_equal(history_burst(history, CLASS + 1, 90001), second);
    assert_int_equal(history_burst(history, CLASS, 45000), first); // back by an edit, or after a restart
}

CASE(what_was_submitted_together_takes_as_long, history)
{
    add(history, ada, MINUTE_MS, 40);
    struct history_key key = member(history, 0);
    (void)member(history, 1000);
    assert_about(estimate(history, key).likely_ms, MINUTE_MS);
    history_add(history, &key, 0, 5 * HOUR_MS);
    history_add(history, &key, 0, 5 * HOUR_MS);
    struct estimate known = estimate(history, key);
    assert_about(known.likely_ms, 5 * HOUR_MS);
    assert_int_equal(known.basis, BASIS_BURST);
    assert_about(estimate(history, ada).likely_ms, MINUTE_MS); // one burst is no rule
}

CASE(members_that_still_run_tell_that_it_takes_longer, history)
{
    add(history, ada, MINUTE_MS, 40);
    struct history_key key = member(history, 0);
    int64_t alone_ms = estimate(history, key).order_ms, before_ms = alone_ms;
    unsigned known = 0;
    for (int64_t at = history_next_stage_ms(0); at < 5 * HOUR_MS; at = history_next_stage_ms(at)) {
        assert_true(history_stage(at) > history_stage(at - 1));
        assert_int_equal(history_stage_ms(history_stage(at)), at);
        history_survived(history, key.burst, known, history_stage(at));
        known = history_stage(at);
        int64_t after_ms = estimate(history, key).order_ms;
        assert_true(after_ms > before_ms);
        before_ms = after_ms;
    }
    assert_true(before_ms > alone_ms * 5 / 4);
    history_survived(history, key.burst, known, 0); // taken back
    assert_int_equal(estimate(history, key).order_ms, alone_ms);
}

CASE(bursts_before_and_behind_tell_too_the_less_the_farther, history)
{
    add(history, ada, MINUTE_MS, 40);
    struct history_key before = member(history, 0), between = member(history, 2 * MINUTE_MS);
    struct history_key behind = member(history, 4 * MINUTE_MS),
                       later = member(history, 30 * 24 * (int64_t)HOUR_MS);
    int64_t alone_ms = estimate(history, between).order_ms;
    history_add(history, &before, 0, 5 * HOUR_MS);
    int64_t one_ms = estimate(history, between).order_ms;
    assert_true(one_ms > 2 * alone_ms);
    assert_true(estimate(history, later).order_ms < one_ms);
    history_add(history, &behind, 0, 5 * HOUR_MS);
    assert_true(estimate(history, between).order_ms > one_ms);
}

CASE(one_that_crashes_does_not_decide_for_the_others, history)
{
    struct history_key key = member(history, 0);
    for (int i = 0; i < 6; i++)
        history_add(history, &key, 0, 5 * HOUR_MS);
    history_add(history, &key, 0, 1000);
    assert_about(estimate(history, key).likely_ms, 5 * HOUR_MS);
}

CASE(an_estimate_says_which_jobs_it_rests_on, history)
{
    struct history_key key = member(history, 0);
    history_survived(history, key.burst, 0, 6);
    struct estimate of_it;
    history_estimate(history, &key, history_stage_ms(6), ESTIMATE_ALL, &of_it); // its own
    assert_int_equal(of_it.basis, BASIS_NONE);
    of_it = estimate(history, key);
    assert_int_equal(of_it.basis, BASIS_BURST);
    assert_int_equal(of_it.samples, 0);
    assert_int_equal(of_it.running, 1);
    history_survived(history, key.burst, 0, 8);
    for (int i = 0; i < 3; i++)
        history_add(history, &key, 0, MINUTE_MS);
    of_it = estimate(history, key);
    assert_int_equal(of_it.samples, 3);
    assert_int_equal(of_it.running, 2);
}

CASE(who_is_asked_for_near_bursts_gets_their_owners, history)
{
    void *owners[HISTORY_NEAR];
    uint64_t bursts[9];
    for (int i = 0; i < 9; i++) {
        bursts[i] = history_burst(history, CLASS, i * (int64_t)HOUR_MS);
        if (i != 3)
            history_burst_set_owner(history, bursts[i], &bursts[i]);
    }
    assert_int_equal(history_burst_near(history, bursts[4], owners), 6);
    assert_ptr_equal(owners[0], &bursts[4]);
    for (size_t i = 1; i < 6; i++)
        assert_true((uint64_t *)owners[i] >= &bursts[1] && (uint64_t *)owners[i] <= &bursts[7]);
    assert_int_equal(history_burst_near(history, 0, owners), 0);
}

TEST_WITH(a_burst_without_jobs_is_kept_for_what_it_knows, open_history, close_history)
{
    struct history *history = *state;
    struct history_key knows = member(history, 0), nothing = member(history, HOUR_MS);
    history_add(history, &knows, 0, 5 * HOUR_MS);
    history_burst_set_owner(history, knows.burst, state);
    history_burst_set_owner(history, nothing.burst, state);
    history_burst_leave(history, knows.burst);
    history_burst_leave(history, nothing.burst);
    assert_non_null(history_burst_owner(history, knows.burst));
    assert_null(history_burst_owner(history, nothing.burst));
    struct history_key next = member(history, 2 * HOUR_MS);
    assert_about(estimate(history, next).likely_ms, 4 * HOUR_MS);
    assert_int_equal(history_burst(history, CLASS, 1000), knows.burst);
    history_burst_leave(history, knows.burst);
}

CASE(the_number_of_bursts_is_bounded, history)
{
    struct history_key key = ada;
    uint64_t last = 0;
    for (uint64_t i = 0; i < 65536; i++)
        last = history_burst(history, i, 0);
    assert_true(last != 0);
    assert_int_equal(history_burst(history, 70000, 0), 0);
    history_burst_leave(history, last);
    key.burst = history_burst(history, 70000, 0);
    assert_true(key.burst != 0);
    for (uint64_t i = 0; i < 40000; i++) { // with jobs that ended long ago
        history_add(history, &key, 0, MINUTE_MS);
        history_burst_leave(history, key.burst);
        key.burst = history_burst(history, 100000 + i, 0);
        assert_true(key.burst != 0);
    }
}

/* --- what outlives a restart --- */

struct kept {
    char names[16][96];
    struct buffer bytes[16];
    size_t count, forgotten;
};

static void keep(void *arg, const char *name, const struct buffer *bytes)
{
    struct kept *kept = arg;
    if (bytes == NULL) {
        kept->forgotten++;
        return;
    }
    assert_true(kept->count < 16);
    (void)snprintf(kept->names[kept->count], sizeof(kept->names[0]), "%s", name);
    buffer_append(&kept->bytes[kept->count++], bytes->bytes, bytes->length);
}

TEST_WITH(cells_outlive_a_restart_exactly, open_history, close_history)
{
    struct history *history = *state, *again = history_new(1000, HOUR_MS);
    struct kept kept = { 0 };
    for (unsigned i = 0; i < 50; i++)
        history_add(history, &ada, 0, (int64_t)1000 << (i % 20));
    history_each_of(history, &ada, keep, &kept);
    assert_int_equal(kept.count, 4);
    assert_string_equal(kept.names[3], "command:1:1:1000:0000000000000007");
    struct error err = { 0 };
    for (size_t i = 0; i < kept.count; i++) {
        const struct buffer *bytes = &kept.bytes[i];
        assert_int_equal(history_decode(again, kept.names[i], bytes->bytes, bytes->length, &err), 0);
        assert_true(history_decode(again, kept.names[i], bytes->bytes, bytes->length - 1, &err) < 0);
        assert_true(history_decode(again, "user:9:9:0:0", bytes->bytes, bytes->length, &err) < 0);
    }
    struct estimate a = estimate(history, ada), b = estimate(again, ada);
    assert_memory_equal(&a, &b, sizeof(a));
    add(history, ada, MINUTE_MS, 5);
    add(again, ada, MINUTE_MS, 5);
    a = estimate(history, ada), b = estimate(again, ada);
    assert_memory_equal(&a, &b, sizeof(a));
    for (size_t i = 0; i < kept.count; i++)
        buffer_clear(&kept.bytes[i]);
    history_free(again);
}

TEST_WITH(the_number_of_cells_is_bounded_and_forgotten_ones_are_reported, open_history, close_history)
{
    struct history *history = history_new(100, HOUR_MS);
    size_t told = 0, made = 0;
    struct history_key key = { .gpu_milli = 1000 };
    for (uint32_t i = 0; i < 3000; i++) {
        key.uid = i % 7;
        key.command_hash = i;
        history_add(history, &key, 0, MINUTE_MS);
        made++;
        struct kept kept = { 0 };
        history_each_of(history, &key, keep, &kept);
        assert_int_equal(kept.count, 4);
        told += kept.forgotten;
        for (size_t k = 0; k < kept.count; k++)
            buffer_clear(&kept.bytes[k]);
    }
    assert_int_equal(told, made + 7 + 7 + 1 - 100);
    key.command_hash = 0; // long forgotten; its user is not
    assert_int_equal(estimate(history, key).basis, BASIS_USER_GPUS);
    key.uid = 77;
    assert_int_equal(estimate(history, key).samples, 3000);
    history_free(history);
}

/* --- the histogram --- */

CASE(a_bin_begins_where_it_says, history)
{
    assert_int_equal(run_bin_of(0), 0);
    assert_int_equal(run_bin_of(8000), 0);
    for (unsigned bin = 1; bin < RUN_BINS; bin++) {
        int64_t start_ms = run_bin_start_ms(bin);
        assert_about(start_ms, (int64_t)(8000 * exp2(bin / 2.0)));
        assert_int_equal(run_bin_of(start_ms), bin);
        assert_int_equal(run_bin_of(start_ms - 1), bin - 1);
    }
    assert_int_equal(run_bin_of(INT64_MAX), RUN_BINS - 1);
}

CASE(quantiles_are_within_a_bin_of_the_exact_ones, history)
{
    struct run_histogram runs = { 0 };
    for (int64_t i = 0; i < 6400; i++)
        run_histogram_add(&runs, MINUTE_MS * (1 + i * 37 % 100), RUN_UNIT);
    struct run_belief belief;
    run_belief_init(&belief, HOUR_MS);
    double part = run_belief_learn(&belief, &runs, RUN_FADE);
    assert_true(part > 0.48 && part <= 0.5); // many runs weigh RUN_FADE and no more
    run_belief_learn(&belief, &runs, 0);
    for (int percent = 20; percent < 100; percent += 10)
        assert_about((int64_t)run_belief_quantile_ms(&belief, 0, percent / 100.0), percent * MINUTE_MS);
    assert_about((int64_t)run_belief_order_ms(&belief, 0), 45 * MINUTE_MS);
    assert_about((int64_t)run_belief_mean_ms(&belief, 0), 50 * MINUTE_MS);
    assert_about((int64_t)run_belief_mean_ms(&belief, 50 * MINUTE_MS), 75 * MINUTE_MS);
}

CASE(belief_without_runs_has_the_usual_duration_as_its_median, history)
{
    struct run_belief belief;
    run_belief_init(&belief, HOUR_MS);
    assert_about((int64_t)run_belief_quantile_ms(&belief, 0, 0.5), HOUR_MS);
    double sum = 0;
    for (size_t i = 0; i < RUN_BINS; i++)
        sum += belief.parts[i];
    assert_true(sum > 0.999 && sum < 1.001);
}

CASE(the_index_tells_apart_what_may_be_over_soon, history)
{
    struct run_belief soon = { 0 }, late = { 0 };
    soon.parts[5] = 0.5, soon.parts[35] = 0.5; // half of them crash in the first minute
    late.parts[20] = 1;
    assert_true(run_belief_mean_ms(&soon, 0) > run_belief_mean_ms(&late, 0));
    assert_true(run_belief_index_ms(&soon, 0) < run_belief_index_ms(&late, 0));
    assert_true(run_belief_index_ms(&soon, HOUR_MS) > run_belief_index_ms(&late, HOUR_MS));
}
