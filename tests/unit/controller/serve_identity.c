/* SPDX-License-Identifier: MIT */
/* Who asks: over the unix socket, over loopback TCP, by token, and from a page in somebody's browser. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "serve_client.h"
#include "serve_harness.h"

static int start(void **state)
{
    *state = harness_new();
    return 0;
}

static int stop(void **state)
{
    harness_free(*state);
    return 0;
}

static struct answer ask_tcp(struct harness *harness, const char *request)
{
    int fd = client_connect_tcp(harness);
    assert_true(client_send(harness, fd, request, strlen(request)));
    struct answer answer = client_receive(harness, fd, false);
    close(fd);
    return answer;
}

static void assert_refused(struct harness *harness, const char *request, unsigned status)
{
    struct answer answer = ask_tcp(harness, request);
    assert_int_equal(answer.status, status);
    answer_clear(&answer);
}

static void a_loopback_client_is_its_user(void **state)
{
    struct harness *harness = *state;
    struct answer answer =
        ask_tcp(harness, "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: "
                         "18\r\n\r\n{\"command\":\"true\"}");
    assert_int_equal(answer.status, 201);
    assert_int_equal(harness->asked_by.uid, getuid());
    answer_clear(&answer);
}

static void another_users_loopback_client_is_that_user(void **state)
{
    struct harness *harness = *state;
    if (getuid() != 0)
        skip();
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(1);
        int fd = client_connect_tcp(harness);
        static const char ask[] = "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 18\r\n\r\n{\"command\":\"true\"}";
        if (send(fd, ask, sizeof(ask) - 1, 0) < 0)
            _exit(1);
        struct pollfd answer = { fd, POLLIN, 0 };
        _exit(poll(&answer, 1, 10000) != 1);
    }
    while (harness->submitted == NULL)
        harness_turn(harness, 10);
    assert_true(harness->asked_by.is_known);
    assert_int_equal(harness->asked_by.uid, 65534);
    assert_int_equal(harness->asked_by.role, ROLE_USER);
    while (waitpid(child, NULL, WNOHANG) == 0)
        harness_turn(harness, 10);
}

static void a_foreign_host_or_origin_is_refused(void **state)
{
    struct harness *harness = *state;
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\n\r\n", 400);
    assert_refused(
        harness, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n", 403);
    assert_refused(
        harness, "GET /healthz HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:2\r\n\r\n", 403);
    assert_refused(
        harness, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403);
    assert_refused(
        harness, "GET /healthz HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\n\r\n", 200);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", 200);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200);
    harness->controller.options.listen = (char[]){ "box.example:9123" };
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: BOX.example:9\r\n\r\n", 200);
}

static void a_token_acts_for_its_maker(void **state)
{
    struct harness *harness = *state;
    struct answer answer = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\",\"expires_s\":60}");
    assert_int_equal(answer.status, 201);
    _cleanup_free_ char *token = xstrdup(answer_string(&answer, "token"));
    assert_int_equal(strlen(token), 69);
    assert_int_equal(strncmp(token, "mgpu_", 5), 0);
    answer_clear(&answer);
    assert_int_equal(harness->token.uid, getuid());
    harness->token.uid = 4711; // as if another user had made it
    _cleanup_free_ char *ask = xasprintf("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                                         "Authorization: Bearer %s\r\nContent-Length: 34\r\n\r\n"
                                         "{\"command\":\"true\",\"cwd\":\"/tmp/xx\"}",
        token);
    answer = ask_tcp(harness, ask);
    assert_int_equal(answer.status, 201);
    assert_int_equal(harness->asked_by.uid, 4711);
    assert_int_equal(harness->asked_by.role, ROLE_USER);
    answer_clear(&answer);
}

static void a_bad_token_is_401_even_for_a_known_user(void **state)
{
    struct harness *harness = *state;
    static const char *const headers[] = { "Bearer x", "Bearer ", "Basic abc",
        "Bearer mgpu_0000000000000000000000000000000000000000000000000000000000000000",
        "Bearer mgpu_000000000000000000000000000000000000000000000000000000000000000",
        "Bearer mgpu_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        _cleanup_free_ char *ask = xasprintf(
            "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n", headers[i]);
        struct answer answer = ask_tcp(harness, ask);
        assert_int_equal(answer.status, 401);
        assert_string_equal(answer_string(&answer, "code"), "who_are_you");
        assert_non_null(strstr(answer.head, "WWW-Authenticate: Bearer"));
        answer_clear(&answer);
    }
}

/* The socket pair would tell that its other end is ours. */
static void a_connection_from_another_machine_is_known_by_its_token_alone(void **state)
{
    static const char question[] = "GET /api/v1/jobs HTTP/1.1\r\nHost: gpu0.example.org:9123\r\n\r\n";
    struct harness *harness = *state;
    int ends[2];
    struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    _cleanup_free_ char *known = xasprintf("GET /api/v1/jobs HTTP/1.1\r\nHost: gpu0.example.org:9123\r\n"
                                           "Authorization: Bearer %s\r\n\r\n",
        answer_string(&made, "token"));
    answer_clear(&made);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    serve_adopt(harness->controller.serve, ends[0]);
    assert_true(client_send(harness, ends[1], question, strlen(question)));
    struct answer answer = client_receive(harness, ends[1], false);
    assert_int_equal(answer.status, 401);
    answer_clear(&answer);
    assert_true(client_send(harness, ends[1], known, strlen(known)));
    answer = client_receive(harness, ends[1], false);
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    (void)close(ends[1]);
}

static void tokens_are_made_on_the_unix_socket_only(void **state)
{
    struct answer answer = ask_tcp(*state,
        "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n{\"name\":\"ci\"}");
    assert_int_equal(answer.status, 403);
    answer_clear(&answer);
}

static void bad_token_requests_are_refused(void **state)
{
    static const char *const bodies[] = { "{}", "{\"name\":\"\"}", "{\"name\":\"a\",\"expires_s\":0}",
        "{\"name\":\"a\",\"expires_s\":99999999999}", "{\"name\":\"a\",\"expire_s\":5}" };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct answer answer = client_post(*state, "/api/v1/tokens", bodies[i]);
        assert_int_equal(answer.status, 400);
        answer_clear(&answer);
    }
}

static void who_is_not_known_gets_only_what_is_public(void **state)
{
    struct harness *harness = *state;
    static const char asks[] = "GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    /* A peer that has closed its side when it is accepted is not believed, whoever it was. */
    int fd = client_connect_tcp(harness);
    assert_int_equal(send(fd, asks, sizeof(asks) - 1, 0), sizeof(asks) - 1);
    (void)shutdown(fd, SHUT_WR);
    char *text = client_read_until(harness, fd, "who_are_you");
    assert_non_null(strstr(text, "HTTP/1.1 200"));
    free(text);
    close(fd);
}

static void a_job_of_somebody_else_is_not_to_be_touched(void **state)
{
    struct harness *harness = *state;
    (void)harness_add_job(harness, 3, 4712, JOB_RUNNING);
    harness->controller.admin_uid = 4713;
    harness->token = (struct store_token){ .uid = 4711 };
    struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    harness->token.uid = 4711;
    static const char *const asks[] = { "GET /api/v1/jobs/3/log", "POST /api/v1/jobs/3/cancel" };
    for (size_t i = 0; i < 2; i++) {
        _cleanup_free_ char *ask =
            xasprintf("%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", asks[i],
                answer_string(&made, "token"));
        struct answer answer = ask_tcp(harness, ask);
        assert_int_equal(answer.status, 403);
        assert_string_equal(answer_string(&answer, "code"), "not_allowed");
        answer_clear(&answer);
    }
    _cleanup_free_ char *show =
        xasprintf("GET /api/v1/jobs/3 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
            answer_string(&made, "token"));
    struct answer answer = ask_tcp(harness, show);
    assert_int_equal(answer.status, 200);
    assert_false(answer_has(&answer, "treasure"));
    assert_false(answer_has(&answer, "argv"));
    answer_clear(&answer);
    answer_clear(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loopback_client_is_its_user, start, stop),
        cmocka_unit_test_setup_teardown(another_users_loopback_client_is_that_user, start, stop),
        cmocka_unit_test_setup_teardown(a_foreign_host_or_origin_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(a_token_acts_for_its_maker, start, stop),
        cmocka_unit_test_setup_teardown(a_bad_token_is_401_even_for_a_known_user, start, stop),
        cmocka_unit_test_setup_teardown(
            a_connection_from_another_machine_is_known_by_its_token_alone, start, stop),
        cmocka_unit_test_setup_teardown(tokens_are_made_on_the_unix_socket_only, start, stop),
        cmocka_unit_test_setup_teardown(bad_token_requests_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(who_is_not_known_gets_only_what_is_public, start, stop),
        cmocka_unit_test_setup_teardown(a_job_of_somebody_else_is_not_to_be_touched, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
