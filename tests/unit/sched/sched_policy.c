/* SPDX-License-Identifier: MIT */
#include "sched/queue/policy.h"

#include <stdlib.h>
#include <string.h>

#include "sched/cluster/cluster.h"
#include "unit_test.h"

#define NOW_MS  1800000000000
#define DAY_MS  86400000LL
#define HOUR_MS 3600000LL

static struct policy_view view(int64_t submit_ms, int64_t order_ms, double gpus)
{
    return (struct policy_view){
        .now_ms = NOW_MS, .submit_ms = submit_ms, .order_ms = order_ms, .gpus = gpus, .age_cap_ms = 3 * DAY_MS
    };
}

static bool comes_first(const char *policy, struct policy_view a, struct policy_view b)
{
    return policy_find(policy)->rank(&a) < policy_find(policy)->rank(&b);
}

TEST(every_policy_is_found_by_its_name_and_says_what_it_is)
{
    for (size_t i = 0; policies[i] != NULL; i++) {
        assert_ptr_equal(policy_find(policies[i]->name), policies[i]);
        assert_true(strlen(policies[i]->summary) > 10);
        assert_int_equal(policies[i]->is_oracle, strstr(policies[i]->summary, "oracle") != NULL);
    }
    assert_ptr_equal(policy_find("default"), &policy_default);
    assert_null(policy_find("lottery"));
}

TEST(priority_is_above_all_else_in_every_policy)
{
    for (size_t i = 0; policies[i] != NULL; i++) {
        for (int32_t priority = -1000; priority < 1000; priority++) {
            struct policy_view worst = view(NOW_MS, INT64_MAX / 4, 1e6), best = view(0, 0, 0);
            worst.priority = priority + 1;
            worst.is_preemptible = true;
            worst.user_factor = 100;
            best.priority = priority;
            best.user_factor = -100;
            assert_true(policies[i]->rank(&worst) < policies[i]->rank(&best));
        }
    }
}

TEST(preemptible_jobs_come_after_all_others_of_their_priority)
{
    for (size_t i = 0; policies[i] != NULL; i++) {
        struct policy_view fixed = view(NOW_MS, 1000 * DAY_MS, 512), preemptible = view(0, 1, 1);
        preemptible.is_preemptible = true;
        assert_true(policies[i]->rank(&fixed) < policies[i]->rank(&preemptible));
    }
}

TEST(one_millisecond_decides_at_usual_priorities)
{
    static const int32_t priorities[] = { -31, -1, 0, 1, 31 };
    for (size_t i = 0; i < 5; i++) {
        struct policy_view a = view(NOW_MS - 1, 5, 1), b = view(NOW_MS, 5, 1);
        a.priority = b.priority = priorities[i];
        assert_true(comes_first("fifo", a, b));
        assert_true(comes_first("default", a, b));
        a.order_ms = 400 * DAY_MS;
        b.order_ms = 400 * DAY_MS - 1;
        assert_true(comes_first("sjf", b, a));
    }
}

TEST(reference_policies_order_by_what_they_are_named_after)
{
    assert_true(comes_first("sjf", view(9, 5, 64), view(1, 6, 1)));
    assert_true(comes_first("easy-sjf", view(9, 5, 64), view(1, 6, 1)));
    assert_true(comes_first("srtf", view(9, 5, 64), view(1, 6, 1)));
    assert_true(comes_first("qssf", view(9, 5, 2), view(1, 11, 1)));
    assert_true(comes_first("easy-qssf", view(9, 5, 2), view(1, 11, 1)));
    assert_true(comes_first("easy", view(1, 9, 9), view(2, 1, 1)));
    assert_true(comes_first("conservative", view(1, 9, 9), view(2, 1, 1)));
    assert_true(comes_first("las", view(1, 9, 9), view(2, 1, 1))); // within a level
    struct policy_view a = view(1, 5, 6), b = view(2, 6, 5);
    assert_true(policy_find("qssf")->rank(&a) == policy_find("qssf")->rank(&b)); // the queue's ties decide
}

TEST(what_is_expected_to_be_shorter_comes_first_whatever_its_width)
{
    assert_true(comes_first("default", view(NOW_MS, HOUR_MS / 60, 64), view(NOW_MS - HOUR_MS, HOUR_MS, 1)));
    assert_true(comes_first("learnt", view(NOW_MS, HOUR_MS / 60, 64), view(NOW_MS - DAY_MS, HOUR_MS, 1)));
}

TEST(who_used_more_than_its_share_comes_later)
{
    struct policy_view greedy = view(NOW_MS, HOUR_MS, 1), modest = view(NOW_MS, HOUR_MS + 1, 1);
    assert_true(comes_first("default", greedy, modest));
    greedy.user_factor = 0.5;
    assert_true(comes_first("default", modest, greedy));
    modest.group_factor = 1;
    assert_true(comes_first("default", greedy, modest));
}

TEST(a_job_is_overtaken_only_by_those_submitted_within_30_times_its_duration)
{
    struct policy_view patient = view(NOW_MS, HOUR_MS, 1), brief = view(NOW_MS + 29 * HOUR_MS, 1000, 1);
    assert_true(comes_first("default", brief, patient));
    brief.submit_ms = NOW_MS + 30 * HOUR_MS;
    assert_true(comes_first("default", patient, brief));
    assert_int_equal(policy_default.overtaken_until(&patient), NOW_MS + 30 * HOUR_MS);
    patient.user_factor = 1; // it counts as longer
    assert_true(comes_first("default", brief, patient));
    assert_null(policy_default.rank_changes);
}

/* Whatever is learnt, and whoever uses how much. */
TEST(the_promise_follows_from_the_time_limit_and_the_age_cap_alone)
{
    struct policy_view limited = view(NOW_MS, HOUR_MS, 1), later = view(NOW_MS + 30 * HOUR_MS + 1, 0, 1);
    limited.limit_ms = HOUR_MS;
    assert_int_equal(policy_default.promised_until(&limited), NOW_MS + 30 * HOUR_MS);
    for (double factor = -10; factor < 10; factor += 0.5) {
        limited.user_factor = factor;
        assert_true(policy_default.overtaken_until(&limited) <= NOW_MS + 30 * HOUR_MS);
        assert_true(comes_first("default", limited, later));
    }
    limited.limit_ms = DAY_MS; // the age cap is less
    assert_int_equal(policy_default.promised_until(&limited), NOW_MS + 3 * DAY_MS);
    limited.limit_ms = 0;
    assert_int_equal(policy_default.promised_until(&limited), NOW_MS + 3 * DAY_MS);
    limited.age_cap_ms = 0;
    assert_int_equal(policy_default.promised_until(&limited), TIME_NEVER);
    for (size_t i = 0; policies[i] != NULL; i++) {
        assert_int_equal(policies[i]->overtaken_until == NULL, policies[i]->promised_until == NULL);
        if (policies[i]->promised_until != NULL)
            assert_true(policies[i]->overtaken_until(&later) <= policies[i]->promised_until(&later));
    }
}

/* xorshift64*, Vigna 2016 */
static uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1dULL >> 11;
}

/* Bounded: it counts as four times shorter, never as submitted earlier, and only until something of its user
 * runs. */
TEST(the_first_job_of_a_user_has_a_head_start)
{
    struct policy_view first = {
        .submit_ms = NOW_MS, .now_ms = NOW_MS, .order_ms = HOUR_MS, .has_head_start = true
    };
    struct policy_view other = { .submit_ms = NOW_MS, .now_ms = NOW_MS, .order_ms = HOUR_MS / 3 };
    assert_true(policy_default.rank(&first) < policy_default.rank(&other));
    other.order_ms = HOUR_MS / 5;
    assert_true(policy_default.rank(&first) > policy_default.rank(&other));
    first.has_head_start = false;
    other.order_ms = HOUR_MS / 3;
    assert_true(policy_default.rank(&first) > policy_default.rank(&other));
    first.has_head_start = true;
    first.user_factor = -1000;
    assert_true(policy_default.overtaken_until(&first) >= first.submit_ms);
}

TEST(no_job_is_overtaken_by_one_submitted_later_by_the_age_cap)
{
    uint64_t seed = 7;
    for (unsigned i = 0; i < 100000; i++) {
        struct policy_view a = view(NOW_MS, 0, 1), b = view(NOW_MS + 3 * DAY_MS, 0, 1);
        a.order_ms = (int64_t)(random_next(&seed) % (UINT64_C(1) << random_next(&seed) % 50));
        b.order_ms = (int64_t)(random_next(&seed) % (UINT64_C(1) << random_next(&seed) % 50));
        a.user_factor = (double)(random_next(&seed) % 1000) / 50 - 10;
        b.group_factor = (double)(random_next(&seed) % 1000) / 50 - 10;
        a.gpus = (double)(random_next(&seed) % 512);
        assert_true(
            policy_default.rank(&a) <= policy_default.rank(&b)); // of equals the first submitted goes first
        assert_true(policy_default.overtaken_until(&a) <= NOW_MS + 3 * DAY_MS);
    }
}

TEST(without_an_age_cap_the_expected_duration_alone_decides)
{
    struct policy_view old = view(NOW_MS, 1000 * DAY_MS, 512),
                       young = view(NOW_MS + 1000 * DAY_MS, HOUR_MS, 1);
    assert_true(comes_first("default", old, young));
    old.age_cap_ms = young.age_cap_ms = 0;
    assert_true(comes_first("default", young, old));
}

TEST(after_the_age_cap_learnt_goes_in_order_of_submission)
{
    struct policy_view old = view(NOW_MS - 3 * DAY_MS, 1000 * DAY_MS, 512), young = view(NOW_MS, 1, 1);
    const struct policy *policy = policy_find("learnt");
    assert_true(comes_first("learnt", old, young));
    assert_int_equal(policy->rank_changes(&old), TIME_NEVER);
    old.submit_ms++;
    assert_true(comes_first("learnt", young, old));
    assert_int_equal(policy->rank_changes(&old), NOW_MS + 1);
    old.now_ms = NOW_MS + 1;
    assert_true(comes_first("learnt", old, young));
    old.age_cap_ms = 0; // no cap
    assert_true(comes_first("learnt", young, old));
    assert_int_equal(policy->rank_changes(&old), TIME_NEVER);
}

/* It has its CPUs and memory already, and nothing comes of them until it has its GPUs. */
TEST(what_has_begun_comes_before_all_others_of_its_priority_and_kind)
{
    for (size_t i = 0; policies[i] != NULL; i++) {
        struct policy_view plain = view(NOW_MS - DAY_MS, 1000, 1), begun = view(NOW_MS, 100 * HOUR_MS, 8);
        begun.has_begun = true;
        assert_true(policies[i]->rank(&begun) < policies[i]->rank(&plain));
        plain.priority = 1;
        assert_true(policies[i]->rank(&begun) > policies[i]->rank(&plain));
        plain.priority = 0;
        begun.is_preemptible = true;
        assert_true(policies[i]->rank(&begun) > policies[i]->rank(&plain));
    }
}
