/* SPDX-License-Identifier: MIT */
/* Bytes that are no request, or too much of one: one clear answer, and the next client is served. */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"
#include "wire/limits.h"

#define CASE(name) TEST_WITH(name, harness_start, harness_stop)

static void assert_alive(void *state)
{
    _cleanup_(answer_clear) struct answer answer = client_get(state, "/healthz");
    assert_int_equal(answer.status, 200);
}

/* Each is refused with this status and code, and its connection is closed. */
static const struct {
    const char *bytes;
    unsigned status;
    const char *code;
} cases[] = {
    { "GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505, "version" },
    { "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, "version" },
    { "GET / XTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed" },
    { "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 garbage", 400, "malformed" },
    { "FROB / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed" },
    { "GET /healthz HTTP/1.1\r\nHost x\r\n\r\n", 400, "malformed" },
    { "GET /healthz HTTP/1.1\r\nBad Name: x\r\n\r\n", 400, "malformed" },
    { "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "malformed" },
    { "GET http://elsewhere/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "invalid" },
    { "GET /api/v1/jobs?name=%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400, "invalid" },
    { "GET /api/v1/jobs?name=a%00b HTTP/1.1\r\nHost: x\r\n\r\n", 400, "invalid" },
    { "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
        "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", 400,
        "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400, "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 3145728\r\n\r\n", 413, "too_large" },
    { "POST /api/v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n300000\r\n", 413, "too_large" },
    { "POST /api/v1/jobs HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed" },
    { "POST /api/v1/jobs HTTP/1.1\r\nExpect: a miracle\r\nContent-Length: 2\r\n\r\n{}", 417,
        "expectation_failed" },
};

CASE(malformed_requests_are_refused_in_words)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = client_connect(*state);
        assert_true(client_send(*state, fd, cases[i].bytes, strlen(cases[i].bytes)));
        struct answer answer = client_receive(*state, fd, false);
        if (answer.status != cases[i].status)
            print_message("case %zu: %u %s\n", i, answer.status, answer.body);
        assert_int_equal(answer.status, cases[i].status);
        assert_string_equal(answer_string(&answer, "code"), cases[i].code);
        assert_true(client_is_closed(*state, fd) || cases[i].status == 400);
        answer_clear(&answer);
        close(fd);
    }
    assert_alive(*state);
}

/* "HEAD" + `length` times `filler` + "TAIL" as one request. */
static struct answer ask_filled(void *state, const char *head, char filler, size_t length, const char *tail)
{
    _cleanup_buffer_ struct buffer request = { 0 };
    buffer_append_text(&request, head);
    char *run = xcalloc(length, 1);
    memset(run, filler, length);
    buffer_append(&request, run, length);
    free(run);
    buffer_append_text(&request, tail);
    _cleanup_close_ int fd = client_connect(state);
    (void)client_send(state, fd, request.bytes, request.length);
    struct answer answer = client_receive(state, fd, false);
    return answer;
}

CASE(a_huge_header_is_431)
{
    struct answer answer =
        ask_filled(*state, "GET /healthz HTTP/1.1\r\nX: ", 'a', 65536, "\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 431);
    answer_clear(&answer);
    assert_alive(*state);
}

CASE(an_endless_header_name_is_431)
{
    _cleanup_(answer_clear) struct answer answer =
        ask_filled(*state, "GET /healthz HTTP/1.1\r\n", 'n', 200000, "");
    assert_int_equal(answer.status, 431);
}

CASE(too_many_headers_are_431)
{
    _cleanup_buffer_ struct buffer request = { 0 };
    buffer_append_text(&request, "GET /healthz HTTP/1.1\r\n");
    for (int i = 0; i <= LIMIT_HEADERS; i++)
        buffer_printf(&request, "X-%d: 1\r\n", i);
    buffer_append_text(&request, "\r\n");
    _cleanup_(answer_clear) struct answer answer = client_ask(*state, buffer_text(&request));
    assert_int_equal(answer.status, 431);
}

CASE(a_huge_path_is_414)
{
    _cleanup_(answer_clear) struct answer answer =
        ask_filled(*state, "GET /", 'a', 9000, " HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(answer.status, 414);
}

CASE(a_body_of_3_mib_is_413_and_its_sender_reads_that)
{
    struct answer answer =
        ask_filled(*state, "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 3145728\r\n\r\n", ' ', 3145728, "");
    assert_int_equal(answer.status, 413);
    assert_string_equal(answer_string(&answer, "code"), "too_large");
    answer_clear(&answer);
    assert_alive(*state);
}

CASE(a_truncated_body_is_refused)
{
    _cleanup_close_ int fd = client_connect(*state);
    static const char ask[] = "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 100\r\n\r\n{\"comm";
    assert_true(client_send(*state, fd, ask, sizeof(ask) - 1));
    (void)shutdown(fd, SHUT_WR);
    _cleanup_(answer_clear) struct answer answer = client_receive(*state, fd, false);
    assert_int_equal(answer.status, 400);
    assert_string_equal(answer_string(&answer, "detail"), "the request ends in the middle");
}

CASE(a_client_that_only_sends_is_still_answered)
{
    _cleanup_close_ int fd = client_connect(*state);
    static const char ask[] = "GET /api/v1/gpus HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_int_equal(send(fd, ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
    (void)shutdown(fd, SHUT_WR);
    _cleanup_(answer_clear) struct answer answer = client_receive(*state, fd, false);
    assert_int_equal(answer.status, 200);
}

CASE(a_body_is_waited_for_with_100_continue)
{
    _cleanup_close_ int fd = client_connect(*state);
    static const char head[] = "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 18\r\n"
                               "Expect: 100-continue\r\n\r\n";
    assert_true(client_send(*state, fd, head, sizeof(head) - 1));
    char *text = client_read_until(*state, fd, "\r\n\r\n");
    assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
    free(text);
    assert_true(client_send(*state, fd, "{\"command\":\"true\"}", 18));
    _cleanup_(answer_clear) struct answer answer = client_receive(*state, fd, false);
    assert_int_equal(answer.status, 201);
}

CASE(a_chunked_body_is_one_body)
{
    struct answer answer =
        client_ask(*state, "POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                           "9\r\n{\"command\r\n9\r\n\":\"true\"}\r\n0\r\nX-Trailer: ignored\r\n\r\n");
    assert_int_equal(answer.status, 201);
    answer_clear(&answer);
}

CASE(a_request_may_come_byte_by_byte)
{
    static const char ask[] = "GET /api/v1/version HTTP/1.1\r\nHost: x\r\n\r\n";
    _cleanup_close_ int fd = client_connect(*state);
    for (size_t i = 0; i + 1 < sizeof(ask); i++)
        assert_true(client_send(*state, fd, ask + i, 1));
    _cleanup_(answer_clear) struct answer answer = client_receive(*state, fd, false);
    assert_int_equal(answer.status, 200);
}

/* Bodies that are refused, with a part of the sentence. */
static const struct {
    const char *body;
    const char *detail;
} bodies[] = {
    { "{", "not valid JSON at line 1" },
    { "{\"command\":\"true\"} x", "end of file expected" },
    { "[1]", "must be a JSON object" },
    { "{\"gpus\":NaN}", "not valid JSON" },
    { "{\"gpus\":1e999}", "not valid JSON" },
    { "{\"gpus\":01}", "not valid JSON" },
    { "{\"gpus\":99999999999999999999}", "not valid JSON" },
    { "{\"name\":\"\\ud800\"}", "not valid JSON" },
    { "{\"name\":\"a\\u0000b\"}", "not valid JSON" },
    { "{\"name\":\"\xff\xfe\"}", "not valid JSON" },
    { "{\"name\":\"a\",\"name\":\"b\"}", "duplicate object key" },
    { "{\"comand\":\"true\"}", "no key 'comand'" },
    { "{\"command\":\"true\",\"gpus\":\"two\"}", "gpus: 'two' is not a number of GPUs" },
    { "{\"command\":\"true\",\"gpus\":-1}", "gpus: -1 is outside" },
    { "{\"command\":\"true\",\"gpus\":1.5}", "neither a whole number nor a fraction" },
    { "{\"command\":\"true\",\"gpus\":99999}", "99999 is outside" },
    { "{\"command\":[\"a\",3]}", "command[1] must be a string" },
    { "{\"command\":[]}", "no command was given" },
    { "{}", "no command was given" },
    { "{\"command\":\"true\",\"env\":{\"A=B\":\"x\"}}", "not the name of a variable" },
    { "{\"command\":\"true\",\"env\":[\"A=B\"]}", "env must be an object" },
    { "{\"command\":\"true\",\"cwd\":\"here\"}", "absolute" },
    { "{\"command\":\"true\",\"gpu_mem\":\"lots\"}", "not a size" },
    { "{\"command\":\"true\",\"gpu_ids\":\"0,0\"}", "gpu_ids" },
    { "{\"command\":\"true\",\"umask\":9999}", "umask" },
    { "{\"command\":\"true\",\"uid\":0}", "no key 'uid'" },
};

CASE(bad_bodies_are_refused_in_words)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct answer answer = client_post(*state, "/api/v1/jobs", bodies[i].body);
        if (answer.status != 400 || !answer_has(&answer, bodies[i].detail))
            print_message("%s: %u %s\n", bodies[i].body, answer.status, answer.body);
        assert_int_equal(answer.status, 400);
        assert_true(answer_has(&answer, bodies[i].detail));
        answer_clear(&answer);
    }
}

CASE(json_of_depth_100000_is_refused)
{
    struct answer answer =
        ask_filled(*state, "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 100000\r\n\r\n", '[', 100000, "");
    assert_int_equal(answer.status, 400);
    assert_true(answer_has(&answer, "nested deeper than 16"));
    answer_clear(&answer);
}

CASE(json_of_very_many_values_is_refused)
{
    _cleanup_(answer_clear) struct answer answer = ask_filled(
        *state, "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 1000001\r\n\r\n[", ',', 1000000, "");
    assert_int_equal(answer.status, 400);
    assert_true(answer_has(&answer, "more than 65536 values"));
}

/* Cuts and alters requests in reproducible ways; whatever the answer, the server goes on. */
CASE(mutilated_requests_do_no_harm)
{
    static const char whole[] = "POST /api/v1/jobs?x=%41 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=1-\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n12\r\n{\"command\":\"true\"}\r\n0\r\n\r\n";
    uint32_t random = 1;
    for (int round = 0; round < 2000; round++) {
        char bytes[sizeof(whole)];
        memcpy(bytes, whole, sizeof(whole));
        for (int k = 0; k < 3; k++) {
            random = random * 1664525U + 1013904223U;
            bytes[(random >> 8) % (sizeof(whole) - 1)] = (char)(random >> 24);
        }
        int fd = client_connect(*state);
        (void)send(fd, bytes, (random >> 4) % sizeof(whole), MSG_NOSIGNAL);
        harness_turn(*state, 0);
        close(fd);
        harness_turn(*state, 0);
    }
    assert_alive(*state);
}
