/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/json/field.h"
#include "cli/api/client.h"
#include "cli/api/exit_code.h"
#include "server.h"
#include "unit_test.h"

static int problem(unsigned status, const char *body, struct error *err)
{
    struct http_answer answer = { .status = status };
    buffer_append_text(&answer.body, body);
    int r = client_problem(&answer, err);
    buffer_clear(&answer.body);
    return r;
}

TEST(a_problem_becomes_its_sentence_and_hint)
{
    struct error err = { 0 };
    assert_int_equal(
        problem(404, "{\"code\":\"not_found\",\"detail\":\"there is no job 9\",\"hint\":\"mgpu ps\"}", &err),
        -ENOENT);
    assert_string_equal(err.message, "there is no job 9");
    assert_string_equal(err.hint, "mgpu ps");
}

TEST(every_problem_has_its_exit_status)
{
    static const struct {
        unsigned status;
        const char *code;
        int exit;
    } rows[] = {
        { 400, "invalid", EXIT_USAGE },
        { 400, "unsatisfiable", EXIT_USAGE },
        { 401, "unauthenticated", EXIT_REFUSED },
        { 403, "not_allowed", EXIT_REFUSED },
        { 404, "not_found", EXIT_MISSING },
        { 408, "timeout", EXIT_TIMEOUT },
        { 409, "already_done", EXIT_WRONG_STATE },
        { 409, "key_conflict", EXIT_WRONG_STATE },
        { 413, "too_large", EXIT_USAGE },
        { 429, "queue_full", EXIT_PARTLY },
        { 503, "node_away", EXIT_UNREACHABLE },
        { 503, "something_new", EXIT_UNREACHABLE },
        { 507, "store_full", EXIT_PARTLY },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err = { 0 };
        char body[128];
        (void)snprintf(body, sizeof(body), "{\"code\":\"%s\",\"detail\":\"x\"}", rows[i].code);
        assert_int_equal(exit_code_of_error(problem(rows[i].status, body, &err)), rows[i].exit);
    }
}

TEST(an_answer_without_json_still_says_something)
{
    struct error err = { 0 };
    assert_int_equal(problem(502, "<html>", &err), -EIO);
    assert_string_equal(err.message, "mgpud returned status 502");
}

TEST(an_unreachable_daemon_is_told_with_its_path)
{
    _cleanup_(client_clear) struct client client = { .asked_path = "/nonexistent/mgpud.sock" };
    struct error err = { 0 };
    assert_int_equal(client_get(&client, "/", NULL, &err), -EHOSTDOWN);
    assert_string_equal(
        err.message, "cannot reach mgpud at /nonexistent/mgpud.sock: No such file or directory");
    assert_int_not_equal(err.hint[0], '\0');
}

TEST(the_users_own_daemon_comes_before_the_systems)
{
    struct client client = { 0 };
    _cleanup_strings_ struct strings places = { 0 };
    (void)setenv("XDG_RUNTIME_DIR", "/r", 1);
    (void)setenv("HOME", "/h", 1);
    client_places(&client, &places);
    assert_int_equal(places.count, 3);
    assert_string_equal(places.items[0], "/r/mgpu/mgpud.sock");
    assert_string_equal(places.items[1], "/h/.local/state/mgpu/run/mgpud.sock");
    assert_string_equal(places.items[2], "/run/mgpu/mgpud.sock");
}

TEST(an_asked_socket_is_the_only_place)
{
    struct client client;
    struct strings places = { 0 };
    (void)setenv("MGPU_SOCKET", "/env", 1);
    client_init(&client, NULL, NULL);
    assert_string_equal(client.asked_path, "/env");
    client_init(&client, "/option", NULL);
    client_places(&client, &places);
    assert_int_equal(places.count, 1);
    assert_string_equal(places.items[0], "/option");
    strings_clear(&places);
    (void)unsetenv("MGPU_SOCKET");
}

/* Listens as a stranger, for which the test needs root. */
static void listen_as_stranger(struct server *server)
{
    pid_t child = fork();
    if (child == 0) {
        (void)chmod(server->directory, 0777);
        _exit(setuid(65533) != 0 || listen(server->fd, 8) != 0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(a_strangers_socket_gets_nothing)
{
    _cleanup_(server_close) struct server server;
    _cleanup_(client_clear) struct client client = { 0 };
    struct error err = { 0 };
    if (geteuid() != 0)
        skip();
    server_open(&server);
    listen_as_stranger(&server);
    client.asked_path = server.path;
    assert_int_equal(client_get(&client, "/", NULL, &err), -EPERM);
    assert_non_null(strstr(err.message, "belongs to uid 65533"));
}

TEST(a_connection_that_always_ends_is_given_up)
{
    _cleanup_(server_close) struct server server;
    struct error err = { 0 };
    struct error *const errs[] = { &err, NULL };
    server_open(&server);
    pid_t child = fork();
    if (child == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (child == 0)
        (void)close(server_accept(&server));
    for (size_t i = 0; i < 2; i++) {
        struct client client = { .asked_path = server.path };
        assert_int_equal(client_get(&client, "/", NULL, errs[i]), -EAGAIN);
        client_clear(&client);
    }
    assert_int_equal(err.code, -EAGAIN);
    assert_true(err.message[0] != 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(members_of_another_type_are_absent)
{
    _cleanup_json_ json_t *object = json_pack("{s:i, s:s, s:n, s:s}", "n", 4, "s", "x", "z", "e", "\033[1m");
    assert_null(field_text(object, "n"));
    assert_int_equal(field_integer(object, "s", -1), -1);
    assert_int_equal(field_integer(object, "n", -1), 4);
    assert_false(field_is_known(object, "z"));
    assert_null(field_text(NULL, "s"));
    _cleanup_free_ char *escaped = field_shown(object, "e");
    assert_string_equal(escaped, "\\x1b[1m");
}
