/* SPDX-License-Identifier: MIT */
/* Many connections: idle ones do not hinder others, and no user may have all of them. */

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/http/http_private.h"
#include "controller/http/users.h"
#include "serve_client.h"
#include "serve_harness.h"
#include "unit_test.h"
#include "wire/limits.h"

#define CASE(name, harness) TEST_ON(name, struct harness *harness, harness_start, harness_stop)

#define CROWD (LIMIT_USER_CONNECTIONS - 50)

static bool has_descriptors(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur >= 2 * LIMIT_CONNECTIONS;
}

CASE(idle_connections_do_not_hinder_others, harness)
{
    static int crowd[CROWD];
    if (!has_descriptors())
        skip();
    for (size_t i = 0; i < CROWD; i++) {
        crowd[i] = client_connect(harness);
        if (i % 3 == 1)
            assert_int_equal(send(crowd[i], "GET /heal", 9, 0), 9); // half a request
        harness_turn(harness, 0);
    }
    int64_t slowest_ms = 0;
    for (int i = 0; i < 200; i++) {
        int64_t begin_ms = clock_boot_ms();
        struct answer answer = client_get(harness, "/api/v1/gpus");
        assert_int_equal(answer.status, 200);
        answer_clear(&answer);
        int64_t took_ms = clock_boot_ms() - begin_ms;
        slowest_ms = took_ms > slowest_ms ? took_ms : slowest_ms;
    }
    assert_true(slowest_ms < 1000);
    for (size_t i = 0; i < CROWD; i++)
        close(crowd[i]);
    for (int i = 0; i < 100; i++)
        harness_turn(harness, 0);
    struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
}

/* The stand-in's forecast is too old for the next list as soon as it is made, as when much happens. */
CASE(lists_that_wait_together_share_a_forecast, harness)
{
    enum { READERS = 12 };
    static const char ask[] = "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n";
    int readers[READERS];
    (void)harness_add_job(harness, 1, 1, JOB_QUEUED);
    harness->look_ms = 5; // longer than a part of an answer may take
    for (size_t i = 0; i < READERS; i++)
        readers[i] = client_connect(harness);
    for (size_t i = 0; i < READERS; i++) // at once: the loop runs from here on
        assert_int_equal(send(readers[i], ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
    for (size_t i = 0; i < READERS; i++) {
        struct answer answer = client_receive(harness, readers[i], false);
        assert_int_equal(answer.status, 200);
        answer_clear(&answer);
        close(readers[i]);
    }
    assert_in_range(harness->forecasts, 1, READERS / 2);
}

CASE(lists_of_gpus_that_wait_together_are_made_once, harness)
{
    enum { READERS = 12, NODES = 1000 };
    static const char ask[] = "GET /api/v1/gpus?sparse=1 HTTP/1.1\r\nHost: x\r\n\r\n";
    int readers[READERS];
    harness->core.n_more = NODES - 1;
    struct answer whole = client_get(harness, "/api/v1/gpus?sparse=1"), part = { 0 };
    unsigned once = harness->core.gpus_listed;
    assert_true(once >= NODES);
    assert_true(whole.length > (size_t)256 << 10); // several slices
    for (size_t i = 0; i < READERS; i++)
        readers[i] = client_connect(harness);
    int slow = client_connect(harness); // reads nothing, and delays nobody
    assert_int_equal(send(slow, ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(send(readers[i], ask, sizeof(ask) - 1, 0), sizeof(ask) - 1);
    for (size_t i = 0; i < READERS; i++) {
        struct answer answer = client_receive(harness, readers[i], false);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer.length, whole.length);
        assert_memory_equal(answer.body, whole.body, whole.length);
        answer_clear(&answer);
        close(readers[i]);
    }
    assert_in_range(harness->core.gpus_listed, 2 * once, (READERS / 2 + 1) * once); // not READERS + 2
    part = client_get(harness, "/api/v1/gpus?sparse=1&after=995");
    assert_int_equal(part.status, 200);
    assert_true(part.length < whole.length / 100);
    answer_clear(&part);
    answer_clear(&whole);
    close(slow);
}

CASE(large_bodies_do_not_fill_the_memory, harness)
{
    enum { SENDERS = LIMIT_USER_BODIES_BYTES / (1 << 20) + 8 };
    static char megabyte[1 << 20];
    static const char head[] = "POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n";
    int senders[SENDERS];
    memset(megabyte, ' ', sizeof(megabyte));
    for (size_t i = 0; i < SENDERS; i++) {
        senders[i] = client_connect(harness);
        assert_true(client_send(harness, senders[i], head, sizeof(head) - 1));
        (void)client_send(harness, senders[i], megabyte, sizeof(megabyte));
    }
    struct answer answer = client_receive(harness, senders[SENDERS - 1], false);
    assert_int_equal(answer.status, 429);
    answer_clear(&answer);
    for (size_t i = 0; i < SENDERS; i++)
        close(senders[i]);
    for (int i = 0; i < 20; i++)
        harness_turn(harness, 1);
    answer = client_post(harness, "/api/v1/jobs", "{\"command\":\"true\"}"); // all is given back
    assert_int_equal(answer.status, 201);
    answer_clear(&answer);
}

static void take(struct users *users, uint32_t uid, enum user_share share, int count)
{
    struct error err = { 0 };
    for (int i = 0; i < count; i++)
        assert_int_equal(users_take(users, uid, share, 1, &err), 0);
    assert_true(users_take(users, uid, share, 1, &err) < 0);
    assert_int_equal(err.code, -EMFILE);
}

TEST(many_users_may_not_take_all_connections)
{
    struct users *users = users_new(LIMIT_CONNECTIONS);
    struct error err = { 0 };
    take(users, 1, SHARE_CONNECTIONS, LIMIT_USER_CONNECTIONS);
    for (uint32_t uid = 2; uid < 16; uid++)
        take(users, uid, SHARE_CONNECTIONS, LIMIT_USER_CONNECTIONS);
    assert_int_equal(users_take(users, 16, SHARE_CONNECTIONS, 1, &err), -EMFILE);
    assert_string_equal(err.message, "the limit of 7680 connections has been reached");
    take(users, USER_UNKNOWN, SHARE_UNKNOWN, LIMIT_UNKNOWN_CONNECTIONS);
    take(users, 0, SHARE_RESERVED, LIMIT_RESERVED_CONNECTIONS);
    users_give(users, 1, SHARE_CONNECTIONS, 1);
    assert_int_equal(users_take(users, 16, SHARE_CONNECTIONS, 1, &err), 0);
    users_free(users);
}

TEST(where_files_are_few_one_user_still_has_some_connections)
{
    struct users *users = users_new(704); // what is affordable with 1024 descriptors
    take(users, 1, SHARE_CONNECTIONS, 64);
    take(users, 0, SHARE_RESERVED, 44);
    take(users, USER_UNKNOWN, SHARE_UNKNOWN, 44);
    users_free(users);
}

/* The test's user is mgpud's own, and so an administrator. */
CASE(an_administrator_gets_in_when_all_other_connections_are_taken, harness)
{
    struct users *users = harness->controller.serve->users;
    for (uint32_t uid = 70000; users_take(users, uid, SHARE_CONNECTIONS, 1, NULL) == 0;)
        uid += users_take(users, uid, SHARE_CONNECTIONS, 1, NULL) < 0;
    _cleanup_(answer_clear) struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
}

#define ASKERS 20
#define WHY_MS 30
#define OTHER  4711

/* Connections that have asked why jobs from this one on wait, one for each, and wait for the answer. */
static void ask_why(struct harness *harness, int *fds, size_t count, const char *more, uint64_t job)
{
    for (size_t i = 0; i < count; i++) {
        _cleanup_free_ char *ask =
            xasprintf("GET /api/v1/jobs/%d/why HTTP/1.1\r\nHost: localhost\r\n%s\r\n", (int)(job + i), more);
        fds[i] = client_connect_tcp(harness);
        assert_int_equal(send(fds[i], ask, strlen(ask), MSG_NOSIGNAL), strlen(ask));
    }
}

CASE(answers_that_take_long_leave_room_for_others, harness)
{
    int askers[ASKERS];
    for (uint64_t i = 0; i < ASKERS; i++)
        (void)harness_add_job(harness, 3 + i, getuid(), JOB_QUEUED);
    harness->why_ms = WHY_MS;
    ask_why(harness, askers, ASKERS, "", 3);
    while (harness->whys == 0)
        harness_turn(harness, 1);
    struct answer answer = client_get(harness, "/healthz");
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    assert_true(harness->whys <= ASKERS / 2); // of so many that were asked before
    for (size_t i = 0; i < ASKERS; i++) {
        answer = client_receive(harness, askers[i], false);
        assert_int_equal(answer.status, 200);
        answer_clear(&answer);
        close(askers[i]);
    }
    assert_int_equal(harness->whys, ASKERS);
}

CASE(requests_about_one_job_share_an_answer, harness)
{
    int askers[ASKERS];
    (void)harness_add_job(harness, 3, getuid(), JOB_QUEUED);
    harness->version = 7;
    harness->why_ms = 10;
    harness->why_parts = 5;
    for (size_t i = 0; i < ASKERS; i++)
        ask_why(harness, &askers[i], 1, "", 3);
    while (harness->whys == 0)
        harness_turn(harness, 1);
    close(askers[0]); // the one that began it
    for (size_t i = 1; i < ASKERS; i++) {
        struct answer answer = client_receive(harness, askers[i], false);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer_integer(&answer, "job"), 3);
        answer_clear(&answer);
        close(askers[i]);
    }
    assert_int_equal(harness->whys, 1);
}

/* A token of another user, as a header line, which the caller frees. */
static char *other_token(struct harness *harness)
{
    _cleanup_(answer_clear) struct answer made = client_post(harness, "/api/v1/tokens", "{\"name\":\"ci\"}");
    harness->token.uid = OTHER;
    char *token = xasprintf("Authorization: Bearer %s\r\n", answer_string(&made, "token"));
    return token;
}

CASE(users_wait_for_long_answers_in_turn, harness)
{
    int askers[ASKERS], other;
    for (uint64_t i = 0; i <= ASKERS; i++)
        (void)harness_add_job(harness, 3 + i, getuid(), JOB_QUEUED);
    _cleanup_free_ char *token = other_token(harness);
    harness->why_ms = WHY_MS;
    ask_why(harness, askers, ASKERS, "", 3);
    ask_why(harness, &other, 1, token, 3 + ASKERS);
    struct answer answer = client_receive(harness, other, false);
    assert_int_equal(answer.status, 200);
    answer_clear(&answer);
    assert_true(harness->whys <= ASKERS / 2); // not behind all that the first has asked
    for (size_t i = 0; i < ASKERS; i++)
        close(askers[i]);
    close(other);
}

static void submit(int fd, const char *more)
{
    static const char body[] = "{\"command\":\"true\",\"cwd\":\"/\"}";
    _cleanup_free_ char *ask = xasprintf("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n%s"
                                         "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        more, sizeof(body) - 1, body);
    assert_int_equal(send(fd, ask, strlen(ask), MSG_NOSIGNAL), strlen(ask));
}

/* Over TCP without a token the test's user is no administrator. */
CASE(small_requests_of_who_has_had_much_of_the_time_wait_in_turn, harness)
{
    struct users *users = harness->controller.serve->users;
    int askers[ASKERS], other = client_connect_tcp(harness);
    _cleanup_free_ char *token = other_token(harness);
    for (size_t i = 0; i < ASKERS; i++)
        askers[i] = client_connect_tcp(harness);
    for (int i = 0; i < ASKERS; i++)
        harness_turn(harness, 0); // all are accepted
    assert_true(users_has_time(users, getuid(), clock_boot_us()));
    users_spend(users, getuid(), clock_boot_us(), INT64_C(60000000));
    assert_false(users_has_time(users, getuid(), clock_boot_us()));
    for (size_t i = 0; i < ASKERS; i++)
        submit(askers[i], "");
    submit(other, token);
    struct answer answer = client_receive(harness, other, false);
    assert_int_equal(answer.status, 201);
    answer_clear(&answer);
    assert_int_equal(harness->core.jobs[0]->uid, OTHER); // the last one that was sent
    for (size_t i = 0; i < ASKERS; i++) {
        answer = client_receive(harness, askers[i], false);
        assert_int_equal(answer.status, 201);
        answer_clear(&answer);
        close(askers[i]);
    }
    close(other);
}

/* Who has had much of the time submits while a commit is in progress; how many are in the next one. */
static size_t submit_many(struct harness *harness, int askers[ASKERS])
{
    users_spend(harness->controller.serve->users, getuid(), clock_boot_us(), INT64_C(60000000));
    harness->controller.commit_us = 1;
    for (size_t i = 0; i < ASKERS; i++) {
        askers[i] = client_connect_tcp(harness);
        submit(askers[i], "");
    }
    for (int i = 0; i < 10 * ASKERS; i++)
        harness_turn(harness, 0);
    return harness->core.n_jobs;
}

CASE(a_commit_has_few_changes_of_who_has_had_much_of_the_time, harness)
{
    struct serve *serve = harness->controller.serve;
    int askers[ASKERS];
    users_spend(serve->users, OTHER, clock_boot_us(), 0); // who may wait for the commit
    assert_in_range(submit_many(harness, askers), 1, ASKERS / 2);
    harness->controller.commit_us = 0;
    serve_resume(serve);
    for (size_t i = 0; i < ASKERS; i++) {
        struct answer answer = client_receive(harness, askers[i], false);
        assert_int_equal(answer.status, 201);
        answer_clear(&answer);
        close(askers[i]);
    }
}

CASE(who_is_alone_fills_the_commits, harness)
{
    int askers[ASKERS];
    assert_int_equal(submit_many(harness, askers), ASKERS);
    for (size_t i = 0; i < ASKERS; i++)
        close(askers[i]);
}

/* On the unix socket the test's user is one. */
CASE(an_administrator_has_most_of_the_time_for_long_answers, harness)
{
    enum { EACH = 8 };
    int admins[EACH], others[EACH];
    for (uint64_t i = 0; i < 2 * EACH; i++)
        (void)harness_add_job(harness, 3 + i, getuid(), JOB_QUEUED);
    _cleanup_free_ char *token = other_token(harness);
    harness->why_ms = WHY_MS;
    ask_why(harness, others, EACH, token, 3);
    for (size_t i = 0; i < EACH; i++) {
        _cleanup_free_ char *ask =
            xasprintf("GET /api/v1/jobs/%d/why HTTP/1.1\r\nHost: localhost\r\n\r\n", (int)(3 + EACH + i));
        admins[i] = client_connect(harness);
        assert_int_equal(send(admins[i], ask, strlen(ask), MSG_NOSIGNAL), strlen(ask));
    }
    for (size_t i = 0; i < EACH; i++) {
        struct answer answer = client_receive(harness, admins[i], false);
        assert_int_equal(answer.status, 200);
        answer_clear(&answer);
    }
    assert_in_range(harness->whys, EACH, EACH + EACH / 2);
    for (size_t i = 0; i < EACH; i++) {
        close(admins[i]);
        close(others[i]);
    }
}

CASE(a_forecast_is_made_once_while_nothing_happens, harness)
{
    (void)harness_add_job(harness, 3, getuid(), JOB_QUEUED);
    (void)harness_add_job(harness, 4, getuid(), JOB_QUEUED);
    static const struct {
        const char *path;
        int64_t version;
        unsigned whys;
    } steps[] = { { "/api/v1/jobs/3/why", 7, 1 }, { "/api/v1/jobs/3/why", 7, 1 },
        { "/api/v1/jobs/3/why", 8, 2 }, { "/api/v1/jobs/4/why", 8, 3 }, { "/api/v1/jobs/4/why", 0, 4 },
        { "/api/v1/jobs/4/why", 0, 5 } };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        harness->version = steps[i].version;
        struct answer answer = client_get(harness, steps[i].path);
        assert_int_equal(answer.status, 200);
        assert_int_equal(answer_integer(&answer, "job"), i < 3 ? 3 : 4);
        assert_int_equal(harness->whys, steps[i].whys);
        answer_clear(&answer);
    }
}

TEST(who_asks_too_fast_is_slowed_down_alone)
{
    struct users *users = users_new(10);
    struct error err = { 0 };
    for (int i = 0; i < LIMIT_USER_BURST; i++)
        assert_int_equal(users_request(users, 1, 1000, 1, &err), 0);
    assert_true(users_request(users, 1, 1000, 1, &err) < 0);
    assert_int_equal(users_request(users, 2, 1000, 1, &err), 0);
    assert_int_equal(users_request(users, 257, 1000, 1, &err), 0); // the same chain as user 1
    assert_true(users_request(users, 1, 1000, 1, &err) < 0);
    assert_int_equal(users_request(users, 1, 1001, 1, &err), 0);
    assert_true(users_request(users, 1, 1010, LIMIT_TOKEN_REQUESTS, &err) < 0);
    assert_int_equal(users_request(users, 1, 1060, LIMIT_TOKEN_REQUESTS, &err), 0);
    users_free(users);
}
