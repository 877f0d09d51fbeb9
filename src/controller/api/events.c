/* SPDX-License-Identifier: MIT */
/*
 * GET /events: server-sent events. Each client has a cursor, the seq of the last event it was sent.
 *
 *   REPLAYING ── the store has no more published events after the cursor ──> LIVE
 *
 * Replaying reads pages from the store. Events published meanwhile are not sent but are in the store already,
 * so a later page contains them: no gap. A page may run ahead of publication: an event published with a seq
 * at or below the cursor is not sent again: no duplicate. The clients of one user replay in turn, a page at a
 * time: pages are read between commits, and a user with many clients must not delay the commits of others by
 * more than one page. A live client that leaves LIMIT_EVENT_BUFFER_BYTES unread is disconnected; it resumes
 * with Last-Event-ID.
 */
#include "controller/api/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/api/routes.h"
#include "controller/http/request.h"
#include "wire/json_event.h"
#include "wire/json_text.h"
#include "wire/limits.h"

enum event_mode { EVENTS_REPLAYING, EVENTS_LIVE };

struct event_client {
    struct event_client *next, *previous;
    struct request *request;
    enum event_mode mode;
    bool is_fetching;
    uint64_t cursor;
};

static void release_client(struct request *request)
{
    struct event_client *client = request->work;
    struct serve *serve = request->serve;
    if (client->previous != NULL)
        client->previous->next = client->next;
    else
        serve->event_clients = client->next;
    if (client->next != NULL)
        client->next->previous = client->previous;
    users_give(serve->users, request->who.uid, SHARE_EVENTS, 1);
    free(client);
}

static char *format_event(struct serve *serve, const struct job_event *event, const struct job *job)
{
    json_t *object = json_event_write(event, job, serve->names);
    _cleanup_free_ char *text = json_text_format(object);
    json_decref(object);
    return xasprintf("id: %" PRIu64 "\nevent: %s\ndata: %s\n\n", event->seq,
        job_event_name((enum job_event_type)event->type), text);
}

static void send_text(struct event_client *client, const char *text)
{
    request_stream(client->request, text, strlen(text));
}

static void replay(struct request *request);

/* Finds the user's next waiting reader, first among those behind `after` in the list, so that all get their
 * turn. */
static void replay_next(struct serve *serve, uint32_t uid, const struct event_client *after)
{
    struct event_client *starts[] = { after != NULL ? after->next : NULL, serve->event_clients };
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        for (struct event_client *client = starts[i]; client != NULL; client = client->next)
            if (client->request->who.uid == uid) {
                replay(client->request);
                if (client->is_fetching)
                    return;
            }
}

static void on_page(void *arg, const struct job_event *events, size_t count)
{
    struct request *request = arg;
    struct event_client *client = NULL;
    users_give(request->serve->users, request->who.uid, SHARE_REPLAYS, 1);
    if (!request_is_over(request)) {
        client = request->work;
        client->is_fetching = false;
        for (size_t i = 0; i < count; i++) {
            const struct job *job = core_job(request->serve->controller->core, events[i].job);
            _cleanup_free_ char *text = format_event(request->serve, &events[i], job);
            send_text(client, text);
            client->cursor = events[i].seq;
        }
        if (count < LIMIT_EVENT_REPLAY && client->cursor >= request->serve->published)
            client->mode = EVENTS_LIVE;
    }
    replay_next(request->serve, request->who.uid, client);
    request_unref(request);
}

/* Reads the next page if the client has space for it, and no other reader of this user is reading one. */
static void replay(struct request *request)
{
    struct event_client *client = request->work;
    if (client->mode == EVENTS_LIVE || client->is_fetching ||
        request_room(request) < LIMIT_STREAM_BUFFER_BYTES / 2 ||
        users_take(request->serve->users, request->who.uid, SHARE_REPLAYS, 1, &(struct error){ 0 }) < 0)
        return;
    client->is_fetching = true;
    request_ref(request);
    store_fetch_events(
        request->serve->controller->store, client->cursor, 0, LIMIT_EVENT_REPLAY, on_page, request);
}

void events_publish(struct serve *serve, const struct job_event *event, const struct job *job)
{
    serve->published = event->seq;
    _cleanup_free_ char *text = NULL;
    struct event_client *next = NULL;
    for (struct event_client *client = serve->event_clients; client != NULL; client = next) {
        next = client->next;
        if (client->mode != EVENTS_LIVE || event->seq <= client->cursor)
            continue;
        if (connection_pending(client->request->connection) > LIMIT_EVENT_BUFFER_BYTES) {
            connection_close(client->request->connection);
            continue;
        }
        if (text == NULL)
            text = format_event(serve, event, job);
        send_text(client, text);
        client->cursor = event->seq;
    }
}

void events_beat(struct serve *serve)
{
    for (struct event_client *client = serve->event_clients; client != NULL; client = client->next)
        send_text(client, ":\n\n");
}

static int read_cursor(struct request *request, uint64_t *ret, bool *ret_is_given, struct error *err)
{
    const char *last = http_message_header(&request->message, "last-event-id");
    const char *after = query_get(&request->query, "after");
    const char *text = last != NULL ? last : after; // a browser that reconnects repeats the old query
    int64_t cursor = 0;
    *ret_is_given = text != NULL;
    if (text != NULL) {
        int r = parse_integer(text, last != NULL ? "Last-Event-ID" : "after", 0, INT64_MAX, &cursor, err);
        if (r < 0)
            return r;
    }
    *ret = (uint64_t)cursor;
    return 0;
}

/* A cursor beyond the last event belongs to another store: the client must start again. */
static void begin_replay(struct event_client *client)
{
    uint64_t last = core_last_event(client->request->serve->controller->core);
    if (client->cursor <= last) {
        replay(client->request);
        return;
    }
    _cleanup_free_ char *text =
        xasprintf("id: %" PRIu64 "\nevent: reset\ndata: {\"seq\":%" PRIu64 "}\n\n", last, last);
    send_text(client, text);
    client->cursor = last;
    client->mode = EVENTS_LIVE;
}

void handle_events(struct request *request)
{
    struct serve *serve = request->serve;
    struct error err = { 0 };
    uint64_t cursor;
    bool is_resumed;
    int r = read_cursor(request, &cursor, &is_resumed, &err);
    if (r == 0 && !request_is_head(request))
        r = users_take(serve->users, request->who.uid, SHARE_EVENTS, 1, &err);
    if (r < 0) {
        request_reply_problem(request, &err);
        return;
    }
    if (!request_start_stream(request, 200, "text/event-stream", STREAM_ENDLESS))
        return;
    struct event_client *client = xcalloc(1, sizeof(*client));
    *client = (struct event_client){
        .next = serve->event_clients,
        .request = request,
        .mode = is_resumed ? EVENTS_REPLAYING : EVENTS_LIVE,
        .cursor = is_resumed ? cursor : core_last_event(serve->controller->core),
    };
    if (client->next != NULL)
        client->next->previous = client;
    serve->event_clients = client;
    request->work = client;
    request->release = release_client;
    request->on_drained = replay;
    request->is_patient = true;
    send_text(client, "retry: 2000\n\n");
    begin_replay(client);
}
