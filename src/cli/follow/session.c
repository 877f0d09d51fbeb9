/* SPDX-License-Identifier: MIT */
/*
 *      ┌──────────── lost, a terminal ────────────┐
 *      v                                          │
 * JOINING ──101──> JOINED ──END, or no more output──> ended
 *                    └──detach keys, SIGHUP, SIGTERM──> ended
 *
 * Output goes to `pending` and is written only when poll(2) reports that stdout is writable, so keys are
 * processed while a terminal is slow; meanwhile the socket is not read. Output bytes are counted: a new
 * connection begins where the old one ended.
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
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/leaving_signals.h"
#include "cli/api/programs.h"
#include "base/parse.h"
#include "base/terminal.h"
#include "cli/term/field.h"
#include "cli/follow/idle_news.h"
#include "cli/follow/input.h"
#include "cli/show/job_columns.h"
#include "cli/term/raw_terminal.h"
#include "cli/options/talk.h"

#define READ_SIZE   (64U << 10)
#define WRITE_PIECE 4096U // a pipe or terminal that is ready takes so much at once
#define SEND_MAX    (64U << 10)
#define HEADER      "Connection: Upgrade\r\nUpgrade: mgpu-terminal"

struct session {
    struct call *call;
    const struct session_options *options;
    struct http_client *http; // NULL: not joined
    struct buffer input;      // from the other side, from `taken` on
    size_t taken;
    struct buffer pending[2]; // for stdout and stderr, from `written` on
    size_t written[2];
    struct buffer output; // frames that the socket has not taken yet, from `sent` on
    size_t sent;
    uint64_t position; // of the output: position of the next byte
    int terminal_fd;   // standard output again, which never blocks; -1: it is no terminal
    bool has_joined;   // once
    bool is_stdin_over;
    uint64_t keyed;          // bytes read from standard input
    uint64_t unused;         // of these, those that the other side has not read
    bool is_over, is_asking; // to cancel the job: y or n?
    enum session_result result;
    int status;
    struct detach_keys keys;
    int64_t keys_ms; // boot clock: when keys held back are sent
    struct raw_terminal raw;
    struct idle_news news;
};

bool session_is_on_terminal(void)
{
    /* In the background the terminal belongs to another process group. */
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void session_say_detached(const struct call *call, const char *job)
{
    if (!call->is_quiet)
        talk_line("detached from job %s, which continues; mgpu attach %s reattaches, mgpu cancel %s ends it",
            job, job, job);
}

/* Prints a message between lines of the job, on a terminal that may be raw. */
static void say(const char *text)
{
    (void)fprintf(stderr, "\r\n\033[0m%s\r\n", text);
}

static void finish(struct session *session, enum session_result result)
{
    session->is_over = true;
    session->result = result;
}

/* --- out: frames --- */

static void put_frame(struct session *session, enum terminal_frame type, const void *payload, size_t length)
{
    uint8_t head[TERMINAL_HEAD_SIZE];
    terminal_head(head, type, length);
    buffer_append(&session->output, head, sizeof(head));
    buffer_append(&session->output, payload, length);
}

static void send_output(struct session *session)
{
    while (session->http != NULL && session->sent < session->output.length) {
        ssize_t n = send(http_client_fd(session->http), session->output.bytes + session->sent,
            session->output.length - session->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            return; // EAGAIN: poll waits; other errors are detected by reading
        session->sent += (size_t)n;
    }
    session->sent = session->output.length = 0;
}

static void put_size(struct session *session)
{
    unsigned rows, columns;
    uint8_t payload[4];
    if (!session->options->is_tty || !screen_size(&rows, &columns))
        return;
    terminal_put(payload, 2, rows);
    terminal_put(payload + 2, 2, columns);
    put_frame(session, TERMINAL_WINDOW, payload, sizeof(payload));
}

/* --- joining --- */

static char *make_path(const struct session *session)
{
    const struct session_options *options = session->options;
    unsigned rows = 0, columns = 0;
    if (options->exec != NULL)
        return xasprintf(API_PATH "/jobs/%s/exec?rank=%u", options->job, options->rank);
    (void)screen_size(&rows, &columns);
    _cleanup_free_ char *position = xasprintf("&position=%" PRIu64, session->position);
    bool has_position = session->has_joined || options->is_from_start;
    return xasprintf(API_PATH "/jobs/%s/terminal?rank=%u&rows=%u&columns=%u%s%s", options->job, options->rank,
        rows, columns, options->is_read_only ? "&read_only=1" : "", has_position ? position : "");
}

static int join_once(struct session *session, struct error *err)
{
    const struct session_options *options = session->options;
    _cleanup_free_ char *path = make_path(session);
    _cleanup_free_ char *body = options->exec != NULL ? json_dumps(options->exec, JSON_COMPACT) : NULL;
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    const struct http_request request = {
        .method = options->exec != NULL ? "POST" : "GET",
        .path = path,
        .header = HEADER,
        .body = body,
        .body_length = body != NULL ? strlen(body) : 0,
    };
    session->taken = 0;
    int r = client_upgrade(&session->call->client, &request, &http, &session->input, err);
    if (r < 0)
        return r;
    session->http = take_ptr(http);
    session->has_joined = true;
    session->sent = session->output.length = 0;
    return 0;
}

/* Survives a restart of mgpud. If the job has ended meanwhile, that is the end, not a failure. */
static int join(struct session *session, struct error *err)
{
    int64_t first_ms = clock_boot_ms();
    int delay_ms = 0;
    for (;;) {
        bool is_return = session->has_joined;
        int r = join_once(session, err);
        if (is_return && (r == -EALREADY || r == -ENOENT)) {
            finish(session, SESSION_ENDED);
            return 0;
        }
        bool is_loss = client_is_loss(r) || r == -EHOSTUNREACH;
        if (r == 0 || !is_loss || !is_return || clock_boot_ms() - first_ms > CLIENT_PATIENT_MS)
            return r;
        client_back_off(&delay_ms);
    }
}

/* --- in: frames --- */

static void on_output(struct session *session, const uint8_t *payload, size_t length)
{
    session->position += length;
    buffer_append(&session->pending[0], payload, length);
}

static void on_errors(struct session *session, const uint8_t *payload, size_t length)
{
    buffer_append(&session->pending[1], payload, length);
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
    finish(session, SESSION_ENDED);
    if (length == 4)
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
        for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
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

/* The connection ended without a word. */
static int on_lost(struct session *session, struct error *err)
{
    http_client_free(take_ptr(session->http));
    if (session->options->exec != NULL)
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

/* --- keys --- */

static void show_status(struct session *session)
{
    char ran[32] = "";
    _cleanup_json_ json_t *job = NULL;
    struct error err = { 0 };
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", session->options->job);
    if (client_get(&session->call->client, path, &job, &err) < 0) {
        say(err.message);
        return;
    }
    _cleanup_free_ char *name = field_shown(job, "name");
    _cleanup_free_ char *where = job_where(job);
    format_duration((int64_t)(field_number(job, "run_seconds", 0) * 1000), ran, sizeof(ran));
    _cleanup_free_ char *line = xasprintf(
        "[mgpu: job %s (%s) %s for %s on %s]", session->options->job, name, job_state_shown(job), ran, where);
    say(line);
}

static void show_log(struct session *session)
{
    _cleanup_free_ char *command =
        xasprintf("\"$0\" logs --raw %s | ${MGPU_PAGER:-${PAGER:-less -R}}", session->options->job);
    raw_terminal_restore(&session->raw);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        _cleanup_free_ char *program = program_find("mgpu");
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        leaving_restore_unread();
        if (client_export(&session->call->client) < 0)
            _exit(127);
        (void)execl("/bin/sh", "sh", "-c", command, program, (char *)NULL);
        _exit(127);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    raw_terminal_set(&session->raw);
    put_size(session);
}

static void ask_to_cancel(struct session *session)
{
    _cleanup_free_ char *line =
        xasprintf("[mgpu: cancel job %s? y to cancel, any other key to continue]", session->options->job);
    say(line);
    session->is_asking = true;
}

static void on_answer(struct session *session, uint8_t key)
{
    session->is_asking = false;
    if (key != 'y' && key != 'Y') {
        say("[mgpu: not cancelled]");
        return;
    }
    struct error err = { 0 };
    _cleanup_json_ json_t *body = json_object();
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/cancel", session->options->job);
    if (client_call(&session->call->client, "POST", path, body, NULL, &err) < 0)
        say(err.message);
    else
        say("[mgpu: the job is stopping]");
}

static void show_help(struct session *session)
{
    (void)session;
    say("[mgpu: Ctrl-] and then  d detach · k cancel the job · l its output in a pager · s its state ·\r\n"
        "       ? this help · Ctrl-] sends Ctrl-]]");
}

static void detach(struct session *session)
{
    finish(session, SESSION_DETACHED);
}

static void (*const key_acts[])(struct session *session) = {
    [KEY_DETACH] = detach,
    [KEY_CANCEL] = ask_to_cancel,
    [KEY_LOG] = show_log,
    [KEY_STATUS] = show_status,
    [KEY_HELP] = show_help,
};

static void on_key(struct session *session, uint8_t key)
{
    uint8_t out[DETACH_KEYS_MAX + 1];
    size_t length = 0;
    if (session->is_asking) {
        on_answer(session, key);
        return;
    }
    enum key_action action = detach_keys_feed(&session->keys, key, out, &length);
    if (action == KEY_WAIT || detach_keys_are_waiting(&session->keys))
        session->keys_ms = clock_boot_ms() + DETACH_KEYS_WAIT_MS;
    if (action == KEY_PASS && length > 0 && !session->options->is_read_only)
        put_frame(session, TERMINAL_INPUT, out, length);
    else if (action > KEY_WAIT)
        key_acts[action](session);
}

/* Most of what is typed or pasted has no special key in it and goes as one frame. */
static void take_keys(struct session *session, const uint8_t *bytes, size_t length)
{
    const struct detach_keys *keys = &session->keys;
    bool is_plain = !session->is_asking && !detach_keys_are_waiting(keys) &&
                    (keys->length == 0 || memchr(bytes, keys->sequence[0], length) == NULL);
    if (is_plain && !session->options->is_read_only)
        put_frame(session, TERMINAL_INPUT, bytes, length);
    for (size_t i = 0; !is_plain && i < length && !session->is_over; i++)
        on_key(session, bytes[i]);
}

static void on_stdin(struct session *session)
{
    uint8_t bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        session->is_stdin_over = true;
        put_frame(session, TERMINAL_INPUT_END, "", 0);
        return;
    }
    session->keyed += (uint64_t)n;
    if (session->raw.is_set) {
        take_keys(session, bytes, (size_t)n);
    } else {
        put_frame(session, TERMINAL_INPUT, bytes, (size_t)n);
    }
}

static void expire_keys(struct session *session)
{
    uint8_t out[DETACH_KEYS_MAX + 1];
    size_t length = 0;
    if (!detach_keys_are_waiting(&session->keys) || clock_boot_ms() < session->keys_ms)
        return;
    detach_keys_expire(&session->keys, out, &length);
    if (!session->options->is_read_only)
        put_frame(session, TERMINAL_INPUT, out, length);
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

static void on_signal(struct session *session, int signal_fd)
{
    struct signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    uint8_t number = (uint8_t)info.ssi_signo;
    if (number == SIGWINCH) {
        put_size(session);
        return;
    }
    if (leaving_effect(session->options->leaver, false, number) == LEAVE_SIGNALS_PROCESS)
        put_frame(session, TERMINAL_SIGNAL, &number, 1);
    else
        detach(session); // which ends a process that `exec` has started
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
        /* The output has no reader any more. */
        n = (ssize_t)left;
        if (index == 0 && !session->is_over)
            detach(session);
    }
    session->written[index] += (size_t)n;
    if (session->written[index] == pending->length)
        session->written[index] = pending->length = 0;
}

static void tell_idleness(struct session *session, bool is_readable)
{
    _cleanup_free_ char *sentence = idle_news_advance(&session->news, is_readable);
    if (sentence == NULL || session->call->is_quiet)
        return;
    _cleanup_free_ char *line = xasprintf("[mgpu: %s]", sentence);
    say(line);
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

static int turn(struct session *session, int signal_fd, struct error *err)
{
    bool has_pending[2] = { session->pending[0].length > 0, session->pending[1].length > 0 };
    bool is_listening = !session->is_stdin_over && !session->options->is_input_shut &&
                        session->output.length - session->sent < SEND_MAX && !session->is_over;
    bool is_reading = !has_pending[0] && !has_pending[1] && session->http != NULL && !session->is_over;
    bool is_sending = session->sent < session->output.length && session->http != NULL;
    struct pollfd fds[SOURCES] = {
        [SOURCE_SIGNALS] = { signal_fd, POLLIN, 0 },
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
        on_signal(session, signal_fd);
    if (fds[SOURCE_STDIN].revents != 0)
        on_stdin(session);
    for (int i = 0; i < 2; i++)
        if (fds[SOURCE_STDOUT + i].revents != 0)
            write_pending(session, i);
    expire_keys(session);
    tell_idleness(session, fds[SOURCE_NEWS].revents != 0);
    send_output(session);
    if ((fds[SOURCE_SOCKET].revents & ~POLLOUT) != 0 && session->http != NULL && is_reading)
        r = on_socket(session, err);
    return r;
}

static void session_clear(struct session *session)
{
    raw_terminal_restore(&session->raw);
    idle_news_clear(&session->news);
    closep(&session->terminal_fd);
    http_client_free(session->http);
    buffer_clear(&session->input);
    buffer_clear(&session->output);
    buffer_clear(&session->pending[0]);
    buffer_clear(&session->pending[1]);
}

/* O_NONBLOCK on the inherited descriptor would also affect the shell, so the terminal is opened again. */
static int open_terminal(void)
{
    const char *name = isatty(STDOUT_FILENO) == 1 ? ttyname(STDOUT_FILENO) : NULL;
    return name == NULL ? -1 : open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int session_run(struct call *call, const struct session_options *options, int *ret_status,
    uint64_t *ret_position, struct error *err)
{
    _cleanup_close_ int signal_fd = open_signals(err);
    if (signal_fd < 0)
        return signal_fd;
    _cleanup_(session_clear) struct session session = {
        .call = call, .options = options, .status = -1, .keys = options->keys, .terminal_fd = open_terminal()
    };
    int r = join(&session, err);
    if (r < 0)
        return r;
    if (options->is_tty && !options->is_input_shut)
        raw_terminal_set(&session.raw);
    if (options->exec != NULL && options->is_input_shut)
        put_frame(&session, TERMINAL_INPUT_END, "", 0);
    if (options->is_told_idleness)
        idle_news_start(&session.news, &call->client, options->job, call->times);
    r = take_frames(&session, err);
    /* Output received before the end is written; not after detaching. */
    while (r == 0 && (!session.is_over || (session.result == SESSION_ENDED &&
                                              session.pending[0].length + session.pending[1].length > 0)))
        r = turn(&session, signal_fd, err);
    if (session.result == SESSION_DETACHED && session.raw.is_set)
        (void)fputs("\r\n", stderr);
    input_leave_rest(session.keyed, session.unused);
    *ret_status = session.status;
    *ret_position = session.position;
    return r < 0 ? r : (int)session.result;
}
