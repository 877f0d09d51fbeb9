/* SPDX-License-Identifier: MIT */
/* The caller's identity: over the unix socket, over loopback TCP, by token, and from a page in another user's
 * browser. */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "controller/http/http_private.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"
#include "wire/limits.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

static struct answer ask_tcp(struct harness *harness, const char *request)
{
    _cleanup_close_ int fd = client_connect_tcp(harness);
    assert_true(client_send(harness, fd, request, strlen(request)));
    struct answer answer = client_receive(harness, fd, false);
    return answer;
}

static void assert_refused(struct harness *harness, const char *request, unsigned status)
{
    _cleanup_(answer_clear) struct answer answer = ask_tcp(harness, request);
    assert_int_equal(answer.status, status);
}

CASE(a_loopback_client_is_its_user, harness)
{
    struct answer answer =
        ask_tcp(harness, "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: "
                         "18\r\n\r\n{\"command\":\"true\"}");
    assert_int_equal(answer.status, 201);
    assert_int_equal(harness->asked_by.uid, getuid());
    answer_clear(&answer);
}

CASE(another_users_loopback_client_is_that_user, harness)
{
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

CASE(a_foreign_host_or_origin_is_refused, harness)
{
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
    static const char *const hosts[] = { "127.0.0.1:9823@evil", "localhost:", "localhost:80x",
        "localhost:80:81", "[::1", "[::1]x", "[::1]@evil", ":80", "" };
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        _cleanup_free_ char *ask = xasprintf("GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i]);
        assert_refused(harness, ask, strcmp(hosts[i], "localhost:") == 0 ? 200 : 403);
    }
    assert_refused(
        harness, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: ftp://localhost\r\n\r\n", 403);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nOrigin: localhost\r\n\r\n", 403);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", 200);
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200);
    harness->controller.options.listen = (char[]){ "box.example:9123" };
    assert_refused(harness, "GET /healthz HTTP/1.1\r\nHost: BOX.example:9\r\n\r\n", 200);
}

CASE(a_token_acts_for_its_maker, harness)
{
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

CASE(a_bad_token_is_401_even_for_a_known_user, harness)
{
    static const char *const headers[] = { "Bearer x", "Bearer ", "Basic abc",
        "Bearer mgpu_0000000000000000000000000000000000000000000000000000000000000000",
        "Bearer mgpu_000000000000000000000000000000000000000000000000000000000000000",
        "Bearer mgpu_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz" };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        _cleanup_free_ char *ask = xasprintf(
            "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\n\r\n", headers[i]);
        struct answer answer = ask_tcp(harness, ask);
        assert_int_equal(answer.status, 401);
        assert_string_equal(answer_string(&answer, "code"), "unauthenticated");
        assert_non_null(strstr(answer.head, "WWW-Authenticate: Bearer"));
        answer_clear(&answer);
    }
}

/* The socket pair would tell that its other end is ours. */
CASE(a_connection_from_another_machine_is_known_by_its_token_alone, harness)
{
    static const char question[] = "GET /api/v1/jobs HTTP/1.1\r\nHost: gpu0.example.org:9123\r\n\r\n";
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
    /* It is no longer one of the few connections of nobody. */
    struct users *users = harness->controller.serve->users;
    for (int i = 0; i < LIMIT_UNKNOWN_CONNECTIONS; i++)
        assert_int_equal(users_take(users, USER_UNKNOWN, SHARE_UNKNOWN, 1, NULL), 0);
    assert_int_equal(users_take(users, USER_UNKNOWN, SHARE_UNKNOWN, 1, NULL), -EMFILE);
    (void)close(ends[1]);
}

CASE(tokens_are_made_on_the_unix_socket_only, harness)
{
    _cleanup_(answer_clear) struct answer answer = ask_tcp(harness,
        "POST /api/v1/tokens HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n{\"name\":\"ci\"}");
    assert_int_equal(answer.status, 403);
}

CASE(bad_token_requests_are_refused, harness)
{
    static const char *const bodies[] = { "{}", "{\"name\":\"\"}", "{\"name\":\"a\",\"expires_s\":0}",
        "{\"name\":\"a\",\"expires_s\":99999999999}", "{\"name\":\"a\",\"expire_s\":5}" };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct answer answer = client_post(harness, "/api/v1/tokens", bodies[i]);
        assert_int_equal(answer.status, 400);
        answer_clear(&answer);
    }
}

CASE(who_is_not_known_gets_only_what_is_public, harness)
{
    static const char asks[] = "GET /api/v1/version HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    /* A peer that has closed its side when it is accepted is not believed, whoever it was. */
    _cleanup_close_ int fd = client_connect_tcp(harness);
    assert_int_equal(send(fd, asks, sizeof(asks) - 1, 0), sizeof(asks) - 1);
    (void)shutdown(fd, SHUT_WR);
    _cleanup_free_ char *text = client_read_until(harness, fd, "unauthenticated");
    assert_non_null(strstr(text, "HTTP/1.1 200"));
}

CASE(a_job_of_somebody_else_is_not_to_be_touched, harness)
{
    (void)harness_add_job(harness, 3, 4712, JOB_RUNNING);
    harness->controller.admin_uid = 4713;
    harness->token = (struct store_token){ .uid = 4711 };
    _cleanup_(answer_clear) struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
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
}

/* A connection with the token that is stored, which is another user's than ours. */
static int connect_with_token(struct harness *harness, const char *path)
{
    struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    harness->token.id = 5;
    harness->token.uid = 4711;
    _cleanup_free_ char *ask =
        xasprintf("GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path,
            answer_string(&made, "token"));
    answer_clear(&made);
    int fd = client_connect_tcp(harness);
    assert_true(client_send(harness, fd, ask, strlen(ask)));
    return fd;
}

CASE(without_a_token_nobody_is_an_administrator_over_tcp, harness)
{
    static const char *const asks[] = { "GET /api/v1/journal", "GET /api/v1/tokens?all=1",
        "POST /api/v1/nodes/here/drain" };
    harness->controller.admin_uid = getuid();
    _cleanup_(answer_clear) struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        _cleanup_free_ char *plain =
            xasprintf("%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", asks[i]);
        _cleanup_free_ char *vouched = xasprintf(
            "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
            asks[i], answer_string(&made, "token"));
        struct answer answer = ask_tcp(harness, plain);
        assert_int_equal(answer.status, 403);
        assert_true(i == 1 || answer_has(&answer, "require a token"));
        answer_clear(&answer);
        assert_refused(harness, vouched, 200);
        answer = client_ask(harness, plain); // on the unix socket
        assert_int_equal(answer.status, 200);
        answer_clear(&answer);
    }
}

CASE(what_a_proxy_passes_on_needs_a_token, harness)
{
    static const char *const headers[] = { "Forwarded: for=192.0.2.4", "X-Forwarded-For: 192.0.2.4",
        "X-Forwarded-Proto: https", "X-Real-IP: 192.0.2.4", "Via: 1.1 proxy" };
    _cleanup_(answer_clear) struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        _cleanup_free_ char *plain =
            xasprintf("GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", headers[i]);
        _cleanup_free_ char *vouched = xasprintf("GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
                                                 "Authorization: Bearer %s\r\n\r\n",
            headers[i], answer_string(&made, "token"));
        assert_refused(harness, plain, 403);
        assert_refused(harness, vouched, 200);
        struct answer answer = client_ask(harness, plain);
        assert_int_equal(answer.status, 403);
        answer_clear(&answer);
    }
}

CASE(a_body_that_says_it_is_not_json_is_refused, harness)
{
    static const struct {
        const char *type;
        unsigned status;
    } cases[] = { { "text/plain", 415 }, { "multipart/form-data; boundary=x", 415 },
        { "application/jsonp", 415 }, { "application/json", 201 }, { "Application/JSON; charset=utf-8", 201 },
        { "application/x-www-form-urlencoded", 201 } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        _cleanup_free_ char *ask =
            xasprintf("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n"
                      "Content-Length: 18\r\n\r\n{\"command\":\"true\"}",
                cases[i].type);
        assert_refused(harness, ask, cases[i].status);
        struct answer answer = client_ask(harness, ask);
        assert_int_equal(answer.status, cases[i].status);
        answer_clear(&answer);
    }
}

CASE(tokens_of_others_are_for_administrators, harness)
{
    harness->controller.admin_uid = getuid();
    close(connect_with_token(harness, "/api/v1/version"));
    struct answer answer = client_get(harness, "/api/v1/tokens");
    assert_int_equal(answer.status, 200);
    assert_false(answer_has(&answer, "\"ci\""));
    answer_clear(&answer);
    answer = client_get(harness, "/api/v1/tokens?all=1");
    assert_int_equal(answer.status, 200);
    assert_true(answer_has(&answer, "\"ci\""));
    assert_false(answer_has(&answer, "mgpu_"));
    answer_clear(&answer);
    _cleanup_close_ int fd = connect_with_token(harness, "/api/v1/tokens?all=1");
    answer = client_receive(harness, fd, false);
    assert_int_equal(answer.status, 403);
    answer_clear(&answer);
}

CASE(a_revoked_token_loses_its_connections_at_once, harness)
{
    harness->controller.admin_uid = getuid();
    _cleanup_close_ int idle = connect_with_token(harness, "/api/v1/jobs");
    struct answer answer = client_receive(harness, idle, false);
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    answer = client_ask(harness, "DELETE /api/v1/tokens/6 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(answer.status, 404);
    answer_clear(&answer);
    _cleanup_close_ int streaming = connect_with_token(harness, "/api/v1/events");
    free(client_read_until(harness, streaming, "text/event-stream"));
    answer = client_ask(harness, "DELETE /api/v1/tokens/5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    assert_true(client_is_closed(harness, idle));
    assert_true(client_is_closed(harness, streaming));
}

CASE(a_token_revokes_itself_and_is_nobody_in_the_next_request, harness)
{
    _cleanup_(answer_clear) struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    harness->token.id = 5;
    _cleanup_close_ int fd = client_connect_tcp(harness);
    static const struct {
        const char *line;
        unsigned status;
    } rows[] = { { "DELETE /api/v1/tokens/5", 200 }, { "GET /api/v1/jobs", 401 } };
    for (size_t i = 0; i < 2; i++) {
        _cleanup_free_ char *ask =
            xasprintf("%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", rows[i].line,
                answer_string(&made, "token"));
        assert_true(client_send(harness, fd, ask, strlen(ask)));
        struct answer answer = client_receive(harness, fd, false);
        assert_int_equal(answer.status, rows[i].status);
        answer_clear(&answer);
    }
}

CASE(a_token_that_the_full_store_keeps_stays_good, harness)
{
    harness->controller.admin_uid = getuid();
    _cleanup_close_ int fd = connect_with_token(harness, "/api/v1/jobs");
    struct answer answer = client_receive(harness, fd, false);
    answer_clear(&answer);
    harness->is_store_full = true;
    answer = client_ask(harness, "DELETE /api/v1/tokens/5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_int_equal(answer.status, 507);
    assert_true(answer_has(&answer, "still valid"));
    answer_clear(&answer);
}
