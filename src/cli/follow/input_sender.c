/* SPDX-License-Identifier: MIT */
/*
 *             RUN                  connected
 *   WAITING ───────> JOINING ─────────────────> SENDING ──OVER, LEAVE──> ENDING ──> ended
 *      ^                │ ^      lost              │
 *      │                │ └────────────────────────┤
 *      └─ does not run ─┴──────────────────────────┘
 *
 * The other side reports how many bytes it has (TERMINAL_TAKEN): a new connection continues there, and that
 * of a later attempt at 0. Bytes of a file are read again if needed. Those of a pipe are kept, up to
 * KEEP_MAX. If a later attempt needs more than that, the job is cancelled rather than left to compute from a
 * part of its input.
 *
 * Standard input is read ahead of the job. At the end, the other side reports how many bytes the job has read
 * (TERMINAL_READ), and a file's position is set accordingly, so that a shell's loop over its lines loses
 * none.
 */
#include "cli/follow/input_sender.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "cli/options/talk.h"

#define KEEP_MAX      (64U << 20) // bytes of a pipe
#define DROP_MIN      (1U << 20)  // dropped at once if they exceed this
#define ENDING_MS     2000        // for the last frame of the other side
#define BUSY_MS       1000        // until the next attempt, if the user has too many open inputs
#define FOREGROUND_MS 500         // until a terminal that belongs to another process is checked again
#define ANSWER_SIZE   4096

enum phase { WAITING, JOINING, SENDING, ENDING };

struct sender {
    struct call *call;
    uint64_t job;
    int order_fd;
    enum phase phase;
    int64_t ends_ms;  // of ENDING
    int64_t retry_ms; // of JOINING; boot clock
    int delay_ms;
    off_t begin;        // of a file: its initial position; -1: it cannot be read twice
    struct buffer kept; // of other input: the bytes from position `kept_from` on
    uint64_t kept_from;
    bool is_over; // no more can be read
    int64_t foreground_ms;
    struct http_client *http;
    struct buffer in, out;
    size_t out_sent;
    uint64_t sent, taken; // positions: of the next byte to send; behind the last byte that has arrived
    bool has_joined, is_end_sent;
    bool is_read_known;
    uint64_t read;
};

/* --- standard input --- */

static bool is_file(const struct sender *sender)
{
    return sender->begin >= 0;
}

static void open_source(struct sender *sender)
{
    struct stat st;
    bool is_seekable = fstat(STDIN_FILENO, &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
    sender->begin = is_seekable ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
}

/* Drops bytes that are kept only for a later attempt. */
static void drop_kept(struct sender *sender)
{
    size_t done = sender->taken > sender->kept_from ? (size_t)(sender->taken - sender->kept_from) : 0;
    if (sender->kept.length <= KEEP_MAX || done < DROP_MIN)
        return;
    memmove(sender->kept.bytes, sender->kept.bytes + done, sender->kept.length - done);
    sender->kept.length -= done;
    sender->kept_from += done;
}

static void read_more(struct sender *sender)
{
    static uint8_t bytes[TERMINAL_PAYLOAD_MAX];
    bool is_terminal = isatty(STDIN_FILENO) == 1;
    if (is_terminal && tcgetpgrp(STDIN_FILENO) != getpgrp()) {
        sender->foreground_ms = clock_boot_ms() + FOREGROUND_MS;
        return;
    }
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        buffer_append(&sender->kept, bytes, (size_t)n);
    sender->is_over = n <= 0;
    drop_kept(sender);
}

static size_t left_to_send(const struct sender *sender)
{
    uint64_t end = sender->kept_from + sender->kept.length;
    return end > sender->sent ? (size_t)(end - sender->sent) : 0;
}

/* --- frames to the job --- */

static void put(struct sender *sender, enum terminal_frame type, const void *bytes, size_t length)
{
    uint8_t head[TERMINAL_HEAD_SIZE];
    terminal_head(head, type, length);
    buffer_append(&sender->out, head, sizeof(head));
    buffer_append(&sender->out, bytes, length);
}

static void put_end(struct sender *sender)
{
    if (!sender->is_end_sent)
        put(sender, TERMINAL_INPUT_END, "", 0);
    sender->is_end_sent = true;
}

static void put_from_file(struct sender *sender)
{
    static uint8_t bytes[TERMINAL_PAYLOAD_MAX];
    ssize_t n = pread(STDIN_FILENO, bytes, sizeof(bytes), sender->begin + (off_t)sender->sent);
    if (n <= 0) {
        put_end(sender);
        return;
    }
    put(sender, TERMINAL_INPUT, bytes, (size_t)n);
    sender->sent += (uint64_t)n;
}

/* Puts the next frame if there is something to send. */
static void put_next(struct sender *sender)
{
    size_t left = left_to_send(sender);
    bool is_busy = sender->out_sent < sender->out.length;
    if (is_busy || sender->is_end_sent || sender->is_read_known || sender->phase != SENDING)
        return;
    sender->out.length = sender->out_sent = 0;
    if (is_file(sender)) {
        put_from_file(sender);
    } else if (left > 0) {
        size_t length = left < TERMINAL_PAYLOAD_MAX ? left : TERMINAL_PAYLOAD_MAX;
        put(sender, TERMINAL_INPUT, sender->kept.bytes + (sender->sent - sender->kept_from), length);
        sender->sent += length;
    } else if (sender->is_over) {
        put_end(sender);
    }
}

static void flush_out(struct sender *sender)
{
    while (sender->out_sent < sender->out.length) {
        ssize_t n = send(http_client_fd(sender->http), sender->out.bytes + sender->out_sent,
            sender->out.length - sender->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0)
            return; // EAGAIN: poll waits; other errors are detected by reading
        sender->out_sent += (size_t)n;
    }
}

/* --- frames from the job --- */

static void disconnect(struct sender *sender, enum phase next)
{
    http_client_free(take_ptr(sender->http));
    sender->in.length = sender->out.length = sender->out_sent = 0;
    if (sender->phase == SENDING)
        sender->phase = next;
    sender->retry_ms = sender->delay_ms = 0;
}

/* Bytes that the job has not read cannot be sent again. */
static void give_up(struct sender *sender)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRIu64 "/cancel", sender->job);
    _cleanup_json_ json_t *body = json_object();
    talk_line("job %" PRIu64 " was requeued, and the first %" PRIu64 " bytes of its standard input cannot be "
              "sent again: it is cancelled. With --input FILE, each attempt reads the file",
        sender->job, sender->kept_from);
    (void)client_call(&sender->call->client, "POST", path, body, NULL, NULL);
    disconnect(sender, WAITING);
}

static void on_taken(struct sender *sender, uint64_t position)
{
    bool is_first = !sender->has_joined;
    sender->has_joined = true;
    sender->taken = position;
    if (!is_first)
        return;
    sender->sent = position;
    if (!is_file(sender) && position < sender->kept_from)
        give_up(sender);
}

static void on_read(struct sender *sender, uint64_t position)
{
    sender->is_read_known = true;
    sender->read = position;
    disconnect(sender, WAITING);
}

static void take_frames(struct sender *sender)
{
    size_t at = 0;
    while (sender->http != NULL && sender->in.length - at >= TERMINAL_HEAD_SIZE) {
        const uint8_t *frame = sender->in.bytes + at;
        size_t length;
        uint8_t type;
        if (!terminal_read_head(frame, &type, &length)) {
            disconnect(sender, WAITING);
            return;
        }
        if (sender->in.length - at < TERMINAL_HEAD_SIZE + length)
            break;
        at += TERMINAL_HEAD_SIZE + length;
        if (type == TERMINAL_TAKEN && length == 8)
            on_taken(sender, terminal_get(frame + TERMINAL_HEAD_SIZE, 8));
        else if (type == TERMINAL_READ && length == 8)
            on_read(sender, terminal_get(frame + TERMINAL_HEAD_SIZE, 8));
    }
    if (sender->http == NULL || at == 0)
        return;
    memmove(sender->in.bytes, sender->in.bytes + at, sender->in.length - at);
    sender->in.length -= at;
}

static void on_socket(struct sender *sender)
{
    uint8_t bytes[ANSWER_SIZE];
    ssize_t n = recv(http_client_fd(sender->http), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        disconnect(sender, JOINING);
        return;
    }
    buffer_append(&sender->in, bytes, (size_t)n);
    take_frames(sender);
}

/* --- connecting --- */

static void try_again(struct sender *sender, int delay_ms)
{
    sender->retry_ms = clock_boot_ms() + delay_ms;
}

static void join(struct sender *sender)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRIu64 "/input", sender->job);
    struct error err = { 0 };
    const struct http_request request = {
        .method = "GET", .path = path, .header = "Connection: Upgrade\r\nUpgrade: mgpu-terminal"
    };
    sender->in.length = 0;
    int r = client_upgrade(&sender->call->client, &request, &sender->http, &sender->in, &err);
    if (r == -EUSERS) {
        try_again(sender, BUSY_MS);
    } else if (client_is_loss(r) || r == -EHOSTUNREACH || r == -EHOSTDOWN) {
        sender->delay_ms = sender->delay_ms == 0 ? 20 : sender->delay_ms < 500 ? 2 * sender->delay_ms : 1000;
        try_again(sender, sender->delay_ms);
    } else if (r < 0) {
        /* The job does not run, or no longer; the follower finds out more. */
        bool is_normal = r == -EALREADY || r == -ENOTCONN || r == -ENOENT;
        if (!is_normal)
            talk_error(sender->call->command->name, &err);
        sender->phase = WAITING;
    } else {
        sender->phase = SENDING;
        sender->has_joined = sender->is_end_sent = sender->is_read_known = false;
        take_frames(sender);
    }
}

/* --- the loop --- */

static void begin_ending(struct sender *sender, bool is_job_over)
{
    bool is_connected = sender->http != NULL;
    if (is_connected && !is_job_over)
        put(sender, TERMINAL_INPUT_CUT, "", 0);
    sender->phase = ENDING;
    sender->ends_ms = clock_boot_ms() + (is_connected ? ENDING_MS : 0);
}

static void on_order(struct sender *sender)
{
    struct input_order order = { .word = INPUT_LEAVE };
    ssize_t n = recv(sender->order_fd, &order, sizeof(order), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof(order) && order.word == INPUT_RUN) {
        sender->phase = sender->phase == WAITING ? JOINING : sender->phase;
        return;
    }
    begin_ending(sender, n == (ssize_t)sizeof(order) && order.word == INPUT_OVER);
}

static int least(int64_t a, int64_t b)
{
    return (int)(a < 0 ? b : b < 0 ? a : a < b ? a : b);
}

static int wait_ms(const struct sender *sender)
{
    int64_t now_ms = clock_boot_ms(), left = -1;
    int64_t deadline_ms = sender->phase == ENDING    ? sender->ends_ms
                          : sender->phase == JOINING ? sender->retry_ms
                                                     : -1;
    if (deadline_ms >= 0)
        left = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    return sender->foreground_ms > now_ms ? least(left, sender->foreground_ms - now_ms) : (int)left;
}

static void turn(struct sender *sender)
{
    if (sender->http != NULL && sender->has_joined) {
        put_next(sender);
        flush_out(sender);
    }
    bool is_sending = sender->http != NULL && sender->out_sent < sender->out.length;
    bool is_reading = sender->phase == SENDING && sender->has_joined && !is_sending && !is_file(sender) &&
                      !sender->is_over && left_to_send(sender) == 0 &&
                      clock_boot_ms() >= sender->foreground_ms;
    struct pollfd fds[] = {
        { sender->phase == ENDING ? -1 : sender->order_fd, POLLIN, 0 },
        { is_reading ? STDIN_FILENO : -1, POLLIN, 0 },
        { sender->http != NULL ? http_client_fd(sender->http) : -1,
            (short)(POLLIN | (is_sending ? POLLOUT : 0)), 0 },
    };
    bool is_ready = is_file(sender) && sender->phase == SENDING && sender->has_joined && !is_sending &&
                    !sender->is_end_sent;
    if (poll(fds, sizeof(fds) / sizeof(fds[0]), is_ready ? 0 : wait_ms(sender)) < 0)
        return;
    if ((fds[2].revents & ~POLLOUT) != 0)
        on_socket(sender);
    if (fds[1].revents != 0 && sender->phase == SENDING)
        read_more(sender);
    if (fds[0].revents != 0)
        on_order(sender);
    if (sender->phase == JOINING && clock_boot_ms() >= sender->retry_ms)
        join(sender);
}

void input_say_unused(uint64_t bytes)
{
    talk_line("%" PRIu64 " bytes of standard input were read ahead and not used; --no-input leaves them to "
              "other commands",
        bytes);
}

/* The bytes that the job has not read are left to other readers, or reported. */
static void return_unread(const struct sender *sender)
{
    uint64_t used = sender->is_read_known ? sender->read : sender->taken;
    if (is_file(sender)) {
        (void)lseek(STDIN_FILENO, sender->begin + (off_t)used, SEEK_SET);
        return;
    }
    uint64_t unused = sender->kept_from + sender->kept.length - used;
    if (sender->is_read_known && used == 0 && unused > 0)
        input_say_unused(unused);
}

_Noreturn void input_send(struct call *call, uint64_t job, int order_fd)
{
    static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTTIN };
    struct sender sender = { .call = call, .job = job, .order_fd = order_fd };
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        (void)signal(ignored[i], SIG_IGN);
    call->client.http = NULL; // a connection of the parent process
    open_source(&sender);
    while (sender.phase != ENDING || (sender.http != NULL && clock_boot_ms() < sender.ends_ms))
        turn(&sender);
    return_unread(&sender);
    _exit(EXIT_SUCCESS);
}
