/* SPDX-License-Identifier: MIT */
/*
 * Losing the connection to mgpud is a normal case: the last state stays on the screen, and each connection is
 * retried. Missed events are not replayed; when /events answers again, the list is requested again, after
 * which no event can be missed.
 */
#include "cli/top/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/asks.h"

#define RETRY_MS   1000
#define LOST_MS    250  // after a good connection
#define REFUSED_MS 5000 // until a refused stream of events is retried
#define SILENT_MS  5000 // if an answer takes longer than this, mgpud counts as unreachable
#define DEED_MS    5000

enum { FD_ASK, FD_EVENTS, FD_LOG }; // and those of further parts of the log

static void note_loss(struct top *top, const struct error *err)
{
    if (top->wire.lost_ms == 0)
        top->wire.lost_ms = clock_boot_ms();
    if (err->message[0] != '\0')
        (void)snprintf(top->wire.problem, sizeof(top->wire.problem), "%.255s", err->message);
}

static void note_answer(struct top *top)
{
    if (top->wire.lost_ms != 0)
        top->is_changed = true;
    top->wire.lost_ms = 0;
}

/* --- events --- */

static void take_event(void *target, const char *type, const char *text)
{
    top_asks_event(target, type, text);
}

static int take_event_bytes(void *target, const void *bytes, size_t length)
{
    struct top *top = target;
    if (!top->wire.is_listening) {
        top->wire.is_listening = true;
        note_answer(top);
        top_asks_begin(top);
    }
    return events_add(&top->wire.parser, bytes, length);
}

static void listen_again(struct top *top, int64_t delay_ms)
{
    stream_start(&top->wire.events, &top->call->client, API_PATH "/events");
    top->wire.events.retry_ms = clock_boot_ms() + delay_ms;
    top->wire.is_listening = false;
    events_reset(&top->wire.parser);
}

static void advance_events(struct top *top, bool is_readable)
{
    struct error err = { 0 };
    struct stream *stream = &top->wire.events;
    bool was_open = stream->state == STREAM_OPEN;
    int r = stream_advance(stream, is_readable, &err);
    stream->offset = 0; // there is no position in a stream of events
    if (r > 0 && stream_answer(stream)->status != 200 && stream_answer(stream)->status != 503) {
        /* The limit of subscriptions has been reached: changes are shown by the list, less often. */
        (void)client_problem(stream_answer(stream), &err);
        top_asks_begin(top);
        listen_again(top, REFUSED_MS);
    } else if (r != 0 || (was_open && stream->state != STREAM_OPEN)) {
        note_loss(top, &err);
        listen_again(top, r == 0 ? LOST_MS : RETRY_MS);
        stream->delay_ms = RETRY_MS;
    }
}

/* --- questions --- */

static void ask_next(struct top *top)
{
    int64_t now = clock_boot_ms();
    struct top_wire *wire = &top->wire;
    for (int i = 0; i < ASKS && wire->asked < 0; i++) {
        if (top_ask_due(top, (enum top_ask_id)i) > now)
            continue;
        int64_t every = i == ASK_GPUS ? top->prefs.refresh_ms : top_asks[i].every_ms;
        wire->due_ms[i] = every == 0 ? INT64_MAX : now + every;
        _cleanup_free_ char *path = top_ask_path(top, i);
        if (path == NULL)
            continue;
        wire->last_ms[i] = now;
        wire->asked = i;
        wire->asked_ms = now;
        stream_start(&wire->ask, &top->call->client, path);
    }
}

static void take_answer(struct top *top)
{
    const struct top_ask *row = &top_asks[top->wire.asked];
    const struct http_answer *answer = stream_answer(&top->wire.ask);
    top->wire.asked = -1;
    note_answer(top);
    top->is_changed = true;
    if (answer->status == 200) {
        _cleanup_json_ json_t *value =
            json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
        if (value != NULL)
            row->take(top, value);
    } else if (row->refuse != NULL) {
        row->refuse(top);
    }
}

/* The request is repeated when mgpud is reachable again. */
static void give_up_question(struct top *top, const struct error *err)
{
    note_loss(top, err);
    top->wire.due_ms[top->wire.asked] = 0;
    top->wire.asked = -1;
    top->wire.retry_ms = clock_boot_ms() + RETRY_MS;
    stream_clear(&top->wire.ask);
}

static void advance_question(struct top *top, bool is_readable)
{
    struct error err = { 0 };
    for (int i = 0; i < ASKS; i++) { // an answer that has arrived makes room for the next request
        if (top->wire.asked < 0 && clock_boot_ms() >= top->wire.retry_ms)
            ask_next(top);
        if (top->wire.asked < 0)
            return;
        int r = stream_advance(&top->wire.ask, is_readable, &err);
        is_readable = false;
        if (r < 0 || top->wire.ask.lost_ms > 0)
            give_up_question(top, &err);
        if (r <= 0)
            return;
        take_answer(top);
    }
}

/* --- all of them --- */

void top_wire_init(struct top *top)
{
    top->call->client.timeout_ms = INT64_MAX / 2;
    client_init(&top->wire.actions, top->call->socket, top->call->host);
    top->call->client.is_impatient = top->wire.actions.is_impatient =
        true;                          // the screen shows that mgpud is away
    top->wire.actions.is_quiet = true; // call->client has already reported a second mgpud
    top->wire.actions.answer_ms = DEED_MS;
    top->wire.asked = -1;
    top->wire.parser = (struct events){ .take = take_event, .target = top };
    for (int i = 0; i < ASKS; i++)
        top->wire.due_ms[i] = INT64_MAX;
    top->wire.events.sink = take_event_bytes;
    top->wire.events.sink_target = top;
    listen_again(top, 0);
}

void top_wire_clear(struct top *top)
{
    stream_clear(&top->wire.ask);
    stream_clear(&top->wire.events);
    events_clear(&top->wire.parser);
    client_clear(&top->wire.actions);
}

void top_wire_advance(struct top *top, const bool *is_ready)
{
    static const bool none[TOP_FDS] = { false };
    const bool *ready = is_ready == NULL ? none : is_ready;
    advance_events(top, ready[FD_EVENTS]);
    advance_question(top, ready[FD_ASK]);
    if (top->call->client.path != NULL)
        top_log_advance(top, ready + FD_LOG);
}

void top_wire_resume(struct top *top)
{
    top->wire.asked_ms = clock_boot_ms(); // an answer that is waiting here is not late
    top_asks_begin(top);
}

void top_wire_fds(const struct top *top, int fds[TOP_FDS])
{
    fds[FD_ASK] = stream_fd(&top->wire.ask);
    fds[FD_EVENTS] = stream_fd(&top->wire.events);
    for (size_t i = 0; i < TOP_LOG_PARTS; i++)
        fds[FD_LOG + i] = i < top->log.count ? stream_fd(&top->log.parts[i].stream) : -1;
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int top_wire_wait_ms(const struct top *top, int most)
{
    int64_t now = clock_boot_ms(), until = now + most;
    const struct top_wire *wire = &top->wire;
    if (wire->events.state == STREAM_AWAY)
        until = sooner(until, wire->events.retry_ms);
    until = sooner(until, top_log_due_ms(&top->log));
    if (wire->asked >= 0 && wire->ask.state == STREAM_AWAY)
        until = sooner(until, wire->ask.retry_ms);
    for (int i = 0; i < ASKS && wire->asked < 0; i++) {
        int64_t due = top_ask_due(top, (enum top_ask_id)i);
        until = sooner(until, due > wire->retry_ms ? due : wire->retry_ms);
    }
    return until <= now ? 0 : (int)(until - now);
}

int64_t top_wire_lost_s(const struct top *top)
{
    int64_t now = clock_boot_ms();
    if (top->view.is_frozen)
        return 0; // not subscribed
    if (top->wire.lost_ms > 0)
        return (now - top->wire.lost_ms) / 1000 + 1;
    bool is_silent = top->wire.asked >= 0 && now - top->wire.asked_ms > SILENT_MS;
    return is_silent ? (now - top->wire.asked_ms) / 1000 : 0;
}

/* True if no request is in progress and all wanted ones were answered once. */
static bool is_settled(const struct top *top)
{
    bool is_settled = top->wire.is_listening && top->wire.asked < 0;
    for (int i = 0; i < ASKS; i++)
        is_settled = is_settled && top_ask_due(top, (enum top_ask_id)i) > clock_boot_ms();
    return is_settled;
}

/* True if the followed log has output, or will have none. */
static bool is_log_settled(const struct top *top)
{
    return top->log.job == 0 || top_log_is_settled(&top->log);
}

static int wait_until_done(
    struct top *top, bool (*is_done)(const struct top *top), int timeout_ms, struct error *err)
{
    int64_t until = clock_boot_ms() + timeout_ms;
    top_wire_advance(top, NULL);
    while (!is_done(top) && clock_boot_ms() < until) {
        int fds[TOP_FDS];
        bool is_ready[TOP_FDS];
        struct pollfd polled[TOP_FDS];
        if (top->wire.lost_ms > 0)
            return error_set(err, -EHOSTDOWN, "%s", top->wire.problem);
        top_wire_fds(top, fds);
        for (int i = 0; i < TOP_FDS; i++)
            polled[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
        if (poll(polled, TOP_FDS, top_wire_wait_ms(top, 20)) < 0 && errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait");
        for (int i = 0; i < TOP_FDS; i++)
            is_ready[i] = fds[i] >= 0 && polled[i].revents != 0;
        top_wire_advance(top, is_ready);
    }
    return 0;
}

int top_wire_await_answers(struct top *top, int timeout_ms, struct error *err)
{
    int r = wait_until_done(top, is_settled, timeout_ms, err);
    bool is_there = top->model.is_complete && top->model.gpus != NULL;
    return r == 0 && !is_there
               ? error_set(err, -ETIME, "mgpud did not respond within %d s", timeout_ms / 1000)
               : r;
}

int top_wire_await_log(struct top *top, int timeout_ms, struct error *err)
{
    return wait_until_done(top, is_log_settled, timeout_ms, err);
}
