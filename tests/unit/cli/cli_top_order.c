/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/order.h"
#include "unit_test.h"

static const char *const texts[] = {
    "{\"id\": 1, \"state\": \"done\", \"user\": \"bo\", \"ended_at\": \"2026-01-01T10:00:00Z\", \"gpus\": 1}",
    "{\"id\": 2, \"state\": \"queued\", \"user\": \"ana\", \"position\": 2, \"gpus\": 4, \"priority\": 5}",
    "{\"id\": 3, \"state\": \"queued\", \"user\": \"bo\", \"position\": 1, \"gpus\": 2}",
    "{\"id\": 4, \"state\": \"running\", \"user\": \"ana\", \"started_at\": \"2026-01-01T09:00:00Z\", "
    "\"gpus\": 1,"
    " \"gpu_share\": 500, \"node\": \"n\", \"granted\": [{\"index\": 3}]}",
    "{\"id\": 5, \"state\": \"running\", \"user\": \"Cy\", \"started_at\": \"2026-01-01T08:00:00Z\", "
    "\"gpus\": 8,"
    " \"node\": \"n\", \"granted\": [{\"index\": 0}]}",
    "{\"id\": 6, \"state\": \"queued\", \"hold\": \"user\", \"user\": \"ana\", \"gpus\": 1}",
    "{\"id\":7, \"state\":\"failed\", \"user\":\"bo\", \"ended_at\":\"2026-01-01T11:00:00Z\", \"gpus\":1}",
};
#define N_JOBS (sizeof(texts) / sizeof(texts[0]))

static void check(const char *keys, const char *expected)
{
    struct order order = { 0 };
    json_t *jobs[N_JOBS];
    _cleanup_buffer_ struct buffer out = { 0 };
    assert_int_equal(order_parse(keys, &order, NULL), 0);
    for (size_t i = 0; i < N_JOBS; i++)
        assert_non_null(jobs[i] = json_loads(texts[i], 0, NULL));
    order_sort(&order, jobs, N_JOBS);
    for (size_t i = 0; i < N_JOBS; i++) {
        buffer_printf(&out, "%d", (int)field_integer(jobs[i], "id", 0));
        json_decref(jobs[i]);
    }
    assert_string_equal(buffer_text(&out), expected);
}

TEST(what_runs_comes_first_then_the_queue_then_the_latest_ends)
{
    check("state,turn", "5432671");
}

/* Jobs that hold GPUs, or have held them; starting ones; waiting ones; ended ones. */
TEST(every_state_that_is_shown_has_its_place)
{
    static const char *const rows[] = {
        "{\"id\": 1, \"state\": \"done\"}",
        "{\"id\": 2, \"state\": \"queued\"}",
        "{\"id\": 3, \"state\": \"running\", \"park\": \"early\"}",
        "{\"id\": 4, \"state\": \"running\", \"park\": \"parked\"}",
    };
    struct order order = { 0 };
    json_t *jobs[4];
    assert_int_equal(order_parse("state,id", &order, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        assert_non_null(jobs[i] = json_loads(rows[i], 0, NULL));
    order_sort(&order, jobs, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(field_integer(jobs[i], "id", 0), 4 - i);
        json_decref(jobs[i]);
    }
}

TEST(a_minus_turns_one_key_round)
{
    check("-id", "7654321");
    check("user,-id", "6427315");
    check("-gpus,id", "5231674");
}

TEST(text_is_sorted_without_case_and_jobs_without_a_place_are_last)
{
    check("user", "2461375");
    check("where", "5412367");
    check("priority", "2134567");
}

TEST(a_chosen_key_goes_before_the_old_one)
{
    struct order order = { 0 };
    assert_int_equal(order_parse("state,turn", &order, NULL), 0);
    order_choose(&order, order_find("user"));
    _cleanup_free_ char *first = order_text(&order);
    assert_string_equal(first, "user,state");
    order_choose(&order, order_find("user"));
    _cleanup_free_ char *again = order_text(&order);
    assert_string_equal(again, "-user,state");
}

TEST(unknown_keys_and_too_many_are_refused)
{
    struct order order = { 0 };
    assert_int_equal(order_parse("colour", &order, NULL), -EINVAL);
    assert_int_equal(order_parse("", &order, NULL), -EINVAL);
    assert_int_equal(order_parse("id,user,name", &order, NULL), -EINVAL);
}
