/* SPDX-License-Identifier: MIT */
/*
 * T: moves the bytes of one step. It runs as the user, allocates nothing, and has these states:
 *
 *   OPEN ──S reports the end of the step──> DRAINING ──no more output──> FLUSHING ──all viewers told──> ended
 *
 * The output of a job's terminal goes to the log, whether or not there are viewers, and each viewer reads it
 * at its own speed (terminal_history.c). A viewer that stops reading costs nothing, and is dropped if it
 * still does not read after the job has ended. The output of an exec step (`mgpu exec`) goes to its single
 * viewer and to no log (terminal_exec.c); the command waits while the viewer does not read, and gets a hangup
 * when the viewer leaves. A viewer with a key whose connection was lost has not left: it may return within
 * TERMINAL_KEEP_MS, also to receive the end.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "shepherd/terminal_private.h"
#include "shepherd/user.h"

#define FIRST_VISIT_MS 20000 // an exec step is started for a viewer

static struct process process;

/* --- the end --- */

static void on_channel(struct process *p)
{
    ssize_t n = recv(p->channel_fd, &p->end, sizeof(p->end), MSG_DONTWAIT);
    if (n == (ssize_t)sizeof(p->end) && p->end.magic == TERMINAL_END_MAGIC) {
        p->end.text[sizeof(p->end.text) - 1] = '\0';
        p->has_end = true;
        p->phase = TERMINAL_DRAINING;
    } else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        closep(&p->channel_fd); // S was killed: the job and its terminal continue
    }
}

static bool is_drained(const struct process *p)
{
    return p->is_kept || terminal_exec_room(p) > 0;
}

static void begin_flushing(struct process *p)
{
    if (p->channel_fd >= 0)
        (void)send(p->channel_fd, TERMINAL_DRAINED, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    closep(&p->channel_fd);
    p->phase = TERMINAL_FLUSHING;
    if (p->exec.can_return && !p->is_hung_up && !viewer_is_open(&p->viewers[0])) {
        terminal_leave_within(p, terminal_keep_ms(p));
        return;
    }
    if (!p->exec.can_return)
        closep(&p->door_fd);
    terminal_leave_within(p, TERMINAL_FLUSH_MS);
}

/* The number of bytes of its standard input that the step has read. */
static void count_read(struct process *p, uint8_t read[8])
{
    input_pipe_end(&p->input);
    terminal_put(read, 8, p->input.read);
}

static size_t write_end(const struct process *p, uint8_t payload[4 + TERMINAL_TEXT_MAX])
{
    size_t length = strlen(p->end.text);
    terminal_put(payload, 4, (uint32_t)p->end.code);
    memcpy(payload + 4, p->end.text, length);
    return 4 + length;
}

/* The same for an exec step, whose end is one of its frames. */
static bool send_exec_end(struct process *p)
{
    uint8_t payload[4 + TERMINAL_TEXT_MAX];
    struct viewer *viewer = &p->viewers[0];
    if (!p->exec.has_end && p->has_end) {
        if (!p->is_tty) {
            count_read(p, payload);
            exec_stream_put(&p->exec, TERMINAL_READ, payload, 8);
        }
        exec_stream_put(&p->exec, TERMINAL_END, payload, write_end(p, payload));
    }
    p->exec.has_end = true;
    if (viewer_is_open(viewer))
        terminal_send_exec(p);
    bool is_awaited = viewer_is_open(viewer) || (p->exec.can_return && !p->is_hung_up);
    return is_awaited && (p->has_end ? !exec_stream_is_over(&p->exec, viewer)
                                     : viewer_is_open(viewer) && exec_stream_has_more(&p->exec, viewer));
}

/* All output has been sent to this viewer, so the end follows. True while there is something left to send. */
static bool send_end(struct process *p, struct viewer *viewer)
{
    uint8_t payload[4 + TERMINAL_TEXT_MAX];
    if (!viewer_is_open(viewer))
        return false;
    if (!viewer_is_idle(viewer) || viewer->position < p->history.end)
        return true;
    if (!viewer->has_end && p->has_end) {
        viewer->has_end = true;
        viewer_put(viewer, TERMINAL_END, payload, write_end(p, payload));
        (void)viewer_send(viewer);
        return viewer_is_open(viewer) && !viewer_is_idle(viewer);
    }
    viewer_close(viewer);
    return false;
}

/* --- the loop --- */

enum source {
    SOURCE_DOOR,
    SOURCE_CHANNEL,
    SOURCE_HOST,
    SOURCE_SINK,
    SOURCE_OUT,
    SOURCE_VIEWERS = SOURCE_OUT + TERMINAL_SOURCES
};
#define SOURCES (SOURCE_VIEWERS + TERMINAL_VIEWERS_MAX)

static bool is_wanted(const struct process *p, const struct viewer *viewer)
{
    bool is_confirmed = p->phase != TERMINAL_FLUSHING || p->exec.can_return; // the viewer confirms the end
    return is_confirmed && !viewer_is_waiting(viewer);
}

static void fill(const struct process *p, struct pollfd fds[SOURCES])
{
    bool is_held = !p->is_kept && terminal_exec_room(p) == 0;
    fds[SOURCE_DOOR] = (struct pollfd){ p->door_fd, POLLIN, 0 };
    fds[SOURCE_CHANNEL] = (struct pollfd){ p->channel_fd, POLLIN, 0 };
    fds[SOURCE_HOST] = (struct pollfd){ p->host_fd, POLLIN, 0 };
    fds[SOURCE_SINK] = (struct pollfd){ p->input.is_full ? p->input.sink_fd : -1, POLLOUT, 0 };
    for (int i = 0; i < TERMINAL_SOURCES; i++)
        fds[SOURCE_OUT + i] = (struct pollfd){ is_held ? -1 : p->source_fds[i], POLLIN, 0 };
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++) {
        const struct viewer *viewer = &p->viewers[i];
        bool has_more = p->is_kept ? !viewer_is_idle(viewer) || viewer->position < p->history.end
                                   : exec_stream_has_more(&p->exec, viewer);
        fds[SOURCE_VIEWERS + i] = (struct pollfd){ viewer->fd,
            (short)((is_wanted(p, viewer) ? POLLIN : 0) | (has_more ? POLLOUT : 0)), 0 };
    }
}

static void serve_viewer(struct process *p, struct viewer *viewer, short events)
{
    bool is_here = true;
    if ((events & POLLOUT) != 0)
        is_here = p->is_kept ? viewer_follow(viewer, &p->history) : exec_stream_send(&p->exec, viewer);
    if (is_here && (events & (POLLHUP | POLLERR)) != 0 && (events & POLLIN) == 0) {
        viewer_close(viewer);
        is_here = false;
    }
    if (is_here && (events & POLLIN) != 0 && is_wanted(p, viewer))
        is_here = viewer_receive(viewer, &p->acts);
    if (!is_here)
        terminal_on_gone(p);
    else if (!p->is_kept)
        terminal_send_exec(p);
}

static void follow_all(struct process *p)
{
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++)
        if (viewer_is_open(&p->viewers[i]) && viewer_is_idle(&p->viewers[i]) &&
            !viewer_follow(&p->viewers[i], &p->history))
            terminal_on_gone(p);
}

static void show_output(struct process *p)
{
    if (!p->is_kept)
        (void)terminal_pass_on(p);
    else if (terminal_keep_output(p))
        follow_all(p);
}

/* The warning is also written to the log, for users who return later. */
static void warn_if_idle(struct process *p)
{
    char text[256];
    size_t room;
    if (!terminal_warning_is_due(&p->warning, text, sizeof(text)))
        return;
    uint8_t *bytes = history_room(&p->history, &room);
    size_t length = strlen(text) < room ? strlen(text) : room;
    memcpy(bytes, text, length);
    history_take(&p->history, length);
    follow_all(p);
}

static void on_deadline(struct process *p)
{
    if (p->phase == TERMINAL_FLUSHING)
        _exit(0);
    terminal_hang_up(p);
    p->deadline_ms = 0;
}

static int time_left(const struct process *p)
{
    int64_t left_ms = p->deadline_ms - clock_boot_ms(), warning_ms = terminal_warning_wait(&p->warning);
    if (p->deadline_ms == 0)
        left_ms = warning_ms;
    else if (left_ms < 0)
        left_ms = 0;
    else if (warning_ms >= 0 && warning_ms < left_ms)
        left_ms = warning_ms;
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

/* The job has ended, so a client that is not connected has little time to return. */
static void on_host_gone(struct process *p)
{
    closep(&p->host_fd);
    p->is_job_over = true;
    if (viewer_is_open(&p->viewers[0]))
        return;
    if (p->phase == TERMINAL_FLUSHING)
        terminal_leave_within(p, TERMINAL_OVER_MS);
    else
        p->deadline_ms = clock_boot_ms() + TERMINAL_OVER_MS;
}

static void turn(struct process *p)
{
    struct pollfd fds[SOURCES];
    fill(p, fds);
    int n = poll(fds, SOURCES, time_left(p));
    if (n == 0 && p->deadline_ms != 0 && clock_boot_ms() >= p->deadline_ms)
        on_deadline(p);
    if (p->phase == TERMINAL_OPEN)
        warn_if_idle(p);
    if (n <= 0)
        return;
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++)
        if (fds[SOURCE_VIEWERS + i].revents != 0 && viewer_is_open(&p->viewers[i])) {
            if (p->phase == TERMINAL_FLUSHING)
                terminal_leave_within(p, TERMINAL_FLUSH_MS);
            serve_viewer(p, &p->viewers[i], fds[SOURCE_VIEWERS + i].revents);
        }
    if (fds[SOURCE_SINK].revents != 0)
        terminal_on_sink(p);
    for (int i = 0; i < TERMINAL_SOURCES; i++)
        if (fds[SOURCE_OUT + i].revents != 0) {
            show_output(p);
            break;
        }
    if (fds[SOURCE_DOOR].revents != 0)
        terminal_on_visit(p);
    if (fds[SOURCE_CHANNEL].revents != 0)
        on_channel(p);
    if (fds[SOURCE_HOST].revents != 0)
        on_host_gone(p);
}

/* No process of the step is alive, so no more output will follow. A viewer of an exec step may delay it. */
static void drain(struct process *p)
{
    bool is_awaited = !p->is_kept && !p->has_visit && !p->is_hung_up;
    if (is_awaited) {
        turn(p);
        return;
    }
    bool has_moved = p->is_kept ? terminal_keep_output(p) : terminal_pass_on(p);
    if (!has_moved && is_drained(p))
        begin_flushing(p);
    else if (!has_moved)
        turn(p);
}

static void flush(struct process *p)
{
    bool is_busy = false;
    if (!p->is_kept)
        is_busy = send_exec_end(p);
    for (size_t i = 0; p->is_kept && i < TERMINAL_VIEWERS_MAX; i++)
        is_busy |= send_end(p, &p->viewers[i]);
    if (!is_busy)
        _exit(0);
    turn(p);
}

/* True if S has died and no process has the terminal open any more. */
static bool is_abandoned(const struct process *p)
{
    return p->channel_fd < 0 && p->source_fds[0] < 0 && p->source_fds[1] < 0;
}

void terminal_become_user(const struct terminal_setup *setup, const char *name, struct death_timer *death)
{
    enum launch_step step;
    (void)prctl(PR_SET_NAME, name);
    (void)setsid();
    terminal_keep_only(setup);
    if (user_become(setup->spec, &step) < 0)
        _exit(1);
    (void)prctl(PR_SET_DUMPABLE, 0);
    death_timer_open(death);
}

_Noreturn void terminal_run(const struct terminal_setup *setup)
{
    struct process *p = &process;
    terminal_become_user(setup, "mgpu-terminal", &p->death);
    p->setup = setup;
    p->host_fd = setup->host_fd;
    p->is_job_over = setup->spec->is_exec_step && setup->host_fd < 0; // ended during the start
    p->is_tty = setup->spec->is_tty;
    terminal_set_acts(p);
    p->is_kept = !setup->spec->is_exec_step;
    exec_stream_init(&p->exec, setup->spec->is_exec_step && setup->spec->exec_key != 0);
    input_pipe_init(&p->input, setup->sink_fd);
    p->door_fd = setup->door_fd;
    p->channel_fd = setup->channel_fd;
    for (int i = 0; i < TERMINAL_SOURCES; i++)
        p->source_fds[i] = setup->source_fds[i];
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++)
        p->viewers[i].fd = -1;
    terminal_warning_open(&p->warning, setup->spec, setup->seen_fd);
    if (p->is_kept)
        history_open(&p->history, setup->log_fd);
    else
        p->deadline_ms = clock_boot_ms() + (p->is_job_over ? TERMINAL_OVER_MS : FIRST_VISIT_MS);
    for (;;) {
        if (p->phase == TERMINAL_OPEN && is_abandoned(p))
            begin_flushing(p);
        if (p->phase == TERMINAL_DRAINING)
            drain(p);
        else if (p->phase == TERMINAL_FLUSHING)
            flush(p);
        else
            turn(p);
    }
}
