/* SPDX-License-Identifier: MIT */
/*
 * T for a job whose standard input is sent by a client (`mgpu run`, `srun`): passes the bytes of one sender
 * to the pipe that the job reads. It runs as the user, allocates nothing, and has these states:
 *
 *   OPEN ──end of the input, or no reader──> SHUT ──S reports the end of the step──> ended
 *     └──────────────────────────────────────────────────────────────────────────────┘
 *
 * The number of bytes written to the pipe is sent back as it grows, so that after a lost connection the
 * sender knows where to continue. At the end, the sender gets the number of bytes that the job has read. If a
 * sender does not return in time, the input ends. The log says so, because the job may have taken a part for
 * the whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "shepherd/input_pipe.h"
#include "shepherd/processes/death_timer.h"
#include "shepherd/terminal.h"
#include "shepherd/terminal_viewer.h"

#define RETURN_MS      40000 // a sender tries to reconnect to mgpud for 30 s
#define FLUSH_MS       3000  // for the last frame
#define KILL_MARGIN_MS 2000  // after FLUSH_MS, by when the process exits by itself

struct process {
    struct input_pipe input;
    int door_fd, channel_fd, log_fd;
    uint64_t reported;   // how many of the bytes taken were reported
    int64_t deadline_ms; // boot clock: deadline for a sender to connect; 0: none
    struct death_timer death;
    struct viewer sender;
};

static struct process process;

/* --- what the sender does --- */

static size_t on_input(void *arg, const uint8_t *bytes, size_t length)
{
    struct process *p = arg;
    return input_pipe_write(&p->input, bytes, length);
}

static void on_input_end(void *arg)
{
    struct process *p = arg;
    input_pipe_shut(&p->input);
}

/* The job has not read the complete input, and may not notice. */
static void on_input_cut(void *arg)
{
    struct process *p = arg;
    if (p->input.sink_fd < 0)
        return;
    p->deadline_ms = 0;
    (void)dprintf(p->log_fd,
        "mgpu: standard input ended after %" PRIu64 " bytes: the command that sent it is gone\n",
        p->input.taken);
    input_pipe_shut(&p->input);
}

static void on_window(void *arg, struct viewer *viewer)
{
}

static void on_signal(void *arg, int number)
{
}

static const struct viewer_acts acts = {
    .arg = &process,
    .input = on_input,
    .input_end = on_input_end,
    .input_cut = on_input_cut,
    .window = on_window,
    .signal = on_signal,
};

static void put_number(struct viewer *sender, enum terminal_frame type, uint64_t number)
{
    uint8_t payload[8];
    terminal_put(payload, sizeof(payload), number);
    (void)viewer_add(sender, type, payload, sizeof(payload));
}

static void on_gone(struct process *p)
{
    viewer_close(&p->sender);
    if (p->input.sink_fd >= 0)
        p->deadline_ms = clock_boot_ms() + RETURN_MS;
}

static void on_visit(struct process *p)
{
    struct terminal_visit visit;
    int fd = -1;
    if (descriptor_receive(p->door_fd, &visit, sizeof(visit), &fd) != 1 || fd < 0)
        return;
    if (visit.magic != TERMINAL_VISIT_MAGIC) {
        (void)close(fd);
        return;
    }
    viewer_close(&p->sender); // its old connection was lost, or there would be no new one
    viewer_open(&p->sender, fd, &visit, 1);
    p->deadline_ms = 0;
    put_number(&p->sender, TERMINAL_TAKEN, p->input.taken);
    p->reported = p->input.taken;
}

/* Sends the sender the numbers that it does not have yet. True if something is being sent. */
static bool report(struct process *p)
{
    struct viewer *sender = &p->sender;
    if (viewer_is_open(sender) && !viewer_send(sender))
        on_gone(p);
    if (!viewer_is_open(sender))
        return false;
    if (viewer_is_idle(sender) && p->input.is_read_over && !sender->has_end) {
        put_number(sender, TERMINAL_READ, p->input.read);
        sender->has_end = true;
    } else if (viewer_is_idle(sender) && p->reported < p->input.taken) {
        put_number(sender, TERMINAL_TAKEN, p->input.taken);
        p->reported = p->input.taken;
    }
    if (!viewer_send(sender))
        on_gone(p);
    return viewer_is_open(sender) && !viewer_is_idle(sender);
}

/* --- the end --- */

/* Discards input. False if the sender has closed its side. */
static bool discard(struct process *p)
{
    static uint8_t bytes[TERMINAL_PAYLOAD_MAX];
    ssize_t n = recv(p->sender.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* The step has ended. The sender closes the connection when it has received the last number: if this side
 * closed it with unread bytes in it, that number could be lost. */
static _Noreturn void leave(struct process *p)
{
    int64_t ends_ms = clock_boot_ms() + FLUSH_MS;
    death_timer_set(&p->death, FLUSH_MS + KILL_MARGIN_MS);
    closep(&p->channel_fd);
    closep(&p->door_fd);
    input_pipe_end(&p->input);
    for (;;) {
        bool is_sending = report(p);
        struct pollfd wanted = { p->sender.fd, (short)(POLLIN | (is_sending ? POLLOUT : 0)), 0 };
        int64_t left_ms = ends_ms - clock_boot_ms();
        if (!viewer_is_open(&p->sender) || left_ms <= 0 || poll(&wanted, 1, (int)left_ms) == 0)
            break;
        if ((wanted.revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !discard(p))
            break;
    }
    _exit(0);
}

static void on_channel(struct process *p)
{
    struct terminal_end end;
    ssize_t n = recv(p->channel_fd, &end, sizeof(end), MSG_DONTWAIT);
    if (n > 0)
        leave(p);
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        closep(&p->channel_fd); // S was killed: the job continues
}

/* --- the loop --- */

static bool is_wanted(const struct process *p)
{
    return viewer_is_open(&p->sender) && !viewer_is_waiting(&p->sender);
}

static void serve_sender(struct process *p, short events)
{
    bool is_here = true;
    if ((events & (POLLHUP | POLLERR)) != 0 && (events & POLLIN) == 0)
        is_here = false;
    else if ((events & POLLIN) != 0 && is_wanted(p))
        is_here = viewer_receive(&p->sender, &acts);
    if (!is_here)
        on_gone(p);
}

static void serve_pipe(struct process *p, short events)
{
    if ((events & POLLERR) != 0)
        input_pipe_end(&p->input); // no reader is left
    p->input.is_full = false;
    if (viewer_is_open(&p->sender) && !viewer_resume(&p->sender, &acts))
        on_gone(p);
}

static int time_left(const struct process *p)
{
    int64_t left_ms = p->deadline_ms - clock_boot_ms();
    if (p->deadline_ms == 0)
        return -1;
    return left_ms < 0 ? 0 : (int)left_ms;
}

enum source { SOURCE_DOOR, SOURCE_CHANNEL, SOURCE_PIPE, SOURCE_SENDER, SOURCES };

static void turn(struct process *p)
{
    bool is_sending = report(p);
    struct pollfd fds[SOURCES] = {
        [SOURCE_DOOR] = { p->door_fd, POLLIN, 0 },
        [SOURCE_CHANNEL] = { p->channel_fd, POLLIN, 0 },
        /* poll(2) reports the loss of the last reader even if no events are requested. */
        [SOURCE_PIPE] = { p->input.sink_fd, (short)(p->input.is_full ? POLLOUT : 0), 0 },
        [SOURCE_SENDER] = { p->sender.fd, (short)((is_wanted(p) ? POLLIN : 0) | (is_sending ? POLLOUT : 0)),
            0 },
    };
    if (poll(fds, SOURCES, time_left(p)) < 0)
        return;
    if (fds[SOURCE_PIPE].revents != 0)
        serve_pipe(p, fds[SOURCE_PIPE].revents);
    if (fds[SOURCE_SENDER].revents != 0 && viewer_is_open(&p->sender))
        serve_sender(p, fds[SOURCE_SENDER].revents);
    if (fds[SOURCE_DOOR].revents != 0)
        on_visit(p);
    if (fds[SOURCE_CHANNEL].revents != 0)
        on_channel(p);
    if (p->deadline_ms != 0 && clock_boot_ms() >= p->deadline_ms)
        on_input_cut(p); // the sender did not return
}

_Noreturn void input_run(const struct terminal_setup *setup)
{
    struct process *p = &process;
    terminal_become_user(setup, "mgpu-input", &p->death);
    input_pipe_init(&p->input, setup->sink_fd);
    p->door_fd = setup->door_fd;
    p->channel_fd = setup->channel_fd;
    p->log_fd = setup->log_fd;
    p->sender.fd = -1;
    p->deadline_ms = clock_boot_ms() + RETURN_MS;
    while (p->channel_fd >= 0 || p->input.sink_fd >= 0)
        turn(p);
    leave(p); // S was killed, and the input has ended
}
