/* SPDX-License-Identifier: MIT */
/* GET /history: jobs that ended, and sums over them. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "store/store_ended.h"
#include "unit_test.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

CASE(rows_come_from_the_store_with_their_gpu_time, harness)
{
    (void)harness_add_job(harness, 3, 1, JOB_DONE);
    (void)harness_add_job(harness, 4, 1, JOB_RUNNING);
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/history");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_string(&answer, "schema"), "mgpu/v1");
    assert_true(answer_has(&answer, "{\"id\":3,"));
    assert_false(answer_has(&answer, "{\"id\":4,"));
    assert_true(answer_has(&answer, "\"gpu_seconds\":2.0,\"gpu_seconds_measured\":2.0"));
    assert_true(answer_has(&answer, "\"gpu_seconds_used\":1.0,\"gpu_seconds_wasted\":1.0"));
}

CASE(an_empty_history_is_an_empty_list, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/history");
    assert_int_equal(answer.status, 200);
    assert_true(answer_has(&answer, "\"jobs\":[]"));
}

CASE(the_filter_reaches_the_store, harness)
{
    _cleanup_(answer_clear) struct answer answer =
        client_get(harness, "/api/v1/history?user=77&state=failed,cancelled&since=1h");
    assert_int_equal(answer.status, 200);
    assert_int_equal(harness->ended_uid, 77);
    assert_int_equal(harness->ended_outcomes, 1U << ENDED_FAILED | 1U << ENDED_CANCELLED);
    assert_true(llabs(clock_wall_ms() - 3600000 - harness->ended_since_ms) < 60000);
}

CASE(a_long_history_is_streamed_page_by_page, harness)
{
    for (uint64_t id = 1; id <= 4000; id++)
        (void)harness_add_job(harness, id, 1, JOB_DONE);
    struct answer answer = client_get(harness, "/api/v1/history");
    assert_int_equal(answer.status, 200);
    assert_false(answer.is_cut);
    assert_non_null(strstr(answer.head, "chunked"));
    assert_true(harness->ended_pages > 30);
    assert_true(answer_has(&answer, "{\"id\":4000,") && answer_has(&answer, "{\"id\":1,"));
    assert_string_equal(answer_string(&answer, "schema"), "mgpu/v1");
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/history?limit=200");
    assert_true(answer_has(&answer, "{\"id\":3801,") && !answer_has(&answer, "{\"id\":3800,"));
    answer_clear(&answer);
    answer = client_ask(harness, "HEAD /api/v1/history HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
}

CASE(who_goes_away_in_between_harms_nobody, harness)
{
    static const char ask[] = "GET /api/v1/history HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char sum[] = "GET /api/v1/history?by=day HTTP/1.1\r\nHost: x\r\n\r\n";
    for (uint64_t id = 1; id <= 1000; id++)
        (void)harness_add_job(harness, id, 1, JOB_DONE);
    for (int i = 0; i < 2; i++) {
        int fd = client_connect(harness);
        assert_true(client_send(harness, fd, i == 0 ? ask : sum, (i == 0 ? sizeof(ask) : sizeof(sum)) - 1));
        harness_turn(harness, 1);
        (void)close(fd);
    }
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/history?limit=1");
    assert_int_equal(answer.status, 200);
}

CASE(sums_are_in_order_of_gpu_time_but_for_days, harness)
{
    static const struct {
        const char *path, *first;
    } cases[] = {
        { "/api/v1/history?by=user", "\"uid\":8,\"jobs\":2,\"gpu_seconds\":9.0," },
        { "/api/v1/history?by=day", "\"sums\":[{\"day\":\"1970-01-08\",\"jobs\":1,\"gpu_seconds\":1.0," },
        { "/api/v1/history?by=node", "\"sums\":[{\"node\":\"box\",\"jobs\":2," },
        { "/api/v1/history?by=group", "\"gid\":8,\"jobs\":2," },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer answer = client_get(harness, cases[i].path);
        assert_int_equal(answer.status, 200);
        assert_true(answer_has(&answer, cases[i].first));
        assert_true(answer_has(&answer, "\"gpu_seconds_used\":3.0,\"gpu_seconds_wasted\":1.0"));
        assert_true(answer_has(&answer, "\"gpu_seconds_used\":null,\"gpu_seconds_wasted\":null,"
                                        "\"wait_seconds_median\":null"));
        answer_clear(&answer);
    }
}

CASE(too_many_sums_are_refused, harness)
{
    harness->is_sum_cut = true;
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/history?by=day");
    assert_int_equal(answer.status, 400);
    assert_true(answer_has(&answer, "4096"));
}

CASE(what_makes_no_sense_is_refused, harness)
{
    static const char *const queries[] = { "by=week", "state=queued", "state=x", "since=soon", "until=x",
        "since=1h&until=2h", "limit=0", "limit=x", "by=day&limit=4", "user=nobody-has-this-name", "all=1" };
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        _cleanup_free_ char *path = xasprintf("/api/v1/history?%s", queries[i]);
        struct answer answer = client_get(harness, path);
        assert_int_equal(answer.status, 400);
        answer_clear(&answer);
    }
}
