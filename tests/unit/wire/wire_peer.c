/* SPDX-License-Identifier: MIT */
/* Peers, tokens, names of users; and the tables of problems and limits. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "unit_test.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/peer.h"
#include "wire/problem.h"
#include "wire/socket_query.h"
#include "wire/token.h"
#include "wire/usernames.h"

bool __wrap_socket_query(const struct inet_diag_req_v2 *query, struct inet_diag_msg *answer);
bool __real_socket_query(const struct inet_diag_req_v2 *query, struct inet_diag_msg *answer);

/* Other possible answers of the kernel. */
static void (*falsify)(struct inet_diag_msg *answer);

bool __wrap_socket_query(const struct inet_diag_req_v2 *query, struct inet_diag_msg *answer)
{
    bool is_answered = __real_socket_query(query, answer);
    if (is_answered && falsify != NULL)
        falsify(answer);
    return is_answered;
}

struct pair {
    int client, server;
};

static struct pair connect_tcp(int client_family, int server_family)
{
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct pair pair = { -1, -1 };
    int listener = socket(server_family, SOCK_STREAM, 0);
    socklen_t length = server_family == AF_INET6 ? sizeof(six) : sizeof(four);
    void *address = server_family == AF_INET6 ? (void *)&six : (void *)&four;
    if (listener < 0 || bind(listener, address, length) < 0 || listen(listener, 1) < 0)
        return pair;
    (void)getsockname(listener, address, &length);
    in_port_t port = server_family == AF_INET6 ? six.sin6_port : four.sin_port;
    four.sin_port = six.sin6_port = port;
    six.sin6_addr = in6addr_loopback;
    if (client_family == AF_INET6 && server_family == AF_INET)
        (void)inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
    pair.client = socket(client_family, SOCK_STREAM, 0);
    int r = client_family == AF_INET6 ? connect(pair.client, (struct sockaddr *)&six, sizeof(six))
                                      : connect(pair.client, (struct sockaddr *)&four, sizeof(four));
    if (r == 0)
        pair.server = accept(listener, NULL, NULL);
    close(listener);
    return pair;
}

static void close_pair(struct pair *pair)
{
    if (pair->client >= 0)
        close(pair->client);
    if (pair->server >= 0)
        close(pair->server);
}

TEST(the_owner_of_a_loopback_peer_is_found)
{
    static const int families[][2] = { { AF_INET, AF_INET }, { AF_INET, AF_INET6 }, { AF_INET6, AF_INET },
        { AF_INET6, AF_INET6 } };
    for (size_t i = 0; i < 4; i++) {
        struct pair pair = connect_tcp(families[i][0], families[i][1]);
        if (pair.server >= 0) { // a machine may have no IPv6
            struct peer peer = peer_of_loopback(pair.server);
            assert_true(peer.is_known);
            assert_int_equal(peer.uid, getuid());
        }
        close_pair(&pair);
    }
}

/* "echo word | nc -N" has sent everything before it is looked at. */
TEST(the_owner_of_a_peer_that_sends_no_more_is_found)
{
    struct pair pair = connect_tcp(AF_INET, AF_INET);
    assert_int_equal(shutdown(pair.client, SHUT_WR), 0);
    struct peer peer = peer_of_loopback(pair.server);
    assert_true(peer.is_known);
    assert_int_equal(peer.uid, getuid());
    close_pair(&pair);
}

static void change_port(struct inet_diag_msg *answer)
{
    answer->id.idiag_sport ^= 1;
}

static void change_own_port(struct inet_diag_msg *answer)
{
    answer->id.idiag_dport ^= 1;
}

static void change_address(struct inet_diag_msg *answer)
{
    answer->id.idiag_src[0] ^= htonl(1);
}

static void listen_only(struct inet_diag_msg *answer)
{
    answer->idiag_state = 10; // LISTEN
}

static void lose_inode(struct inet_diag_msg *answer)
{
    answer->idiag_inode = 0;
}

/* The kernel offers another socket where there is no exact one. */
TEST(an_answer_about_another_socket_is_not_believed)
{
    static void (*const ways[])(struct inet_diag_msg * answer) = { change_port, change_own_port,
        change_address, listen_only, lose_inode };
    struct pair pair = connect_tcp(AF_INET, AF_INET);
    assert_true(peer_of_loopback(pair.server).is_known);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        falsify = ways[i];
        assert_false(peer_of_loopback(pair.server).is_known);
    }
    falsify = NULL;
    close_pair(&pair);
}

TEST(a_peer_that_has_gone_is_unknown)
{
    struct pair pair = connect_tcp(AF_INET, AF_INET);
    close(pair.client);
    pair.client = -1;
    assert_false(peer_of_loopback(pair.server).is_known);
    close_pair(&pair);
}

TEST(a_peer_that_is_no_socket_is_unknown)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_false(peer_of_loopback(fds[0]).is_known);
    assert_false(peer_of_unix(fds[0]).is_known);
    close(fds[0]);
    close(fds[1]);
    assert_false(peer_of_unix(-1).is_known);
}

TEST(the_peer_of_a_unix_socket_is_its_process)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    struct peer peer = peer_of_unix(fds[0]);
    assert_true(peer.is_known);
    assert_int_equal(peer.uid, getuid());
    assert_int_equal(peer.gid, getgid());
    close(fds[0]);
    close(fds[1]);
}

TEST(tokens_differ_and_hash_alike)
{
    char a[TOKEN_SIZE], b[TOKEN_SIZE];
    uint8_t hash_a[TOKEN_HASH_SIZE], hash_b[TOKEN_HASH_SIZE], again[TOKEN_HASH_SIZE];
    assert_int_equal(token_make(a, hash_a, NULL), 0);
    assert_int_equal(token_make(b, hash_b, NULL), 0);
    assert_string_not_equal(a, b);
    assert_false(token_is_equal(hash_a, hash_b));
    assert_true(token_hash(a, again));
    assert_true(token_is_equal(hash_a, again));
}

TEST(what_is_no_token_has_no_hash)
{
    static const char *const texts[] = { "", "mgpu_",
        "mgpu_00000000000000000000000000000000000000000000000000000000000000000",
        "mgpu_0000000000000000000000000000000000000000000000000000000000000000 ",
        "mgpu_0000000000000000000000000000000000000000000000000000000000000000x",
        "mgpu_000000000000000000000000000000000000000000000000000000000000000G",
        "mgpu_000000000000000000000000000000000000000000000000000000000000000 ",
        "MGPU_0000000000000000000000000000000000000000000000000000000000000000" };
    uint8_t hash[TOKEN_HASH_SIZE];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(token_hash(texts[i], hash));
    assert_string_equal(token_of_header("bearer  x"), "x");
    assert_null(token_of_header("Basic x"));
    assert_null(token_of_header("Bearer"));
}

TEST(users_have_names_and_numbers)
{
    struct usernames *names = usernames_new();
    struct error err = { 0 };
    uint32_t uid = 1;
    assert_string_equal(usernames_name(names, 0), "root");
    assert_string_equal(usernames_name(names, 4123456), "4123456");
    assert_string_equal(usernames_name(names, 0 + LIMIT_USER_NAMES * 1000U), "4096000"); // the same place
    assert_string_equal(usernames_name(names, 0), "root");
    assert_int_equal(usernames_uid(names, "root", &uid, &err), 0);
    assert_int_equal(uid, 0);
    assert_int_equal(usernames_uid(names, "77", &uid, &err), 0);
    assert_int_equal(uid, 77);
    assert_int_equal(usernames_uid(names, "no such user", &uid, &err), -ENOENT);
    _cleanup_free_ char *home = NULL;
    assert_int_equal(usernames_account(0, NULL, &home), 0);
    assert_string_equal(home, "/root");
    usernames_free(names);
}

TEST(every_problem_has_its_status)
{
    struct error err = { 0 };
    (void)error_set(&err, -ENOENT, "there is no job 7");
    (void)error_hint(&err, "look");
    _cleanup_json_ json_t *object = problem_write(&err);
    _cleanup_free_ char *text = json_text_format(object);
    assert_string_equal(text,
        "{\"type\":\"about:blank\",\"title\":\"Not "
        "found\",\"status\":404,\"code\":\"not_found\",\"detail\":\"there is no job 7\",\"hint\":\"look\"}");
    assert_int_equal(problem_find(-EIO)->status, 503);
    assert_int_equal(problem_find(-EXFULL)->status, 500);
    size_t count;
    const struct problem *rows = problem_all(&count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(problem_find(-rows[i].error), &rows[i]); // no errno twice
        assert_string_not_equal(problem_status_text(rows[i].status), "Internal Server Error");
    }
}

TEST(limits_have_names_of_their_own)
{
    size_t count;
    const struct limit *limits = limits_all(&count);
    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        assert_true(limits[i].value > 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(limits[i].name, limits[k].name);
    }
}
