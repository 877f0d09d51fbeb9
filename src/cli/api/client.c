/* SPDX-License-Identifier: MIT */
/*
 * Requests contain the user's whole environment, which may include secrets, so the listener is checked before
 * anything is sent: the kernel reports which user began to listen on the socket (SO_PEERCRED, sock_diag).
 * Root, the caller and the service's own user are trusted. So is the owner of a directory that only this
 * owner can write to, because no other user can have created a socket there.
 */
#include "cli/api/client.h"

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/system_mgpud.h"
#include "cli/api/absence.h"
#include "cli/api/controllers.h"
#include "cli/api/leaving_signals.h"
#include "cli/api/loopback.h"
#include "cli/api/munge_auth.h"
#include "cli/api/remote.h"

#define SERVICE_USER   "mgpu"
#define ANSWER_WAIT_MS 30000
#define DELAY_FIRST_MS 20
#define DELAY_MAX_MS   1000
#define CONNECT_MS     30000
#define PRINT_WAIT_MS  300 // a shorter absence is not reported

static const char *extra_place; // searched after the usual ones; NULL: none
static int answer_usual_ms = ANSWER_WAIT_MS;
static const char *server_command; // named in hints; NULL: mgpud

void client_name_server(const char *command)
{
    server_command = command;
}

void client_answer_within(int ms)
{
    answer_usual_ms = ms;
}

void client_add_socket(const char *path)
{
    extra_place = path;
}

void client_init(struct client *client, const char *socket, const char *host)
{
    const char *from_environment = getenv("MGPU_SOCKET"), *elsewhere = getenv("MGPU_HOST");
    *client =
        (struct client){ .asked_path = socket, .host = host, .age_ms = -1, .timeout_ms = ABSENCE_RESTART_MS };
    /* The more specific setting wins: an option before the environment, a socket before a host. */
    if (socket == NULL && host == NULL && elsewhere != NULL && *elsewhere != '\0')
        client->host = elsewhere;
    if (client->host != NULL)
        return;
    if (socket == NULL && from_environment != NULL && *from_environment != '\0')
        client->asked_path = from_environment;
}

void client_clear(struct client *client)
{
    http_client_free(client->http);
    if (client->interrupt_fd > 0)
        (void)close(client->interrupt_fd);
    free(client->path);
    free(client->token);
    free(client->leader);
    munge_auth_free(client->munge);
    *client = (struct client){ 0 };
}

void client_places(const struct client *client, struct strings *places)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
    if (client->host != NULL || client->asked_path != NULL) {
        strings_add(places, client->host != NULL ? client->host : client->asked_path);
        return;
    }
    if (runtime != NULL && *runtime != '\0')
        strings_take(places, xasprintf("%s/mgpu/mgpud.sock", runtime));
    if (home != NULL && *home != '\0')
        strings_take(places, xasprintf("%s/.local/state/mgpu/run/mgpud.sock", home));
    strings_add(places, SYSTEM_SOCKET);
    if (access(SYSTEM_JOB_SOCKET, F_OK) == 0) // answers commands in jobs, and informs other commands
        strings_add(places, SYSTEM_JOB_SOCKET);
    if (extra_place != NULL)
        strings_add(places, extra_place);
}

static bool is_directory_of(const char *path, uid_t uid)
{
    _cleanup_free_ char *directory = xstrdup(path);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        return false;
    slash[slash == directory] = '\0';
    struct stat status;
    return stat(directory, &status) == 0 && status.st_uid == uid &&
           (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* True for "http://localhost:9123" in place of a path. */
static bool is_url(const char *path)
{
    return strncmp(path, LOOPBACK_SCHEME, strlen(LOOPBACK_SCHEME)) == 0;
}

bool client_trusts(uid_t uid)
{
    if (uid == 0 || uid == geteuid())
        return true;
    const struct passwd *service = getpwnam(SERVICE_USER);
    return service != NULL && service->pw_uid == uid;
}

static int check_listener(uid_t uid, const char *path, struct error *err)
{
    if (client_trusts(uid) || (!is_url(path) && is_directory_of(path, uid)))
        return 0;
    const struct passwd *owner = is_url(path) ? getpwuid(uid) : NULL;
    if (owner != NULL) {
        (void)error_set(err, -EPERM, "the server at %s was started by %s and serves only that user", path,
            owner->pw_name);
        return error_hint(err, "a server started by root serves all users: sudo %s",
            server_command != NULL ? server_command : "mgpud");
    }
    (void)error_set(err, -EPERM, "%s belongs to uid %u, which is neither you, root nor user " SERVICE_USER,
        path, (unsigned)uid);
    return error_hint(err, "use another socket with --socket, or ask that user for a safe directory");
}

static int connect_unix(const char *path, struct http_client **ret, struct ucred *ret_peer, struct error *err)
{
    socklen_t size = sizeof(*ret_peer);
    int r = http_client_connect(path, ret, err);
    if (r == 0 && getsockopt(http_client_fd(*ret), SOL_SOCKET, SO_PEERCRED, ret_peer, &size) < 0)
        return error_set_errno(err, -errno, "cannot determine who listens on %s", path);
    return r;
}

static int connect_ms(const struct client *client)
{
    return client->connect_ms > 0 ? client->connect_ms : CONNECT_MS;
}

static int connect_to(const struct client *client, const char *path, struct http_client **ret,
    struct ucred *ret_peer, struct error *err)
{
    *ret_peer = (struct ucred){ 0 };
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    int r = is_url(path) ? loopback_connect(path, connect_ms(client), &http, &ret_peer->uid, err)
                         : connect_unix(path, &http, ret_peer, err);
    if (r == 0)
        r = check_listener(ret_peer->uid, path, err);
    if (r < 0)
        return r;
    if (client->token != NULL)
        http_client_authorize(http, client->token);
    *ret = take_ptr(http);
    return 0;
}

/* No process is listening there; this differs from a listener that must not be used. */
static int explain_unreachable(const struct client *client, struct error *err)
{
    if (err == NULL)
        return -EHOSTDOWN;
    err->code = -EHOSTDOWN;
    if (server_command != NULL)
        return error_hint(err, "is the server running? Start it with: %s", server_command);
    if (client->asked_path != NULL && is_url(client->asked_path))
        return error_hint(err, "is mgpud listening there (mgpud --listen, mgpu_simple_master --port)?");
    if (client->asked_path != NULL)
        return error_hint(err, "is mgpud running there? The address was set by --socket or MGPU_SOCKET");
    return error_hint(err, "%s", client_absence_hint());
}

static void note_server(struct client *client, const struct ucred *server)
{
    client->server_uid = server->uid;
    client->server_pid = server->pid;
}

static int find(struct client *client, struct http_client **ret, struct error *err)
{
    _cleanup_strings_ struct strings places = { 0 };
    struct error first = { 0 };
    struct ucred server;
    client_places(client, &places);
    for (size_t i = 0; i < places.count; i++) {
        struct error here = { 0 };
        int r = connect_to(client, places.items[i], ret, &server, &here);
        note_server(client, &server);
        if (r == 0) {
            client->path = xstrdup(places.items[i]);
            client_report_other(client);
            return 0;
        }
        /* Keeps the most informative failure: of sockets that exist, else of the last place. */
        if (first.code == 0 || first.code == -ENOENT)
            first = here;
    }
    if (err != NULL)
        *err = first;
    client->is_short = first.code == -EMFILE || first.code == -ENFILE;
    bool is_explained = first.code == -EPERM || first.code == -EINVAL;
    return is_explained ? first.code : explain_unreachable(client, err);
}

void client_hurry(struct client *client)
{
    client->is_impatient = true;
    client->timeout_ms = 0;
}

static void print_wait(struct client *client, int64_t first_ms, const char *why, const char *next)
{
    if (client->has_printed_wait || clock_boot_ms() - first_ms < PRINT_WAIT_MS)
        return;
    client->has_printed_wait = true;
    (void)fprintf(stderr, "%s: %s; %s\n", program_invocation_short_name, why, next);
}

void client_report_absence(struct client *client, int64_t first_ms)
{
    print_wait(client, first_ms, "mgpud does not answer", "waiting for it to return");
}

static int64_t restart_wait_ms(const struct client *client)
{
    _cleanup_strings_ struct strings places = { 0 };
    int64_t longest_ms = 0;
    if (client->host != NULL || client->is_impatient || client->is_short)
        return 0;
    client_places(client, &places);
    for (size_t i = 0; i < places.count; i++) {
        int64_t wait_ms = is_url(places.items[i]) ? 0 : absence_wait_ms(places.items[i]);
        longest_ms = wait_ms > longest_ms ? wait_ms : longest_ms;
    }
    return longest_ms;
}

/* If there has never been an mgpud on this machine, the error is reported at once. */
static int find_patiently(struct client *client, struct http_client **ret, struct error *err)
{
    int64_t first_ms = clock_boot_ms(), until_ms = 0;
    struct pollfd interrupt = { .fd = client->interrupt_fd > 0 ? client->interrupt_fd : -1,
        .events = POLLIN };
    int delay_ms = 0, r;
    while ((r = find(client, ret, err)) == -EHOSTDOWN) {
        if (until_ms == 0)
            until_ms = first_ms + restart_wait_ms(client);
        if (clock_boot_ms() >= until_ms)
            return r;
        client_report_absence(client, first_ms);
        if (client_back_off_until(&interrupt, &delay_ms))
            return error_set(err, -EINTR, "interrupted while mgpud was not reachable");
    }
    return r;
}

static int connect_to_host(
    struct client *client, const char *host, struct http_client **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    bool is_munge = false;
    int r = munge_auth_is_wanted(&is_munge, err);
    if (r == 0 && !is_munge && client->token == NULL)
        r = remote_token(&client->token, err);
    if (r == 0)
        r = remote_connect(host, connect_ms(client), &http, err);
    if (r == 0 && is_munge)
        r = munge_auth_begin(&client->munge, http, err);
    if (r < 0)
        return r;
    if (!is_munge)
        http_client_authorize(http, client->token);
    *ret = take_ptr(http);
    if (client->path == NULL)
        client->path = xstrdup(host);
    return 0;
}

static int connect_to_leader(struct client *client, struct http_client **ret)
{
    struct ucred unused;
    return is_url(client->leader) ? connect_to(client, client->leader, ret, &unused, NULL)
                                  : connect_to_host(client, client->leader, ret, NULL);
}

int client_connect(struct client *client, struct http_client **ret, struct error *err)
{
    if (client->leader != NULL && connect_to_leader(client, ret) == 0)
        return 0;
    free(take_ptr(client->leader)); // another controller may lead now: the standby knows which
    if (client->host != NULL) {
        _cleanup_free_ char *hosts = controllers_complete(client->host);
        return connect_to_host(client, hosts, ret, err);
    }
    if (client->path == NULL)
        return find_patiently(client, ret, err);
    struct ucred server;
    int r = connect_to(client, client->path, ret, &server, err);
    note_server(client, &server);
    return r == 0 || r == -EPERM || r == -EINVAL ? r : explain_unreachable(client, err);
}

int client_export(const struct client *client)
{
    const char *wanted = client->host != NULL ? "MGPU_HOST" : "MGPU_SOCKET";
    const char *other = client->host != NULL ? "MGPU_SOCKET" : "MGPU_HOST";
    if (client->path == NULL)
        return 0; // no mgpud has been searched for yet, so other processes find the same one
    return setenv(wanted, client->path, 1) < 0 || unsetenv(other) < 0 ? -errno : 0;
}

bool client_is_loss(int code)
{
    return code == -EHOSTDOWN || code == -ECONNRESET || code == -EPIPE || code == -EAGAIN;
}

bool client_is_away(const struct error *err)
{
    return client_is_loss(err->code);
}

/* Values of the API's `code` with their own exit status. */
static int problem_error(const char *code, unsigned status)
{
    static const struct {
        const char *code;
        int error;
    } rows[] = {
        { "unsatisfiable", -EBADSLT },
        { "not_found", -ENOENT },
        { "not_allowed", -EPERM },
        { "unauthenticated", -EPERM },
        { "already_done", -EALREADY },
        { "not_running", -EALREADY },
        { "no_terminal", -ENOTTY },
        { "step_too_large", -EOVERFLOW },
        { "key_conflict", -EEXIST },
        { "timeout", -ETIME },
        { "too_large", -E2BIG },
        { "queue_full", -EDQUOT },
        { "store_full", -ENOSPC },
        { "store_damaged", -EUCLEAN },
        { "node_away", -EHOSTUNREACH },
    };
    for (size_t i = 0; code != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(code, rows[i].code) == 0)
            return rows[i].error;
    static const struct {
        unsigned status;
        int error;
    } others[] = { { 403, -EPERM }, { 404, -ENOENT }, { 409, -EALREADY }, { 503, -EAGAIN } };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (status == others[i].status)
            return others[i].error;
    return status >= 500 ? -EIO : -EINVAL;
}

int client_problem(const struct http_answer *answer, struct error *err)
{
    _cleanup_json_ json_t *problem =
        json_loadb((const char *)answer->body.bytes, answer->body.length, JSON_REJECT_DUPLICATES, NULL);
    const char *detail = field_text(problem, "detail"), *hint = field_text(problem, "hint");
    int code = problem_error(field_text(problem, "code"), answer->status);
    if (detail != NULL && detail[0] != '\0')
        (void)error_set(err, code, "%s", detail);
    else
        (void)error_set(err, code, "mgpud returned status %u", answer->status);
    if (hint != NULL)
        (void)error_hint(err, "%s", hint);
    return code;
}

bool client_refer(struct client *client, const struct http_answer *answer)
{
    if (answer->status != 503)
        return false;
    _cleanup_json_ json_t *problem =
        json_loadb((const char *)answer->body.bytes, answer->body.length, JSON_REJECT_DUPLICATES, NULL);
    const char *leader = field_text(problem, "leader");
    bool is_pinned = leader != NULL && remote_check("leader", leader, NULL) == 0;
    bool is_new = leader != NULL && (is_pinned || is_url(leader)) && !text_equal(leader, client->leader);
    if (!is_new)
        return false;
    free(client->leader);
    client->leader = xstrdup(leader);
    return true;
}

/* Notes the information of an answer that is not in its body. */
static void note_controllers(struct client *client, const struct http_answer *answer)
{
    if (answer->age_ms >= 0)
        client->age_ms = answer->age_ms;
    if (client->host != NULL && answer->controllers[0] != '\0')
        controllers_keep(client->host, answer->controllers);
}

static int64_t named_job(const struct http_answer *answer)
{
    _cleanup_json_ json_t *problem =
        json_loadb((const char *)answer->body.bytes, answer->body.length, JSON_REJECT_DUPLICATES, NULL);
    return field_integer(problem, "job", 0);
}

static int read_answer(
    struct client *client, const struct http_answer *answer, json_t **ret, struct error *err)
{
    if (answer->status < 200 || answer->status > 299) {
        int r = client_problem(answer, err);
        client->conflict_job = r == -EEXIST ? named_job(answer) : 0;
        return r == -ENOENT ? client_hint_other(client, err) : r;
    }
    if (ret == NULL)
        return 0;
    json_error_t where = { 0 };
    json_t *object = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, &where);
    if (object == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud is not JSON: %s", where.text);
    *ret = object;
    return 0;
}

static int call_once(
    struct client *client, const struct http_request *request, json_t **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = take_ptr(client->http);
    int r = http == NULL ? client_connect(client, &http, err) : 0;
    if (r < 0)
        return r;
    int wait_ms = client->answer_ms != 0 ? client->answer_ms : answer_usual_ms;
    if (client->interrupt_fd > 0)
        http_client_interrupt_by(http, client->interrupt_fd);
    r = http_client_request(http, request, wait_ms, err);
    if (r < 0)
        return r;
    note_controllers(client, http_client_answer(http));
    r = read_answer(client, http_client_answer(http), ret, err);
    if (client_refer(client, http_client_answer(http)))
        return -ESTALE;
    if (http_client_is_reusable(http))
        client->http = take_ptr(http);
    return r;
}

int client_hold_interrupts(struct client *client, struct error *err)
{
    sigset_t set;
    leaving_signals(&set);
    int fd = leaving_signals_open(&set, err);
    if (fd < 0)
        return fd;
    client->interrupt_fd = fd;
    return 0;
}

static bool is_interrupted(const struct client *client)
{
    struct pollfd signals = { .fd = client->interrupt_fd, .events = POLLIN };
    return client->interrupt_fd > 0 && poll(&signals, 1, 0) > 0;
}

bool client_back_off_until(struct pollfd *source, int *delay_ms)
{
    *delay_ms = *delay_ms == 0 ? DELAY_FIRST_MS : *delay_ms * 2;
    if (*delay_ms > DELAY_MAX_MS)
        *delay_ms = DELAY_MAX_MS;
    return poll(source, source != NULL, *delay_ms) > 0;
}

void client_back_off(int *delay_ms)
{
    (void)client_back_off_until(NULL, delay_ms);
}

int client_call(struct client *client, const char *method, const char *path, const json_t *body, json_t **ret,
    struct error *err)
{
    _cleanup_free_ char *text = body == NULL ? NULL : json_dumps(body, JSON_COMPACT);
    struct http_request request = {
        .method = method,
        .path = path,
        .header = client->header,
        .body = text,
        .body_length = text == NULL ? 0 : strlen(text),
    };
    int64_t first_ms = clock_boot_ms();
    int delay_ms = 0;
    bool was_open = client->http != NULL, was_referred = false;
    for (;;) {
        int r = call_once(client, &request, ret, err);
        if (r == -ESTALE && !was_referred) {
            was_referred = true;
            continue;
        }
        r = r == -ESTALE ? -EAGAIN : r;
        if (r == 0 || !client_is_loss(r))
            return r;
        if (is_interrupted(client))
            return error_set(err, -EINTR, "interrupted before mgpud responded");
        bool is_stale = was_open && r != -EAGAIN; // an idle connection had been closed meanwhile
        was_open = false;
        if (is_stale)
            continue;
        if (client->path == NULL || clock_boot_ms() - first_ms >= client->timeout_ms)
            return r == -EHOSTDOWN ? r
                                   : error_recode(err, -EAGAIN); // it is unknown whether it was carried out
        if (r == -EAGAIN && err != NULL) // the server answered that it cannot carry this out now
            print_wait(client, first_ms, err->message, "trying again");
        else
            client_report_absence(client, first_ms);
        client_back_off(&delay_ms);
    }
}

int client_get(struct client *client, const char *path, json_t **ret, struct error *err)
{
    return client_call(client, "GET", path, NULL, ret, err);
}

/* -ESTALE: the answer came from a standby, and the next connection goes to the leader that it names. */
static int upgrade_once(struct client *client, const struct http_request *request, struct http_client **ret,
    struct buffer *first, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    first->length = 0;
    int r = client_connect(client, &http, err);
    if (r == 0)
        r = http_client_upgrade(http, request, first, err);
    if (r < 0)
        return r;
    if (r == 0) {
        r = client_problem(http_client_answer(http), err);
        return client_refer(client, http_client_answer(http)) ? -ESTALE : r;
    }
    *ret = take_ptr(http);
    return 0;
}

int client_upgrade(struct client *client, const struct http_request *request, struct http_client **ret,
    struct buffer *first, struct error *err)
{
    int r = upgrade_once(client, request, ret, first, err);
    if (r == -ESTALE)
        r = upgrade_once(client, request, ret, first, err);
    return r == -ESTALE ? -EAGAIN : r;
}
