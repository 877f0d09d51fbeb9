/* SPDX-License-Identifier: MIT */
/* GET /metrics: its two forms, its names, and docs/metrics.md. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "controller/api/exposition.h"
#include "controller/api/metrics.h"
#include "sched/queue/fairshare.h"
#include "sched/sched.h"
#include "serve_client.h"
#include "unit_test.h"
#include "wire/limits.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

#define OPENMETRICS                                                                                          \
    "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n"

static void assert_has(const struct answer *answer, const char *text)
{
    if (strstr(answer->body, text) == NULL)
        print_message("not there: %s\n%s\n", text, answer->body);
    assert_non_null(strstr(answer->body, text));
}

CASE(plain_text_is_what_everybody_gets, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/metrics");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "text/plain; version=0.0.4"));
    assert_has(&answer, "# TYPE mgpu_jobs_ended_total counter\n");
    assert_has(&answer, "mgpu_jobs_ended_total{result=\"done\",reason=\"exit\"} 3\n");
    assert_has(&answer, "mgpu_jobs_ended_total{result=\"failed\",reason=\"exit\"} 2\n");
    assert_has(&answer, "mgpu_jobs{state=\"queued\"} 3\n");
    assert_null(strstr(answer.body, "# EOF"));
}

CASE(openmetrics_has_families_units_and_an_end, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_ask(harness, OPENMETRICS);
    assert_non_null(strstr(answer.head, "application/openmetrics-text; version=1.0.0"));
    assert_has(&answer, "# TYPE mgpu_jobs_ended counter\n");
    assert_has(&answer, "mgpu_jobs_ended_total{result=\"done\",reason=\"exit\"} 3\n");
    assert_has(&answer, "# UNIT mgpu_job_wait_seconds seconds\n");
    assert_has(&answer, "mgpu_job_wait_seconds_bucket{le=\"1.0\"} 1\n");
    assert_string_equal(answer.body + answer.length - strlen("# EOF\n"), "# EOF\n");
}

CASE(buckets_add_up, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/metrics");
    assert_has(&answer,
        "mgpu_job_wait_seconds_bucket{le=\"1\"} 1\nmgpu_job_wait_seconds_bucket{le=\"5\"} 3\n"
        "mgpu_job_wait_seconds_bucket{le=\"15\"} 3\nmgpu_job_wait_seconds_bucket{le=\"60\"} 7\n");
    assert_has(&answer, "{le=\"+Inf\"} 7\nmgpu_job_wait_seconds_sum 60.5\nmgpu_job_wait_seconds_count 7\n");
}

CASE(metrics_do_not_wait_for_the_disk, harness)
{
    harness->is_barrier_held = true;
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/metrics");
    assert_int_equal(answer.status, 200);
}

CASE(users_beyond_the_limit_are_one, harness)
{
    struct fairshare *fairshare = sched_fairshare(harness->core.sched);
    for (uint32_t i = 0; i < LIMIT_METRICS_USERS + 3; i++)
        fairshare_account(fairshare, 70000 + i, ACCOUNT_USER)->gpu_milli = 1500;
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/metrics");
    assert_has(&answer, "mgpu_user_gpus{user=\"70099\"} 1.5\nmgpu_user_gpus{user=\"(other)\"} 4.5\n");
    assert_null(strstr(answer.body, "70100"));
}

CASE(a_node_that_has_not_connected_is_down_since_the_start, harness)
{
    harness->has_absent_node = true;
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/metrics");
    assert_has(&answer, "mgpu_node_up{node=\"absent\"} 0\n");
    const char *silence = strstr(answer.body, "mgpu_node_silence_seconds{node=\"absent\"} ");
    assert_non_null(silence);
    assert_true(strtod(strchr(silence, ' '), NULL) < 600); // and not since the machine started
}

TEST(labels_are_escaped)
{
    _cleanup_free_ char *label = exposition_label("model", "a\"b\\c\nd\xff");
    assert_string_equal(label, "model=\"a\\\"b\\\\c\\\\x0ad\\\\xff\"");
}

TEST(units_end_the_names)
{
    size_t count;
    const struct metric *metrics = metrics_all(&count);
    for (size_t i = 0; i < count; i++) {
        size_t name = strlen(metrics[i].name), unit = strlen(metrics[i].unit);
        assert_memory_equal(metrics[i].name, "mgpu_", 5);
        assert_string_equal(metrics[i].name + name - unit, metrics[i].unit);
        assert_null(strstr(metrics[i].name, "_total"));
        assert_null(strpbrk(metrics[i].help, "\\\n|"));
    }
}

TEST(the_manual_has_a_row_of_each)
{
    _cleanup_buffer_ struct buffer manual = { 0 };
    size_t count, missing = 0;
    const struct metric *metrics = metrics_all(&count);
    assert_int_equal(file_read(AT_FDCWD, MANUAL "/metrics.md", 1U << 20, &manual), 0);
    for (size_t i = 0; i < count; i++) {
        char *row = metrics_row(&metrics[i]);
        if (strstr(buffer_text(&manual), row) == NULL) {
            missing++;
            print_message("docs/metrics.md does not have this row:\n%s", row);
        }
        free(row);
    }
    assert_int_equal(missing, 0);
}
