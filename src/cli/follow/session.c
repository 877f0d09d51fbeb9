/* SPDX-License-Identifier: MIT */
/*
 *      ┌───────────────── lost ──────────────────┐
 *      v                                         │
 * JOINING ──101──> JOINED ──END, or no more output──> ended
 *                    └──detach keys, SIGHUP, SIGTERM──> ended
 *
 * Output goes to `pending` and is written only when poll(2) reports that stdout is writable, so keys are
 * processed while a terminal is slow; meanwhile the socket is not read. A new connection begins where the old
 * one ended. For a terminal, output bytes are counted; for an exec, whose output is stored nowhere else,
 * frames are kept at both ends (session_stream.c).
 */
#include "cli/follow/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "cli/api/leaving_signals.h"
#include "cli/follow/input.h"
#include "cli/follow/session_private.h"
#include "cli/options/talk.h"

#define READ_SIZE   (64U << 10)
#define WRITE_PIECE 4096U // a pipe or terminal that is ready accepts this much at once
#define HEADER      "Connection: Upgrade\r\nUpgrade: mgpu-terminal"

bool session_is_on_terminal(void)
{
    /* In the background the terminal belongs to another process group. */
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void session_say_detached(const struct call *call, const char *job, bool is_queued)
{
    if (!call->is_quiet)
        talk_line("detached from job %s, which %s; mgpu attach %s reattaches, mgpu cancel %s ends it", job,
            is_queued ? "remains queued" : "continues", job, job);
}

void session_say(const char *text)
{
    (void)fprintf(stderr, "\r\n\033[0m%s\r\n", text);
}

void session_finish(struct session *session, enum session_result result)
{
    session->is_over = true;
    session->result = result;
}

/* --- out: frames --- */

void session_put_frame(struct session *session, enum terminal_frame type, const void *payload, size_t length)
{
    session_stream_put(&session->stream, type, payload, length);
}

static void send_output(struct session *session)
{
    if (session->http != NULL)
        session_stream_send(&session->stream, http_client_fd(session->http));
}

void session_put_size(struct session *session)
{
    unsigned rows, columns;
    uint8_t payload[4];
    if (!session->options->is_tty || !screen_size(&rows, &columns))
        return;
    terminal_put(payload, 2, rows);
    terminal_put(payload + 2, 2, columns);
    session_put_frame(session, TERMINAL_WINDOW, payload, sizeof(payload));
}

/* --- joining --- */

static char *make_path(const struct session *session)
{
    const struct session_options *options = session->options;
    unsigned rows = 0, columns = 0;
    if (options->exec != NULL && (session->has_joined || session->is_start_unknown))
        return xasprintf(API_PATH "/jobs/%s/exec?rank=%u&received=%" PRIu64, options->job, options->rank,
            session->stream.received);
    if (options->exec != NULL)
        return xasprintf(API_PATH "/jobs/%s/exec?rank=%u", options->job, options->rank);
    (void)screen_size(&rows, &columns);
    _cleanup_free_ char *position = xasprintf("&position=%" PRIu64, session->position);
    bool has_position = session->has_joined || options->is_from_start;
    return xasprintf(API_PATH "/jobs/%s/terminal?rank=%u&rows=%u&columns=%u%s%s", options->job, options->rank,
        rows, columns, options->is_read_only ? "&read_only=1" : "", has_position ? position : "");
}

static char *make_body(const struct session *session)
{
    if (session->options->exec == NULL)
        return NULL;
    _cleanup_json_ json_t *body = json_copy((json_t *)(uintptr_t)session->options->exec);
    if (session->stream.key != 0)
        (void)json_object_set_new(body, "key", json_integer((json_int_t)session->stream.key));
    return json_dumps(body, JSON_COMPACT);
}

static int join_once(struct session *session, struct error *err)
{
    const struct session_options *options = session->options;
    _cleanup_free_ char *path = make_path(session);
    _cleanup_free_ char *body = make_body(session);
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    const struct http_request request = {
        .method = options->exec != NULL ? "POST" : "GET",
        .path = path,
        .header = HEADER,
        .body = body,
        .body_length = body != NULL ? strlen(body) : 0,
    };
    session->taken = 0;
    session->input.length = 0;
    int r = client_upgrade(&session->call->client, &request, &http, &session->input, err);
    if (r < 0)
        return r;
    session->http = take_ptr(http);
    session->has_joined = true;
    session_stream_join(&session->stream);
    return 0;
}

/* If the job has ended meanwhile, its terminal has ended, which is not a failure. */
static int on_refused_return(struct session *session, struct error *err)
{
    if (session->options->exec != NULL)
        return error_set(err, -ECONNRESET,
            "the connection to the process in job %s was lost, and the process has ended meanwhile",
            session->options->job);
    session_finish(session, SESSION_ENDED);
    return 0;
}

/* Waits before the next attempt. -EINTR: a signal arrived, and there is no process to which it could be
 * passed on. */
static int pause_joining(struct session *session, int *delay_ms, struct error *err)
{
    struct pollfd signals = { .fd = session->signal_fd, .events = POLLIN };
    if (client_back_off_until(&signals, delay_ms) && session->has_joined)
        return error_set(err, -EINTR, "interrupted while mgpud was not reachable");
    return 0;
}

/* Survives a restart of mgpud. A process whose start was not confirmed is searched for first. */
static int join(struct session *session, struct error *err)
{
    int64_t first_ms = clock_boot_ms();
    int delay_ms = 0, r;
    for (;;) {
        bool is_return = session->has_joined, is_exec = session->options->exec != NULL;
        r = join_once(session, err);
        if (is_return && (r == -EALREADY || r == -ENOENT))
            return on_refused_return(session, err);
        if (r == -ENOENT && session->is_start_unknown) {
            session->is_start_unknown = false;
            continue;
        }
        if (r == -EINVAL && is_exec && !is_return && session->stream.key != 0) {
            session->stream.key = 0; // an mgpud that does not support keys
            continue;
        }
        bool is_loss = client_is_loss(r) || r == -EHOSTUNREACH;
        bool is_lost_start = is_exec && client_is_loss(r) && r != -EHOSTDOWN && r != -EAGAIN; // a refusal
        session->is_start_unknown |= is_lost_start && !is_return;
        bool is_patient = is_return || session->is_start_unknown;
        if (r == 0 || !is_loss || !is_patient || clock_boot_ms() - first_ms > CLIENT_PATIENT_MS)
            return r;
        r = pause_joining(session, &delay_ms, err);
        if (r < 0)
            return r;
    }
}

/* --- in: frames --- */

static void on_output(struct session *session, const uint8_t *payload, size_t length)
{
    session->position += length;
    foreign_append(&session->filters[0], &session->pending[0], payload, length);
}

static void on_errors(struct session *session, const uint8_t *payload, size_t length)
{
    foreign_append(&session->filters[1], &session->pending[1], payload, length);
}

static void on_position(struct session *session, const uint8_t *payload, size_t length)
{
    if (length == 8)
        session->position = terminal_get(payload, 8);
}

static void on_skipped(struct session *session, const uint8_t *payload, size_t length)
{
    if (length == 8)
        session->position += terminal_get(payload, 8);
}

static void on_read(struct session *session, const uint8_t *payload, size_t length)
{
    uint64_t read = length == 8 ? terminal_get(payload, 8) : session->keyed;
    session->unused = read <= session->keyed ? session->keyed - read : 0;
}

static void on_end(struct session *session, const uint8_t *payload, size_t length)
{
    if (length < 4)
        return;
    session->status = (int)(int32_t)terminal_get(payload, 4);
    session_finish(session, SESSION_ENDED);
    /* The message of a job that did not start is part of its output, and of the report of its end. */
    bool is_of_job = session->options->exec == NULL && session->status != (int)(int32_t)TERMINAL_REFUSED;
    if (length == 4 || is_of_job)
        return;
    _cleanup_free_ char *text = xstrndup((const char *)payload + 4, length - 4);
    raw_terminal_restore(&session->raw);
    talk_line("%s", text);
}

static const struct {
    uint8_t type;
    void (*on)(struct session *session, const uint8_t *payload, size_t length);
} frames[] = {
    { TERMINAL_OUTPUT, on_output },
    { TERMINAL_ERRORS, on_errors },
    { TERMINAL_POSITION, on_position },
    { TERMINAL_SKIPPED, on_skipped },
    { TERMINAL_READ, on_read },
    { TERMINAL_END, on_end },
};

static int take_frames(struct session *session, struct error *err)
{
    for (;;) {
        const uint8_t *at = session->input.bytes + session->taken;
        size_t there = session->input.length - session->taken, length;
        uint8_t type;
        if (there < TERMINAL_HEAD_SIZE)
            break;
        if (!terminal_read_head(at, &type, &length))
            return error_set(err, -EBADMSG, "received an invalid terminal frame");
        if (there < TERMINAL_HEAD_SIZE + length)
            break;
        bool is_taken = session_stream_take(&session->stream, type, at + TERMINAL_HEAD_SIZE, length);
        for (size_t i = 0; !is_taken && i < sizeof(frames) / sizeof(frames[0]); i++)
            if (frames[i].type == type)
                frames[i].on(session, at + TERMINAL_HEAD_SIZE, length);
        session->taken += TERMINAL_HEAD_SIZE + length;
    }
    size_t left = session->input.length - session->taken;
    if (left > 0)
        memmove(session->input.bytes, session->input.bytes + session->taken, left);
    session->input.length = left;
    session->taken = 0;
    return 0;
}

/* The connection ended without an END. */
static int on_lost(struct session *session, struct error *err)
{
    http_client_free(take_ptr(session->http));
    bool is_older = session->stream.is_greeted && !session->stream.is_kept; // its node keeps no frames
    if (session->options->exec != NULL && is_older)
        return error_set(
            err, -ECONNRESET, "the connection to the process in job %s was lost", session->options->job);
    int r = join(session, err);
    if (r == 0)
        r = take_frames(session, err);
    return r;
}

static int on_socket(struct session *session, struct error *err)
{
    uint8_t bytes[READ_SIZE];
    ssize_t n = recv(http_client_fd(session->http), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return on_lost(session, err);
    buffer_append(&session->input, bytes, (size_t)n);
    return take_frames(session, err);
}

/* --- signals --- */

static int open_signals(struct error *err)
{
    sigset_t set;
    leaving_signals(&set);
    leaving_signals_add(&set, SIGQUIT);
    (void)sigaddset(&set, SIGWINCH);
    (void)leaving_ignore_unread();
    return leaving_signals_open(&set, err);
}

static void on_signal(struct session *session)
{
    struct signalfd_siginfo info;
    if (read(session->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    uint8_t number = (uint8_t)info.ssi_signo;
    if (number == SIGWINCH) {
        session_put_size(session);
        return;
    }
    if (leaving_effect(session->options->leaver, false, number) == LEAVE_SIGNALS_PROCESS)
        session_put_frame(session, TERMINAL_SIGNAL, &number, 1);
    else
        session_detach(session); // which ends a process started by `exec`
}

/* --- the loop --- */

static void write_pending(struct session *session, int index)
{
    struct buffer *pending = &session->pending[index];
    size_t left = pending->length - session->written[index];
    bool is_terminal = index == 0 && session->terminal_fd >= 0;
    int fd = is_terminal ? session->terminal_fd : index == 0 ? STDOUT_FILENO : STDERR_FILENO;
    ssize_t n = write(
        fd, pending->bytes + session->written[index], is_terminal || left < WRITE_PIECE ? left : WRITE_PIECE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        /* The output no longer has a reader. */
        n = (ssize_t)left;
        if (index == 0 && !session->is_over)
            session_detach(session);
    }
    session->written[index] += (size_t)n;
    if (session->written[index] == pending->length)
        session->written[index] = pending->length = 0;
}

static void show_idleness(struct session *session, bool is_readable)
{
    _cleanup_free_ char *sentence = idle_news_advance(&session->news, is_readable);
    if (sentence == NULL || session->call->is_quiet)
        return;
    _cleanup_free_ char *line = xasprintf("[mgpu: %s]", sentence);
    session_say(line);
}

static int wait_ms(const struct session *session)
{
    int news_ms = stream_wait_ms(&session->news.stream);
    if (!detach_keys_are_waiting(&session->keys) || news_ms == 0)
        return news_ms;
    int64_t left = session->keys_ms - clock_boot_ms();
    return left < 0 ? 0 : (int)left;
}

enum source {
    SOURCE_SIGNALS,
    SOURCE_STDIN,
    SOURCE_STDOUT,
    SOURCE_STDERR,
    SOURCE_SOCKET,
    SOURCE_NEWS,
    SOURCES
};

static int turn(struct session *session, struct error *err)
{
    bool has_pending[2] = { session->pending[0].length > 0, session->pending[1].length > 0 };
    bool is_listening = !session->is_stdin_over && !session->options->is_input_shut &&
                        !session_stream_is_full(&session->stream) && !session->is_over;
    bool is_reading = !has_pending[0] && !has_pending[1] && session->http != NULL && !session->is_over;
    bool is_sending = session_stream_has_more(&session->stream) && session->http != NULL;
    struct pollfd fds[SOURCES] = {
        [SOURCE_SIGNALS] = { session->signal_fd, POLLIN, 0 },
        [SOURCE_STDIN] = { is_listening ? STDIN_FILENO : -1, POLLIN, 0 },
        [SOURCE_STDOUT] = { has_pending[0] ? STDOUT_FILENO : -1, POLLOUT, 0 },
        [SOURCE_STDERR] = { has_pending[1] ? STDERR_FILENO : -1, POLLOUT, 0 },
        [SOURCE_SOCKET] = { is_reading || is_sending ? http_client_fd(session->http) : -1,
            (short)((is_reading ? POLLIN : 0) | (is_sending ? POLLOUT : 0)), 0 },
        [SOURCE_NEWS] = { stream_fd(&session->news.stream), POLLIN, 0 },
    };
    int r = 0;
    if (poll(fds, SOURCES, wait_ms(session)) < 0 && errno != EINTR)
        return error_set_errno(err, -errno, "cannot wait");
    if (fds[SOURCE_SIGNALS].revents != 0)
        on_signal(session);
    if (fds[SOURCE_STDIN].revents != 0)
        session_on_stdin(session);
    for (int i = 0; i < 2; i++)
        if (fds[SOURCE_STDOUT + i].revents != 0)
            write_pending(session, i);
    session_expire_keys(session);
    show_idleness(session, fds[SOURCE_NEWS].revents != 0);
    send_output(session);
    if ((fds[SOURCE_SOCKET].revents & ~POLLOUT) != 0 && session->http != NULL && is_reading)
        r = on_socket(session, err);
    return r;
}

static void session_clear(struct session *session)
{
    raw_terminal_restore(&session->raw);
    idle_news_clear(&session->news);
    closep(&session->signal_fd);
    closep(&session->terminal_fd);
    http_client_free(session->http);
    buffer_clear(&session->input);
    session_stream_clear(&session->stream);
    buffer_clear(&session->pending[0]);
    buffer_clear(&session->pending[1]);
}

/* O_NONBLOCK on the inherited descriptor would also affect the shell, so the terminal is opened again. */
static int open_terminal(void)
{
    const char *name = isatty(STDOUT_FILENO) == 1 ? ttyname(STDOUT_FILENO) : NULL;
    return name == NULL ? -1 : open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* The other side of an exec waits for one of these frames. */
static void part(struct session *session)
{
    if (session->options->exec == NULL)
        return;
    if (session->result == SESSION_DETACHED)
        session_put_frame(session, TERMINAL_LEAVE, "", 0);
    session_stream_confirm(&session->stream);
    send_output(session);
}

int session_run(struct call *call, const struct session_options *options, int *ret_status,
    uint64_t *ret_position, struct error *err)
{
    int signal_fd = open_signals(err);
    if (signal_fd < 0)
        return signal_fd;
    _cleanup_(session_clear) struct session session = { .call = call,
        .options = options,
        .status = -1,
        .keys = options->keys,
        .signal_fd = signal_fd,
        .terminal_fd = open_terminal() };
    int r = session_stream_init(&session.stream, options->exec != NULL);
    if (r < 0)
        return error_set_errno(err, r, "cannot read random bytes");
    r = join(&session, err);
    if (r < 0)
        return r;
    if (options->exec == NULL) // only the owner may run a process in a job
        foreign_init(session.filters, call, options->job, options->is_tty);
    if (options->is_tty && !options->is_input_shut)
        raw_terminal_set(&session.raw);
    if (options->exec != NULL && options->is_input_shut)
        session_put_frame(&session, TERMINAL_INPUT_END, "", 0);
    if (options->shows_idleness)
        idle_news_start(&session.news, &call->client, options->job, call->times);
    r = take_frames(&session, err);
    /* Output received before the end is written, but not after detaching. */
    while (r == 0 && (!session.is_over || (session.result == SESSION_ENDED &&
                                              session.pending[0].length + session.pending[1].length > 0)))
        r = turn(&session, err);
    part(&session);
    if (session.result == SESSION_DETACHED && session.raw.is_set)
        (void)fputs("\r\n", stderr);
    input_leave_rest(session.keyed, session.unused);
    *ret_status = session.status;
    *ret_position = session.position;
    return r < 0 ? r : (int)session.result;
}
