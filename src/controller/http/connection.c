/* SPDX-License-Identifier: MIT */
/*
 * READING ── request complete ──> ANSWERING ── answer complete ──> FLUSHING ── sent ──> READING
 *    │                                                                └── not kept ──> LINGERING
 *    │                  └── taken over (101) ──> TAKEN ── the other side ends ──> FLUSHING
 *    └── refused: the answer follows the same way, not kept
 *
 *   READING    bytes go to the parser; a slow request ends after LIMIT_REQUEST_S, an idle one LIMIT_IDLE_S
 *   ANSWERING  a route has the request; further bytes stay in the input buffer. If that is full, reading
 *              stops until the answer has been sent; http/departures.c detects that the client leaves
 *   FLUSHING   the complete answer is in the output buffer
 *   TAKEN      no HTTP any more: the request passes bytes in both directions, without timeouts
 *   LINGERING  the sending side is shut down; received bytes are dropped for a moment, because closing
 *              with unread bytes could destroy the answer on its way to the client
 *
 * Nothing is freed inside a callback of the parser or a route: a connection is only closed in callbacks of
 * the event loop and in connection_close().
 */
#include "controller/http/connection.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "controller/http/departures.h"
#include "controller/http/parser.h"
#include "controller/http/precedence.h"
#include "controller/http/refusal.h"
#include "controller/http/request.h"
#include "wire/limits.h"
#include "wire/peer.h"

enum connection_state {
    CONNECTION_READING,
    CONNECTION_ANSWERING,
    CONNECTION_FLUSHING,
    CONNECTION_LINGERING,
    CONNECTION_TAKEN,
};

struct connection {
    struct serve *serve;
    struct connection *next, *previous;
    enum connection_state state;
    enum connection_kind kind;
    bool is_half_closed; // the client will send no more
    bool is_held;        // no data is read from it
    bool is_kept;        // keep the connection after the answer being flushed
    size_t lingered;     // bytes dropped
    size_t counted_body; // number of body bytes that were counted
    struct identity who;
    struct job_peer job;  // of CONNECTION_JOB
    uint32_t counted_uid; // the user they were counted for
    enum user_share counted_share;
    struct bufferevent *stream;
    enum turns_place place;
    struct event *deadline;
    struct parser *parser;
    struct request *request;
    struct token_memory token;
};

static void set_deadline(struct connection *connection, long seconds)
{
    const struct timeval after = { .tv_sec = seconds };
    (void)event_add(connection->deadline, &after);
}

static void give_body(struct connection *connection)
{
    users_give(connection->serve->users, connection->counted_uid, SHARE_BODIES, connection->counted_body);
    connection->counted_body = 0;
}

/* Limits the memory that many slow senders of large bodies can use. */
static int count_body(struct connection *connection, struct error *err)
{
    size_t more = parser_body_length(connection->parser) - connection->counted_body;
    int r = users_take(connection->serve->users, connection->counted_uid, SHARE_BODIES, more, err);
    if (r == 0)
        connection->counted_body += more;
    return r;
}

/* The share in which it is counted: when all other shares are used up, administrators can still connect. */
static int count_connection(struct serve *serve, enum connection_kind kind, uint32_t uid,
    enum user_share *ret_share, struct error *err)
{
    enum user_share share = uid == USER_UNKNOWN ? SHARE_UNKNOWN : SHARE_CONNECTIONS;
    int r = users_take(serve->users, uid, share, 1, err);
    if (r < 0 && uid != USER_UNKNOWN && kind != CONNECTION_JOB && serve->hooks->is_admin(serve, uid)) {
        share = SHARE_RESERVED;
        r = users_take(serve->users, uid, share, 1, err);
    }
    if (r == 0)
        *ret_share = share;
    return r;
}

int connection_count_as(struct connection *connection, uint32_t uid, struct error *err)
{
    struct serve *serve = connection->serve;
    enum user_share share = SHARE_CONNECTIONS;
    if (connection->counted_uid != USER_UNKNOWN)
        return 0;
    int r = count_connection(serve, connection->kind, uid, &share, err);
    if (r < 0)
        return r;
    r = users_take(serve->users, uid, SHARE_BODIES, connection->counted_body, err);
    if (r < 0) {
        users_give(serve->users, uid, share, 1);
        return r;
    }
    users_give(serve->users, USER_UNKNOWN, connection->counted_share, 1);
    users_give(serve->users, USER_UNKNOWN, SHARE_BODIES, connection->counted_body);
    connection->counted_uid = uid;
    connection->counted_share = share;
    return 0;
}

static void free_connection(struct connection *connection)
{
    struct serve *serve = connection->serve;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        serve->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    give_body(connection);
    users_give(serve->users, connection->counted_uid, connection->counted_share, 1);
    if (connection->is_held) // libevent may close the socket later
        departures_forget(serve->departures, bufferevent_getfd(connection->stream));
    event_free(connection->deadline);
    bufferevent_free(connection->stream);
    parser_free(connection->parser);
    serve->n_job_connections -= connection->kind == CONNECTION_JOB;
    free(connection->job.node);
    free(connection);
}

static void end_request(struct connection *connection)
{
    struct request *request = take_ptr(connection->request);
    if (request == NULL)
        return;
    request_end(request);
    request_unref(request);
    give_body(connection);
}

void connection_close(struct connection *connection)
{
    end_request(connection);
    free_connection(connection);
}

/* Resumes reading, or processes received data, in the next turn of the loop; never from within a handler. */
static void retrigger(struct connection *connection, short what)
{
    bufferevent_trigger(connection->stream, what, BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

static void start_request(struct connection *connection, const struct error *refusal)
{
    struct http_message message;
    parser_take(connection->parser, &message);
    struct request *request = request_new(connection->serve, connection, &message);
    request->who = connection->who;
    connection->request = request;
    connection->state = CONNECTION_ANSWERING;
    (void)event_del(connection->deadline);
    request_ref(request);
    if (refusal != NULL)
        request_refuse(request, refusal);
    else
        request_step(request, request->serve->hooks->dispatch);
    request_unref(request);
}

static bool has_input(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_input(connection->stream)) > 0;
}

/* The client has stopped sending, and all its data has been processed. */
static void end_reading(struct connection *connection)
{
    struct error err = { 0 };
    if (!parser_is_inside(connection->parser)) {
        connection_close(connection);
        return;
    }
    (void)error_set(&err, -EPROTO, "the request ends in the middle");
    start_request(connection, &err);
}

static void feed_parser(struct connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    while (connection->state == CONNECTION_READING && evbuffer_get_length(input) > 0) {
        size_t length = evbuffer_get_contiguous_space(input), taken = 0;
        const char *bytes = (const char *)evbuffer_pullup(input, (ev_ssize_t)length);
        bool was_inside = parser_is_inside(connection->parser);
        struct error err = { 0 };
        int progress = parser_feed(connection->parser, bytes, length, &taken, &err);
        (void)evbuffer_drain(input, taken);
        if (progress >= 0) {
            int r = count_body(connection, &err);
            progress = r < 0 ? r : progress;
        }
        if (progress < 0) {
            start_request(connection, &err);
            return;
        }
        if (progress == PARSER_COMPLETE)
            start_request(connection, NULL);
        else if (!was_inside && parser_is_inside(connection->parser))
            set_deadline(connection, LIMIT_REQUEST_S);
        if (progress == PARSER_CONTINUE && evbuffer_get_length(input) == 0)
            connection_write(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    }
    if (connection->state == CONNECTION_READING && connection->is_half_closed)
        end_reading(connection);
}

static void drop_input(struct connection *connection)
{
    struct evbuffer *input = bufferevent_get_input(connection->stream);
    connection->lingered += evbuffer_get_length(input);
    (void)evbuffer_drain(input, evbuffer_get_length(input));
    if (connection->lingered > LIMIT_LINGER_BYTES)
        connection_close(connection);
}

/* Limits how much is read ahead while an answer may last indefinitely: over TCP, the client's departure would
 * come after that data. */
static void keep_input(struct connection *connection)
{
    if (evbuffer_get_length(bufferevent_get_input(connection->stream)) < LIMIT_PIPELINE_BYTES)
        return;
    if (connection->state == CONNECTION_ANSWERING && connection->request->is_patient)
        connection_close(connection);
    else
        connection_hold_input(connection, true);
}

static struct precedence begin_callback(struct connection *connection)
{
    const struct request *request = connection->request;
    bool is_stream = request != NULL && request->phase == REQUEST_STREAMING;
    bool is_usual = connection->state < CONNECTION_LINGERING && !is_stream;
    return precedence_begin(
        connection->serve, connection->counted_uid, is_usual, connection->stream, &connection->place);
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    struct connection *connection = arg;
    struct precedence precedence = begin_callback(connection);
    if (connection->state == CONNECTION_READING)
        feed_parser(connection);
    else if (connection->state == CONNECTION_LINGERING)
        drop_input(connection);
    else if (connection->state == CONNECTION_TAKEN && connection->request->on_input != NULL)
        connection->request->on_input(connection->request);
    else
        keep_input(connection);
    precedence_end(&precedence);
}

static void linger(struct connection *connection)
{
    connection->state = CONNECTION_LINGERING;
    if (connection->is_half_closed || shutdown(bufferevent_getfd(connection->stream), SHUT_WR) < 0) {
        connection_close(connection);
        return;
    }
    set_deadline(connection, LIMIT_LINGER_S);
    retrigger(connection, EV_READ);
}

/* The complete answer has been passed on. */
static void turn_over(struct connection *connection)
{
    end_request(connection);
    connection_hold_input(connection, false);
    if (!connection->is_kept || (connection->is_half_closed && !has_input(connection))) {
        linger(connection);
        return;
    }
    connection->state = CONNECTION_READING;
    const struct timeval stall = { .tv_sec = LIMIT_WRITE_S };
    bufferevent_set_timeouts(connection->stream, NULL, &stall);
    set_deadline(connection, LIMIT_IDLE_S);
    if (has_input(connection))
        retrigger(connection, EV_READ);
}

static void continue_writing(struct connection *connection)
{
    if (connection->state == CONNECTION_FLUSHING && connection_pending(connection) == 0) {
        turn_over(connection);
        return;
    }
    struct request *request = connection->request;
    bool is_streaming = connection->state == CONNECTION_ANSWERING || connection->state == CONNECTION_TAKEN;
    if (!is_streaming || request == NULL || request->on_drained == NULL)
        return;
    request_ref(request);
    request->on_drained(request);
    request_unref(request);
}

static void on_writable(struct bufferevent *stream, void *arg)
{
    struct connection *connection = arg;
    struct precedence precedence = begin_callback(connection);
    continue_writing(connection);
    precedence_end(&precedence);
}

/* True if a client that sends no more may still wait for the answer to its request: `printf ... | nc -N`. */
static bool is_awaited(const struct connection *connection)
{
    return (connection->state == CONNECTION_ANSWERING && !connection->request->is_patient) ||
           connection->state == CONNECTION_FLUSHING;
}

static void on_half_close(struct connection *connection)
{
    connection->is_half_closed = true;
    if (connection->state == CONNECTION_READING && !has_input(connection))
        end_reading(connection);
    else if (connection->state != CONNECTION_READING && !is_awaited(connection))
        connection_close(connection);
}

void connection_on_departure(void *arg, bool is_gone)
{
    struct connection *connection = arg;
    if (is_gone || !is_awaited(connection))
        connection_close(connection);
}

static void on_condition(struct bufferevent *stream, short what, void *arg)
{
    struct connection *connection = arg;
    if ((what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_READING) != 0)
        on_half_close(connection);
    else
        connection_close(connection);
}

static void on_deadline(int fd, short what, void *arg)
{
    struct connection *connection = arg;
    if (connection->state != CONNECTION_READING || !parser_is_inside(connection->parser)) {
        connection_close(connection);
        return;
    }
    struct error err = { 0 };
    (void)error_set(&err, -ETIMEDOUT, "the request did not arrive within %d s", LIMIT_REQUEST_S);
    start_request(connection, &err);
}

static struct identity ask_kernel(int fd, enum connection_kind kind)
{
    struct peer peer = { 0 };
    if (kind != CONNECTION_REMOTE)
        peer = kind == CONNECTION_UNIX ? peer_of_unix(fd) : peer_of_loopback(fd);
    return (struct identity){
        .is_known = peer.is_known,
        .uid = peer.uid,
        .gid = peer.gid,
    };
}

/* Takes ownership of the stream. NULL if there are too many connections; the peer is informed. */
static struct connection *take_stream(
    struct serve *serve, struct bufferevent *stream, enum connection_kind kind, uint32_t uid)
{
    enum user_share share = SHARE_CONNECTIONS;
    struct error err = { 0 };
    if (count_connection(serve, kind, uid, &share, &err) < 0) {
        refusal_send(stream, &err);
        return NULL;
    }
    struct connection *connection = xcalloc(1, sizeof(*connection));
    *connection = (struct connection){
        .serve = serve,
        .next = serve->connections,
        .kind = kind,
        .counted_uid = uid,
        .counted_share = share,
        .stream = stream,
        .place = TURNS_REST,
        .deadline = event_new(serve->controller->loop, -1, 0, on_deadline, connection),
        .parser = parser_new(),
    };
    if (connection->deadline == NULL)
        abort();
    if (connection->next != NULL)
        connection->next->previous = connection;
    serve->connections = connection;
    const struct timeval stall = { .tv_sec = LIMIT_WRITE_S };
    bufferevent_setcb(stream, on_readable, on_writable, on_condition, connection);
    (void)bufferevent_set_max_single_write(stream, LIMIT_STREAM_BUFFER_BYTES);
    bufferevent_set_timeouts(stream, NULL, &stall);
    (void)bufferevent_enable(stream, EV_READ | EV_WRITE);
    set_deadline(connection, LIMIT_IDLE_S);
    struct precedence precedence = begin_callback(connection);
    precedence_end(&precedence);
    return connection;
}

void connection_accept(struct serve *serve, int fd, enum connection_kind kind)
{
    struct identity who = ask_kernel(fd, kind);
    struct bufferevent *stream = bufferevent_socket_new(serve->controller->loop, fd, BEV_OPT_CLOSE_ON_FREE);
    if (stream == NULL)
        abort();
    struct connection *connection = take_stream(serve, stream, kind, who.is_known ? who.uid : USER_UNKNOWN);
    if (connection == NULL)
        return;
    connection->who = who;
    if (kind == CONNECTION_LOOPBACK)
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
}

static size_t count_of_job(const struct serve *serve, uint64_t job)
{
    size_t count = 0;
    for (const struct connection *one = serve->connections; one != NULL; one = one->next)
        count += one->kind == CONNECTION_JOB && one->job.client.id.job == job;
    return count;
}

static int check_job(
    const struct serve *serve, const struct job *job, const char *node, uint64_t id, struct error *err)
{
    if (job == NULL)
        return error_set(err, -EPERM, "job %" PRIu64 " does not run on node %.64s any more", id, node);
    if (count_of_job(serve, id) >= LIMIT_JOB_CONNECTIONS)
        return error_set(err, -EMFILE, "job %" PRIu64 " has reached the limit of %d connections", id,
            LIMIT_JOB_CONNECTIONS);
    return 0;
}

/* The connection counts as one of the job's owner. */
void connection_accept_job(struct serve *serve, struct bufferevent *stream, const char *node,
    const struct message_job_client *client)
{
    struct error err = { 0 };
    const struct job *job = core_job_at(serve->controller->core, node, &client->id, client->token);
    if (check_job(serve, job, node, client->id.job, &err) < 0) {
        refusal_send(stream, &err);
        return;
    }
    struct connection *connection = take_stream(serve, stream, CONNECTION_JOB, job->uid);
    if (connection == NULL)
        return;
    connection->job = (struct job_peer){ .node = xstrdup(node), .client = *client };
    serve->n_job_connections++;
    if (has_input(connection))
        retrigger(connection, EV_READ);
}

const struct job_peer *connection_job(const struct connection *connection)
{
    return connection->kind == CONNECTION_JOB ? &connection->job : NULL;
}

bool connection_has_left(const struct connection *connection)
{
    struct pollfd peer = { .fd = bufferevent_getfd(connection->stream), .events = 0 };
    return poll(&peer, 1, 0) > 0 && (peer.revents & (POLLHUP | POLLERR)) != 0;
}

bool connection_is_unix(const struct connection *connection)
{
    return connection->kind == CONNECTION_UNIX;
}

bool connection_is_remote(const struct connection *connection)
{
    return connection->kind == CONNECTION_REMOTE;
}

const struct identity *connection_peer(const struct connection *connection)
{
    return &connection->who;
}

struct connection *connection_next(const struct connection *connection)
{
    return connection->next;
}

struct request *connection_request(const struct connection *connection)
{
    return connection->request;
}

void connection_write(struct connection *connection, const void *bytes, size_t length)
{
    if (bufferevent_write(connection->stream, bytes, length) < 0)
        abort(); // only if memory is exhausted
}

void connection_write_buffer(struct connection *connection, struct evbuffer *bytes)
{
    if (bufferevent_write_buffer(connection->stream, bytes) < 0)
        abort(); // only if memory is exhausted
}

size_t connection_pending(const struct connection *connection)
{
    return evbuffer_get_length(bufferevent_get_output(connection->stream));
}

void connection_watch_output(struct connection *connection, size_t low)
{
    bufferevent_setwatermark(connection->stream, EV_WRITE, low, 0);
}

void connection_disable_timeouts(struct connection *connection)
{
    /* The header of the answer is being sent: libevent clears a timeout only while its event is pending. */
    bufferevent_set_timeouts(connection->stream, NULL, NULL);
}

void connection_finish_answer(struct connection *connection, bool is_kept)
{
    /* The other protocol has ended: the rest is sent like any other answer. */
    const struct timeval stall = { .tv_sec = LIMIT_WRITE_S };
    if (connection->state == CONNECTION_TAKEN)
        bufferevent_set_timeouts(connection->stream, NULL, &stall);
    connection->state = CONNECTION_FLUSHING;
    connection->is_kept = is_kept;
    bufferevent_setwatermark(connection->stream, EV_WRITE, 0, 0);
    if (connection_pending(connection) == 0)
        retrigger(connection, EV_WRITE);
}

void connection_flush(struct connection *connection)
{
    struct evbuffer *output = bufferevent_get_output(connection->stream);
    (void)evbuffer_unfreeze(output, 1);
    while (evbuffer_get_length(output) > 0)
        if (evbuffer_write(output, bufferevent_getfd(connection->stream)) <= 0)
            break;
    (void)evbuffer_freeze(output, 1);
}

void connection_take_over(struct connection *connection)
{
    connection->state = CONNECTION_TAKEN;
    connection_disable_timeouts(connection);
}

struct evbuffer *connection_input(struct connection *connection)
{
    return bufferevent_get_input(connection->stream);
}

struct evbuffer *connection_output(struct connection *connection)
{
    return bufferevent_get_output(connection->stream);
}

void connection_hold_input(struct connection *connection, bool is_held)
{
    struct departures *departures = connection->serve->departures;
    if (connection->is_held == is_held)
        return;
    connection->is_held = is_held;
    if (is_held) {
        (void)bufferevent_disable(connection->stream, EV_READ);
        departures_watch(departures, bufferevent_getfd(connection->stream), connection);
    } else {
        departures_forget(departures, bufferevent_getfd(connection->stream));
        (void)bufferevent_enable(connection->stream, EV_READ);
    }
}

struct token_memory *connection_token(struct connection *connection)
{
    return &connection->token;
}
