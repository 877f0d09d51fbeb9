/* SPDX-License-Identifier: MIT */
#include "lab/sim/failures.h"
#include "sched/cluster/cluster.h"
#include "unit_test.h"

#define NODES     50U
#define MEAN_MS   1000000
#define REPAIR_MS 7000
#define LAST_MS   INT64_C(100000000)

TEST(each_node_fails_and_is_back_after_the_repair_until_the_last_submission)
{
    _cleanup_(failures_clear) struct failures failures;
    int64_t down_ms[NODES] = { 0 };
    unsigned n_failures = 0;
    uint32_t node;
    bool is_up;
    failures_init(&failures, NODES, MEAN_MS, REPAIR_MS, LAST_MS, 3);
    for (int64_t now_ms = 0; (now_ms = failures_next_ms(&failures)) != TIME_NEVER;) {
        assert_false(failures_take(&failures, now_ms - 1, &node, &is_up));
        assert_true(failures_take(&failures, now_ms, &node, &is_up));
        if (is_up)
            assert_int_equal(now_ms, down_ms[node] + REPAIR_MS);
        else
            assert_in_range(now_ms, 1, LAST_MS);
        assert_int_equal(down_ms[node] > 0, is_up);
        down_ms[node] = is_up ? 0 : now_ms;
        n_failures += !is_up;
    }
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(down_ms[i], 0);
    unsigned expected = (unsigned)(NODES * LAST_MS / (MEAN_MS + REPAIR_MS));
    assert_in_range(n_failures, expected * 95 / 100, expected * 105 / 100);
}

TEST(without_a_mean_time_nothing_fails)
{
    _cleanup_(failures_clear) struct failures failures;
    failures_init(&failures, NODES, 0, REPAIR_MS, LAST_MS, 3);
    assert_int_equal(failures_next_ms(&failures), TIME_NEVER);
}
