/* SPDX-License-Identifier: MIT */
/*
 * Streams are matched by a random id that is valid for one connection and a few seconds. The connection's
 * first frame is read here; the raw bytes that follow belong to the requester.
 */
#include "controller/nodes/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/memory.h"
#include "controller/controller.h"
#include "wire/frame.h"
#include "wire/listening.h"

#define STREAM_WAIT_SECONDS  10
#define STREAMS_ARRIVING_MAX 256U // connections that have not identified their stream

struct expected {
    struct streams *streams;
    uint64_t id;
    streams_ready_fn on_ready;
    void *arg;
    struct event *timer;
    struct expected *next;
};

struct arriving {
    struct streams *streams;
    struct bufferevent *stream;
    char *node; // NULL: the node of this machine
    struct arriving *next;
};

struct streams {
    struct controller *controller;
    struct listening *listening;
    struct expected *expected;
    struct arriving *arriving;
    size_t n_arriving;
    streams_client_fn on_client;
    void *client_arg;
};

struct streams *streams_new(struct controller *controller)
{
    struct streams *streams = xcalloc(1, sizeof(*streams));
    streams->controller = controller;
    return streams;
}

static void remove_arriving(struct arriving *arriving)
{
    struct arriving **at = &arriving->streams->arriving;
    while (*at != arriving)
        at = &(*at)->next;
    *at = arriving->next;
    arriving->streams->n_arriving--;
    free(arriving->node);
    free(arriving);
}

static struct expected *take_expected(struct streams *streams, uint64_t id)
{
    struct expected **at = &streams->expected;
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    struct expected *found = *at;
    if (found != NULL)
        *at = found->next;
    return found;
}

static void expected_free(struct expected *expected)
{
    event_free(expected->timer);
    free(expected);
}

void streams_free(struct streams *streams)
{
    if (streams == NULL)
        return;
    while (streams->arriving != NULL) {
        bufferevent_free(streams->arriving->stream);
        remove_arriving(streams->arriving);
    }
    while (streams->expected != NULL)
        expected_free(take_expected(streams, streams->expected->id));
    listening_free(streams->listening);
    free(streams);
}

/* The connection now belongs to another component, and may be idle for days. libevent clears a timeout only
 * while its event is pending; otherwise it reappears with the first byte that is read. */
static void release(struct arriving *arriving)
{
    bufferevent_set_timeouts(arriving->stream, NULL, NULL);
    (void)bufferevent_disable(arriving->stream, EV_READ);
    bufferevent_setcb(arriving->stream, NULL, NULL, NULL, NULL);
}

/* On mgpud's own machine, jobs use its socket. */
static void pass_client(struct arriving *arriving, const struct message_job_client *first)
{
    const struct streams *streams = arriving->streams;
    if (arriving->node == NULL || streams->on_client == NULL) {
        bufferevent_free(arriving->stream);
        return;
    }
    release(arriving);
    streams->on_client(streams->client_arg, arriving->stream, arriving->node, first);
}

/* If the waiter has left, or the id was never assigned, the stream is closed. */
static void hand_over(struct arriving *arriving, const struct message_stream *first)
{
    struct expected *expected = take_expected(arriving->streams, first->stream);
    if (expected == NULL) {
        bufferevent_free(arriving->stream);
        return;
    }
    release(arriving);
    expected->on_ready(expected->arg, arriving->stream, first);
    expected_free(expected);
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    struct arriving *arriving = arg;
    const struct record_type *type = NULL;
    void *message = NULL;
    struct error err = { 0 };
    int r = frame_take(stream, STREAM_FIRST_MAX, &type, &message, &err);
    if (r == 0)
        return;
    if (r > 0 && type->id != MESSAGE_STREAM && type->id != MESSAGE_JOB_CLIENT)
        r = error_set(&err, -EPROTO, "it begins with %s", type->name);
    if (r > 0 && type->id == MESSAGE_JOB_CLIENT) {
        pass_client(arriving, message);
    } else if (r > 0) {
        hand_over(arriving, message);
    } else {
        log_error("stream closed: %s", err.message);
        bufferevent_free(arriving->stream);
    }
    if (message != NULL)
        frame_free(type, message);
    remove_arriving(arriving);
}

static void on_event(struct bufferevent *stream, short events, void *arg)
{
    struct arriving *arriving = arg;
    bufferevent_free(arriving->stream);
    remove_arriving(arriving);
}

void streams_adopt(struct streams *streams, int fd, const char *node)
{
    if (streams->n_arriving >= STREAMS_ARRIVING_MAX) {
        (void)evutil_closesocket(fd);
        return;
    }
    struct arriving *arriving = xcalloc(1, sizeof(*arriving));
    *arriving = (struct arriving){
        .streams = streams, .node = node != NULL ? xstrdup(node) : NULL, .next = streams->arriving
    };
    arriving->stream = bufferevent_socket_new(streams->controller->loop, fd, BEV_OPT_CLOSE_ON_FREE);
    if (arriving->stream == NULL)
        abort();
    streams->arriving = arriving;
    streams->n_arriving++;
    bufferevent_setcb(arriving->stream, on_readable, NULL, on_event, arriving);
    struct timeval limit = { .tv_sec = STREAM_WAIT_SECONDS };
    bufferevent_set_timeouts(arriving->stream, &limit, NULL);
    (void)bufferevent_enable(arriving->stream, EV_READ | EV_WRITE);
}

static void on_accept(void *arg, int fd)
{
    streams_adopt(arg, fd, NULL);
}

void streams_set_clients(struct streams *streams, streams_client_fn on_client, void *arg)
{
    streams->on_client = on_client;
    streams->client_arg = arg;
}

void streams_listen(struct streams *streams, int fd)
{
    streams->listening = listening_new(streams->controller->loop, fd, on_accept, streams);
    if (streams->listening == NULL)
        abort(); // memory
}

static void on_timeout(evutil_socket_t fd, short events, void *arg)
{
    struct expected *expected =
        take_expected(((struct expected *)arg)->streams, ((struct expected *)arg)->id);
    expected->on_ready(expected->arg, NULL, NULL);
    expected_free(expected);
}

uint64_t streams_expect(struct streams *streams, streams_ready_fn on_ready, void *arg)
{
    struct expected *expected = xcalloc(1, sizeof(*expected));
    *expected =
        (struct expected){ .streams = streams, .on_ready = on_ready, .arg = arg, .next = streams->expected };
    while (getrandom(&expected->id, sizeof(expected->id), 0) != sizeof(expected->id))
        continue;
    expected->timer = evtimer_new(streams->controller->loop, on_timeout, expected);
    if (expected->timer == NULL)
        abort();
    (void)evtimer_add(expected->timer, &(struct timeval){ .tv_sec = STREAM_WAIT_SECONDS });
    streams->expected = expected;
    return expected->id;
}

void streams_forget(struct streams *streams, uint64_t id)
{
    struct expected *expected = take_expected(streams, id);
    if (expected != NULL)
        expected_free(expected);
}
