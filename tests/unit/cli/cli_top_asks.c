/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/asks.h"
#include "unit_test.h"

static int start(void **state)
{
    struct top *top = calloc(1, sizeof(*top));
    assert_non_null(top);
    for (int i = 0; i < ASKS; i++)
        top->wire.due_ms[i] = INT64_MAX;
    *state = top;
    return 0;
}

static int stop(void **state)
{
    struct top *top = *state;
    top_jobs_clear(&top->model.jobs);
    free(top);
    return 0;
}

#define CASE(name, top) TEST_ON(name, struct top *top, start, stop)

static void take(struct top *top, enum top_ask_id ask, const char *text)
{
    _cleanup_json_ json_t *answer = json_loads(text, 0, NULL);
    assert_non_null(answer);
    top_asks[ask].take(top, answer);
}

static bool is_due(const struct top *top, enum top_ask_id ask)
{
    return top_ask_due(top, ask) <= clock_boot_ms();
}

CASE(the_bare_list_comes_first_and_is_asked_for_once, top)
{
    top_asks_begin(top);
    assert_true(is_due(top, ASK_QUICK));
    assert_true(ASK_QUICK < ASK_OPEN); // rows are asked in their order
    _cleanup_free_ char *path = top_ask_path(top, ASK_QUICK);
    assert_non_null(strstr(path, "quick=1"));
    take(top, ASK_QUICK, "{\"jobs\": [{\"id\": 7, \"state\": \"queued\", \"position\": 1}]}");
    assert_true(top->model.is_complete && top->is_urgent);
    assert_false(is_due(top, ASK_QUICK));
    assert_true(is_due(top, ASK_OPEN));
    top->is_urgent = false;
    take(top, ASK_OPEN, "{\"jobs\": [{\"id\": 7, \"state\": \"queued\", \"reason\": \"resources\"}]}");
    assert_true(top->is_urgent);
    assert_true(field_is(top_jobs_find(&top->model.jobs, 7)->job, "reason", "resources"));
}

CASE(a_burst_of_changes_is_asked_for_until_nothing_is_left, top)
{
    size_t requests = 0;
    top->model.is_complete = true;
    for (int64_t id = 1; id <= 450; id++)
        top_jobs_touch(&top->model.jobs, id);
    top_poke(top, ASK_CHANGED);
    while (is_due(top, ASK_CHANGED)) {
        top->wire.due_ms[ASK_CHANGED] = INT64_MAX;
        _cleanup_free_ char *path = top_ask_path(top, ASK_CHANGED);
        assert_non_null(path);
        take(top, ASK_CHANGED, "{\"jobs\": []}");
        requests++;
    }
    assert_int_equal(requests, 3);
    assert_int_equal(top->model.jobs.count, 0); // nobody knows them
}
