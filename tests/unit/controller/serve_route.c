/* SPDX-License-Identifier: MIT */
/* Which request reaches which handler, and the answers to those that reach none. */

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "controller/api/route.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

CASE(health_needs_no_identity, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "ok\n");
}

CASE(an_unknown_path_is_404_with_a_hint, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jbos");
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer_string(&answer, "code"), "not_found");
    assert_string_equal(answer_string(&answer, "hint"), "GET /openapi.json lists all paths");
    assert_non_null(strstr(answer.head, "application/problem+json"));
}

CASE(a_wrong_method_is_405_and_tells_the_right_ones, harness)
{
    struct answer answer = client_ask(harness, "DELETE /api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 405);
    assert_non_null(strstr(answer.head, "Allow: POST, GET, HEAD\r\n"));
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/jobs/1/cancel");
    assert_int_equal(answer.status, 405);
    assert_non_null(strstr(answer.head, "Allow: POST\r\n"));
    answer_clear(&answer);
}

CASE(a_job_number_that_is_none_is_404, harness)
{
    static const char *const paths[] = { "/api/v1/jobs/x", "/api/v1/jobs/0", "/api/v1/jobs/-1",
        "/api/v1/jobs/01", "/api/v1/jobs/99999999999999999999", "/api/v1/jobs/", "/api/v1/jobs/1/logs" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct answer answer = client_get(harness, paths[i]);
        assert_int_equal(answer.status, 404);
        answer_clear(&answer);
    }
}

CASE(an_unknown_query_parameter_is_refused_with_the_nearest, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/jobs?sate=queued");
    assert_int_equal(answer.status, 400);
    assert_string_equal(answer_string(&answer, "hint"), "did you mean 'state'?");
}

CASE(head_answers_as_get_without_a_body, harness)
{
    _cleanup_(answer_clear) struct answer answer =
        client_ask(harness, "HEAD /api/v1/version HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Length: "));
    assert_int_equal(answer.length, 0);
}

CASE(a_connection_serves_many_requests, harness)
{
    _cleanup_close_ int fd = client_connect(harness);
    static const char both[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                               "GET /api/v1/version HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_true(client_send(harness, fd, both, sizeof(both) - 1));
    _cleanup_free_ char *text = client_read_until(harness, fd, "\"epoch\":4");
    assert_non_null(strstr(text, "ok\n"));
    assert_non_null(strstr(text, "\"epoch\":4"));
}

CASE(an_old_client_is_answered_and_closed, harness)
{
    _cleanup_close_ int fd = client_connect(harness);
    static const char ask[] = "GET /healthz HTTP/1.0\r\n\r\n";
    assert_true(client_send(harness, fd, ask, sizeof(ask) - 1));
    _cleanup_(answer_clear) struct answer answer = client_receive(harness, fd, false);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Connection: close"));
    assert_true(client_is_closed(harness, fd));
}

CASE(gpus_show_what_is_on_them, harness)
{
    struct job *job = harness_add_job(harness, 5, 0, JOB_RUNNING);
    gpu_grants_add(&job->grants, 1, "GPU-1", 0, 0);
    struct answer answer = client_get(harness, "/api/v1/gpus");
    assert_int_equal(answer.status, 200);
    assert_true(answer_has(&answer, "\"state\":\"free\""));
    assert_true(answer_has(&answer, "\"state\":\"used\",\"reason\":null"));
    assert_true(answer_has(&answer, "\"utilization\":0.5"));
    assert_true(answer_has(&answer, "\"power_w\":null"));
    answer_clear(&answer);
    harness->core.node.is_up = false;
    answer = client_get(harness, "/api/v1/gpus");
    assert_true(answer_has(&answer, "\"utilization\":null"));
    assert_true(answer_has(&answer, "\"state\":\"node_down\""));
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/nodes");
    assert_true(answer_has(&answer, "\"name\":\"here\",\"up\":false"));
    assert_true(answer_has(&answer, "\"gpus\":2"));
    answer_clear(&answer);
}

CASE(gpus_are_cut_by_state_and_the_rest_is_counted, harness)
{
    struct answer answer = client_get(harness, "/api/v1/gpus?top=1"); // both are free
    assert_true(answer_has(&answer, "\"index\":0"));
    assert_false(answer_has(&answer, "\"index\":1"));
    assert_true(answer_has(&answer, "\"omitted\":{\"free\":1}}"));
    answer_clear(&answer);
    gpu_grants_add(&harness_add_job(harness, 5, 0, JOB_RUNNING)->grants, 1, "GPU-1", 0, 0);
    answer = client_get(harness, "/api/v1/gpus?top=1");
    assert_true(answer_has(&answer, "\"index\":1"));
    assert_true(answer_has(&answer, "\"omitted\":{}}"));
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/gpus");
    assert_true(answer_has(&answer, "\"omitted\":null}"));
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/gpus?top=1&limit=1");
    assert_int_equal(answer.status, 400);
    answer_clear(&answer);
}

CASE(openapi_has_every_route, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/openapi.json");
    assert_int_equal(answer.status, 200);
    json_t *body = json_loads(answer.body, 0, NULL);
    assert_non_null(body);
    assert_null(json_object_get(body, "schema")); // OpenAPI has no such key
    const json_t *paths = json_object_get(body, "paths");
    size_t count;
    const struct route *routes = route_all(&count);
    for (size_t i = 0; i < count; i++) {
        const json_t *path = json_object_get(paths, routes[i].path);
        assert_non_null(json_object_get(path, routes[i].method[0] == 'G'   ? "get"
                                              : routes[i].method[0] == 'P' ? "post"
                                                                           : "delete"));
    }
    json_decref(body);
}

CASE(limits_are_public, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/limits");
    assert_int_equal(answer.status, 200);
    assert_true(answer_has(&answer, "{\"name\":\"body_bytes\",\"value\":2097152"));
}

TEST_WITH(a_controller_that_may_not_lead_any_more_answers_nothing, harness_start, harness_stop)
{
    struct harness *harness = *state;
    harness->is_deposed = true;
    struct answer answer = client_get(*state, "/api/v1/jobs");
    assert_int_equal(answer.status, 503);
    assert_string_equal(answer_string(&answer, "code"), "standby");
    answer_clear(&answer);
    assert_int_equal(harness->barriers, 0);
}

CASE(a_single_controller_has_no_cluster, harness)
{
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/api/v1/cluster");
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_string(&answer, "role"), "only");
}
