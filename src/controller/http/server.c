/* SPDX-License-Identifier: MIT */
/* The server: listens, accepts connections, and delivers the core's answers. */
#include "controller/http/server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/allowance.h"
#include "base/clock.h"
#include "base/memory.h"
#include "controller/http/connection.h"
#include "controller/http/departures.h"
#include "controller/http/fair_queue.h"
#include "controller/http/http_private.h"
#include "controller/http/request.h"
#include "controller/turns.h"
#include "wire/limits.h"
#include "wire/listening.h"

#define RESERVED_FDS     64U // for the store, the agents and the rest of the program
#define RESERVED_PERCENT 25U // in addition, for log streams

static void on_heartbeat(int fd, short what, void *arg)
{
    struct serve *serve = arg;
    serve->hooks->beat(serve);
}

/* New connections come before other events for at most this much time, because their users are not known
 * yet. */
static const struct allowance_rate accept_time = { .percent = 10, .most_us = 10000, .debt_us = 10000 };

static void update_place(struct serve_listener *listener)
{
    const struct serve *serve = listener->serve;
    bool is_left = allowance_is_left(&serve->accepting, &accept_time, clock_boot_us());
    listener->place = turns_place(serve->controller->turns, is_left ? TURNS_USUAL : TURNS_REST);
    listening_set_priority(listener->listening, (int)listener->place);
}

static void on_accept(void *arg, int fd)
{
    struct serve_listener *listener = arg;
    struct serve *serve = listener->serve;
    int64_t began_us = turns_thread_us();
    connection_accept(serve, fd, listener->is_unix ? CONNECTION_UNIX : CONNECTION_LOOPBACK);
    int64_t used_us = turns_thread_us() - began_us + TURNS_AROUND_US;
    allowance_spend(&serve->accepting, &accept_time, clock_boot_us(), used_us);
    turns_spend(serve->controller->turns, listener->place, used_us);
    update_place(listener);
}

/* The number of connections that the process can hold in addition to its other descriptors. */
static size_t affordable_connections(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur == RLIM_INFINITY)
        return LIMIT_CONNECTIONS;
    size_t all = (size_t)files.rlim_cur;
    size_t kept = RESERVED_FDS + all / 100 * RESERVED_PERCENT;
    return all > kept ? all - kept : 1;
}

struct serve *serve_new(struct controller *controller, const struct serve_hooks *hooks)
{
    struct serve *serve = xcalloc(1, sizeof(*serve));
    const struct timeval beat = { .tv_sec = LIMIT_HEARTBEAT_S };
    serve->controller = controller;
    serve->hooks = hooks;
    serve->started_ms = clock_boot_ms();
    serve->users = users_new(affordable_connections());
    serve->departures = departures_new(controller->loop, connection_on_departure);
    serve->queue = fair_queue_new(controller->loop);
    serve->names = usernames_new();
    serve->heartbeat = event_new(controller->loop, -1, EV_PERSIST, on_heartbeat, serve);
    if (serve->heartbeat == NULL)
        abort();
    (void)event_add(serve->heartbeat, &beat);
    return serve;
}

void serve_close(struct serve *serve)
{
    if (serve == NULL)
        return;
    for (size_t i = 0; i < serve->n_listeners; i++)
        listening_free(serve->listeners[i].listening);
    serve->n_listeners = 0;
    serve->is_closing = true;
    while (serve->connections != NULL)
        connection_close(serve->connections);
}

void serve_free(struct serve *serve)
{
    if (serve == NULL)
        return;
    serve_close(serve);
    event_free(serve->heartbeat);
    fair_queue_free(serve->queue);
    departures_free(serve->departures);
    usernames_free(serve->names);
    users_free(serve->users);
    free(serve->why.text);
    free(serve->openapi);
    free(serve);
}

int serve_listen(struct serve *serve, int fd, bool is_unix, struct error *err)
{
    if (serve->n_listeners == SERVE_LISTENERS_MAX)
        return error_set(err, -E2BIG, "mgpud can listen on at most %u sockets", SERVE_LISTENERS_MAX);
    struct serve_listener *listener = &serve->listeners[serve->n_listeners];
    *listener = (struct serve_listener){ .serve = serve, .is_unix = is_unix, .place = TURNS_REST };
    listener->listening = listening_new(serve->controller->loop, fd, on_accept, listener);
    if (listener->listening == NULL)
        return error_set_errno(err, -errno, "cannot listen");
    serve->n_listeners++;
    return 0;
}

bool serve_has_tcp(const struct serve *serve)
{
    for (size_t i = 0; i < serve->n_listeners; i++)
        if (!serve->listeners[i].is_unix)
            return true;
    return false;
}

void serve_adopt(struct serve *serve, int fd)
{
    connection_accept(serve, fd, CONNECTION_REMOTE);
}

void serve_adopt_job(struct serve *serve, struct bufferevent *stream, const char *node,
    const struct message_job_client *client)
{
    connection_accept_job(serve, stream, node, client);
}

void serve_resume(struct serve *serve)
{
    if (serve != NULL)
        fair_queue_resume(serve->queue);
}

void serve_reply(struct serve *serve, void *request, const struct core_answer *answer)
{
    struct request *asked = request;
    void (*on_answer)(struct request *, const struct core_answer *) = asked->on_answer;
    if (on_answer == NULL)
        return;
    asked->on_answer = NULL;
    request_ref(asked);
    on_answer(asked, answer);
    request_unref(asked);
}

const char *serve_user_name(struct serve *serve, uint32_t uid)
{
    return serve != NULL ? usernames_known(serve->names, uid) : NULL;
}

void serve_fail_all(struct serve *serve, const struct error *err)
{
    struct error unknown = { 0 };
    (void)error_set(&unknown, -EIO, "the change may or may not have been stored: %s", err->message);
    (void)error_hint(
        &unknown, "retry in a moment; a submit with the same submit_key does not create a second job");
    struct connection *next = NULL;
    if (serve == NULL)
        return; // the store failed before there was an API
    for (struct connection *connection = serve->connections; connection != NULL; connection = next) {
        next = connection_next(connection);
        struct request *request = connection_request(connection);
        if (request == NULL || request->phase != REQUEST_OPEN)
            continue;
        request_refuse(request, &unknown);
        connection_flush(connection);
    }
}
