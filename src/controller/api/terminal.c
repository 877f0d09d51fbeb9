/* SPDX-License-Identifier: MIT */
/*
 * GET /jobs/ID/terminal and similar requests: the node gets OPEN_TERMINAL, OPEN_STEP or OPEN_PORT and
 * connects back, and the client's connection is joined to that stream (http/relay.c). Its frames are not
 * interpreted here.
 *
 * A terminal belongs to its owner. An administrator may view it, without typing, if the site allows it; the
 * job shows its viewers to the owner. Processes and ports are only for the owner.
 */
#include "controller/api/terminal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/terminal.h"
#include "base/utc.h"
#include "controller/api/jobs.h"
#include "controller/api/routes.h"
#include "controller/core/attempt.h"
#include "controller/http/relay.h"
#include "controller/nodes/links.h"
#include "controller/nodes/streams.h"
#include "job/behind.h"
#include "wire/json_text.h"
#include "wire/limits.h"
#include "wire/requests.h"

#define PROTOCOL "mgpu-terminal"

enum visit_kind { VISIT_TERMINAL, VISIT_INPUT, VISIT_EXEC, VISIT_PORT };

static const struct {
    enum user_share share;
    const char *only_owner; // "only its owner may ..."
} kinds[] = {
    [VISIT_TERMINAL] = { SHARE_TERMINALS, "use its terminal" },
    [VISIT_INPUT] = { SHARE_INPUTS, "send its standard input" },
    [VISIT_EXEC] = { SHARE_TERMINALS, "run something in it" },
    [VISIT_PORT] = { SHARE_PORTS, "connect to its ports" },
};

struct terminal_client {
    struct request *request;
    struct terminal_client *next, **where; // in the list of the API
    bool is_counted;
    enum visit_kind kind;
    bool is_local; // connected through the unix socket
    bool is_read_only;
    struct terminal_size size;
    uint64_t position;
    uint64_t rank;  // for a job on several nodes: the rank
    bool is_return; // of an exec: the client has lost its connection; `position` counts frames
    uint32_t link;  // link of the node, for messages after the first
    struct message_rejoin_step farewell; // of an exec
    struct exec_request asked;           // of an exec
    uint64_t port;                       // for a port; 0: the unix socket `path`
    const char *path;                    // borrowed from the query
    uint64_t expected;                   // id of the stream that has not arrived yet, or 0
    int64_t since_wall_ms;               // 0: not joined yet
};

/* On a unix socket, the kernel reports that the process has ended. On other connections the client may
 * return, and if mgpud itself exits, it will. */
static void send_farewell(const struct request *request)
{
    const struct terminal_client *client = request->work;
    const struct serve *serve = request->serve;
    bool is_final = client->kind == VISIT_EXEC && client->is_local && client->since_wall_ms != 0 &&
                    client->asked.key != 0 && !serve->is_closing;
    if (is_final)
        links_send(serve->controller->links, client->link, &message_rejoin_step_record, &client->farewell);
}

static void release(struct request *request)
{
    struct terminal_client *client = request->work;
    struct serve *serve = request->serve;
    send_farewell(request);
    relay_free(take_ptr(request->work_relay));
    if (client->expected != 0)
        streams_forget(serve->controller->streams, client->expected);
    if (client->is_counted)
        users_give(serve->users, request->who.uid, kinds[client->kind].share, 1);
    *client->where = client->next;
    if (client->next != NULL)
        client->next->where = client->where;
    record_clear(&exec_request_record, &client->asked);
    free(client);
}

static struct terminal_client *make_client(struct request *request, enum visit_kind kind)
{
    struct serve *serve = request->serve;
    struct terminal_client *client = xcalloc(1, sizeof(*client));
    *client = (struct terminal_client){
        .request = request, .kind = kind, .next = serve->terminals, .where = &serve->terminals
    };
    client->is_local = connection_is_unix(request->connection);
    if (client->next != NULL)
        client->next->where = &client->next;
    serve->terminals = client;
    request->work = client;
    request->release = release;
    return client;
}

json_t *terminals_write_viewers(const struct serve *serve, uint64_t job)
{
    json_t *viewers = json_array();
    for (const struct terminal_client *client = serve->terminals; client != NULL; client = client->next) {
        char since[32];
        if (client->request->job != job || client->kind != VISIT_TERMINAL || client->since_wall_ms == 0)
            continue;
        utc_format(client->since_wall_ms, since, sizeof(since));
        (void)json_array_append_new(
            viewers, json_pack("{s:o,s:b,s:s}", "user",
                         json_text_string(usernames_name(serve->names, client->request->who.uid)),
                         "read_only", client->is_read_only, "since", since));
    }
    return viewers;
}

/* --- the stream has come --- */

static const struct {
    int given, shown;
} stream_errors[] = {
    { EALREADY, -ENOTCONN },
    { ENOENT, -ENOENT },
    { ENOTTY, -ENOTTY },
    { EBUSY, -EUSERS },
    { ECONNREFUSED, -EADDRNOTAVAIL },
    { EPERM, -EPERM },
    { EACCES, -EPERM },
    { EINVAL, -EINVAL },
};

static void on_stream(void *arg, struct bufferevent *stream, const struct message_stream *first)
{
    struct request *request = arg;
    struct terminal_client *client = request->work;
    struct error err = { 0 };
    client->expected = 0;
    if (stream != NULL && first->error == 0) {
        client->since_wall_ms = clock_wall_ms();
        relay_begin(request, PROTOCOL, stream);
        return;
    }
    if (stream == NULL) {
        (void)error_set(
            &err, -EHOSTDOWN, "the node did not respond for job %" PRIu64 " in time", request->job);
        (void)error_hint(&err, "mgpu doctor shows whether its agent works");
    } else {
        int code = -EHOSTDOWN;
        for (size_t i = 0; i < sizeof(stream_errors) / sizeof(stream_errors[0]); i++)
            if (stream_errors[i].given == first->error)
                code = stream_errors[i].shown;
        (void)error_set(&err, code, "%s", first->text != NULL ? first->text : strerror(first->error));
        if (code == -ENOTTY)
            (void)error_hint(&err, "mgpu logs -f %" PRIu64 " follows its output", request->job);
        bufferevent_free(stream);
    }
    request_reply_problem(request, &err);
}

static void send_open_terminal(struct request *request, const struct job *job, uint32_t link)
{
    struct terminal_client *client = request->work;
    struct message_open_terminal message = { .id = core_attempt_id(job, (uint32_t)client->rank),
        .token = job->token,
        .stream = client->expected,
        .is_read_only = client->is_read_only,
        .rows = client->size.rows,
        .columns = client->size.columns,
        .position = client->position,
        .is_input = client->kind == VISIT_INPUT };
    links_send(request->serve->controller->links, link, &message_open_terminal_record, &message);
}

static void send_open_step(struct request *request, const struct job *job, uint32_t link)
{
    struct terminal_client *client = request->work;
    struct message_open_step message = { .id = core_attempt_id(job, (uint32_t)client->rank),
        .token = job->token,
        .stream = client->expected,
        .command = client->asked.command,
        .env = client->asked.env,
        .cwd = client->asked.cwd,
        .is_tty = client->asked.tty,
        .rows = client->asked.rows,
        .columns = client->asked.columns,
        .cpus = client->asked.cpus,
        .memory = client->asked.memory,
        .key = client->asked.key };
    client->link = link;
    client->farewell = (struct message_rejoin_step){
        .id = message.id, .token = message.token, .key = message.key, .is_farewell = true
    };
    if (client->is_return) {
        struct message_rejoin_step rejoin = client->farewell;
        rejoin.is_farewell = false;
        rejoin.stream = client->expected;
        rejoin.position = client->position;
        rejoin.rows = message.rows;
        rejoin.columns = message.columns;
        links_send(request->serve->controller->links, link, &message_rejoin_step_record, &rejoin);
        return;
    }
    links_send(request->serve->controller->links, link, &message_open_step_record, &message);
}

static void send_open_port(struct request *request, const struct job *job, uint32_t link)
{
    struct terminal_client *client = request->work;
    _cleanup_free_ char *path = xstrdup(client->path);
    struct message_open_port message = { .id = core_attempt_id(job, (uint32_t)client->rank),
        .token = job->token,
        .stream = client->expected,
        .port = (uint32_t)client->port,
        .path = path };
    links_send(request->serve->controller->links, link, &message_open_port_record, &message);
}

static void send_open(struct request *request, const struct job *job, uint32_t link)
{
    static void (*const send[])(struct request * request, const struct job *job, uint32_t link) = {
        [VISIT_TERMINAL] = send_open_terminal,
        [VISIT_INPUT] = send_open_terminal,
        [VISIT_EXEC] = send_open_step,
        [VISIT_PORT] = send_open_port,
    };
    struct terminal_client *client = request->work;
    client->expected = streams_expect(request->serve->controller->streams, on_stream, request);
    send[client->kind](request, job, link);
}

/* --- permissions and state --- */

static int check_state(const struct job *job, struct error *err)
{
    if (job->state == JOB_DONE)
        return error_set(err, -EALREADY, "job %" PRIu64 " has already ended", job->id);
    if ((job->state == JOB_RUNNING || job->state == JOB_STOPPING) && job->started_ms != 0)
        return 0;
    (void)error_set(err, -ENOTCONN, "job %" PRIu64 " is %s, not running yet", job->id,
        job_state_name(job_shown_state(job)));
    return error_hint(err,
        "mgpu logs -f %" PRIu64 " waits for its output; mgpu why %" PRIu64 " shows why it waits", job->id,
        job->id);
}

static int check_rights(struct request *request, const struct job *job, struct error *err)
{
    struct terminal_client *client = request->work;
    const struct controller *controller = request->serve->controller;
    const char *owner = jobs_owner(request->serve, job);
    bool is_own = core_owns(&request->who, job);
    if (is_own && core_may(&request->who, ACTION_CONTROL, job))
        return 0;
    if (is_own && client->kind == VISIT_TERMINAL && core_may(&request->who, ACTION_READ, job)) {
        client->is_read_only = true;
        return 0;
    }
    if (core_token_lacks(&request->who, ACTION_CONTROL, job, err))
        return err->code;
    if (client->kind != VISIT_TERMINAL || !core_may(&request->who, ACTION_READ, job))
        return error_set(err, -EPERM, "job %" PRIu64 " belongs to %s: only its owner may %s", job->id, owner,
            kinds[client->kind].only_owner);
    if (!controller->options.may_watch_terminals) {
        (void)error_set(err, -EPERM,
            "job %" PRIu64 " belongs to %s, and administrators may not view terminals here", job->id, owner);
        return error_hint(err, "enable it with watch-terminals: true");
    }
    client->is_read_only = true;
    return 0;
}

/* The node on which it runs; NULL with a sentence if the node is unreachable. */
static const struct core_node *find_node(
    const struct request *request, const struct job *job, struct error *err)
{
    const struct core *core = request->serve->controller->core;
    const struct terminal_client *client = request->work;
    const char *name = job_node_name(job, client->rank);
    const struct core_node *node = name != NULL ? core_node_named(core, name) : NULL;
    if (node != NULL && node->is_up)
        return node;
    if (name == NULL)
        (void)error_set(err, -ENOENT, "job %" PRIu64 " has %zu node%s: no such rank: %" PRIu64, job->id,
            job_node_count(job), job_node_count(job) == 1 ? "" : "s", client->rank);
    else
        (void)error_set(
            err, -EHOSTDOWN, "node %s, on which job %" PRIu64 " runs, is not connected", name, job->id);
    return NULL;
}

static void open_for(struct request *request, const struct job *job)
{
    struct terminal_client *client = request->work;
    struct error err = { 0 };
    int r = check_rights(request, job, &err);
    if (r == 0 && !client->is_return) // the message about the end of its process may not have arrived yet
        r = check_state(job, &err);
    const struct core_node *node = r == 0 ? find_node(request, job, &err) : NULL;
    if (node == NULL ||
        users_take(request->serve->users, request->who.uid, kinds[client->kind].share, 1, &err) < 0) {
        request_reply_problem(request, &err);
        return;
    }
    client->is_counted = true;
    send_open(request, job, node->link);
}

/* --- what was asked --- */

static int check_upgrade(const struct request *request, struct error *err)
{
    const char *upgrade = http_message_header(&request->message, "upgrade");
    if (upgrade != NULL && strcasecmp(upgrade, PROTOCOL) == 0 && request->message.minor >= 1)
        return 0;
    (void)error_set(err, -EINVAL, "this request must upgrade its connection");
    return error_hint(err, "send Connection: Upgrade and Upgrade: " PROTOCOL);
}

static int read_number(
    const struct request *request, const char *name, uint64_t most, uint64_t *ret, struct error *err)
{
    int64_t value;
    const char *text = query_get(&request->query, name);
    if (text == NULL)
        return 0;
    int r = parse_integer(text, name, 0, most > INT64_MAX ? INT64_MAX : (int64_t)most, &value, err);
    if (r == 0)
        *ret = (uint64_t)value;
    return r;
}

void handle_terminal(struct request *request)
{
    struct terminal_client *client = make_client(request, VISIT_TERMINAL);
    struct error err = { 0 };
    uint64_t rows = 0, columns = 0;
    client->position = TERMINAL_LAST_SCREEN;
    int r = check_upgrade(request, &err);
    if (r == 0)
        r = query_get_flag(&request->query, "read_only", &client->is_read_only, &err);
    if (r == 0)
        r = read_number(request, "rank", JOB_NODES_MAX - 1, &client->rank, &err);
    if (r == 0)
        r = read_number(request, "rows", SPEC_TTY_MAX, &rows, &err);
    if (r == 0)
        r = read_number(request, "columns", SPEC_TTY_MAX, &columns, &err);
    if (r == 0)
        r = read_number(request, "position", INT64_MAX, &client->position, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    client->size = (struct terminal_size){ (uint16_t)rows, (uint16_t)columns };
    jobs_find(request, request->job, open_for);
}

void handle_input(struct request *request)
{
    struct terminal_client *client = make_client(request, VISIT_INPUT);
    struct error err = { 0 };
    int r = check_upgrade(request, &err);
    if (r == 0)
        r = read_number(request, "rank", JOB_NODES_MAX - 1, &client->rank, &err);
    if (r < 0)
        request_reply_problem(request, &err);
    else
        jobs_find(request, request->job, open_for);
}

static int check_exec(const struct terminal_client *client, struct error *err)
{
    const struct exec_request *asked = &client->asked;
    if (client->is_return && asked->key == 0)
        return error_set(err, -EINVAL, "received= needs the key with which the process was started");
    if (client->is_return)
        return 0;
    if (asked->command.count == 0 || asked->command.items[0][0] == '\0')
        return error_set(err, -EINVAL, "no command was given");
    if (asked->cwd != NULL && asked->cwd[0] != '/')
        return error_set(err, -EINVAL, "cwd must be an absolute path");
    if (asked->rows > SPEC_TTY_MAX || asked->columns > SPEC_TTY_MAX)
        return error_set(err, -ERANGE, "the terminal has %u rows and %u columns; at most %u of each",
            asked->rows, asked->columns, SPEC_TTY_MAX);
    return 0;
}

void handle_exec(struct request *request)
{
    struct terminal_client *client = make_client(request, VISIT_EXEC);
    struct error err = { 0 };
    int r = check_upgrade(request, &err);
    if (r == 0)
        r = read_number(request, "rank", JOB_NODES_MAX - 1, &client->rank, &err);
    if (r == 0)
        r = request_read_body(request, &exec_request_record, &client->asked, &err);
    client->is_return = query_get(&request->query, "received") != NULL;
    if (r == 0)
        r = read_number(request, "received", INT64_MAX, &client->position, &err);
    if (r == 0)
        r = check_exec(client, &err);
    if (r < 0)
        request_reply_problem(request, &err);
    else
        jobs_find(request, request->job, open_for);
}

static int check_port(const struct terminal_client *client, struct error *err)
{
    size_t length = client->path != NULL ? strlen(client->path) : 0;
    if ((client->port == 0) == (client->path == NULL))
        return error_set(err, -EINVAL, "name a TCP port with port=, or a unix socket with path=");
    if (client->path != NULL && (client->path[0] != '/' || length > SOCKET_PATH_MAX))
        return error_set(
            err, -EINVAL, "the path of a socket is absolute and has at most %u bytes", SOCKET_PATH_MAX);
    return 0;
}

void handle_port(struct request *request)
{
    struct terminal_client *client = make_client(request, VISIT_PORT);
    struct error err = { 0 };
    int r = check_upgrade(request, &err);
    if (r == 0)
        r = read_number(request, "rank", JOB_NODES_MAX - 1, &client->rank, &err);
    if (r == 0)
        r = read_number(request, "port", UINT16_MAX, &client->port, &err);
    client->path = query_get(&request->query, "path");
    if (r == 0)
        r = check_port(client, &err);
    if (r < 0)
        request_reply_problem(request, &err);
    else
        jobs_find(request, request->job, open_for);
}
