/* SPDX-License-Identifier: MIT */
/* Viewers of a terminal, or the client of an exec step: how they connect, what they may do, and how they
 * leave. */
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/spool.h"
#include "shepherd/terminal_private.h"

#define KILL_MARGIN_MS 2000 // after TERMINAL_FLUSH_MS, by when it exits by itself
#define HANGUP_MS      5000 // between SIGHUP and SIGKILL

/* Sends the shepherd a signal for the step. */
static void signal_shepherd(struct process *p, int number, int64_t grace_ms)
{
    struct spool_command command = {
        .magic = SPOOL_COMMAND_MAGIC, .signal = (uint32_t)number, .grace_ms = grace_ms
    };
    if (p->channel_fd >= 0 && number > 0 && number < NSIG)
        (void)send(p->channel_fd, &command, sizeof(command), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- what viewers do --- */

static size_t on_input(void *arg, const uint8_t *bytes, size_t length)
{
    struct process *p = arg;
    terminal_warning_byte(&p->warning);
    if (!p->exec.can_return)
        return input_pipe_write(&p->input, bytes, length);
    size_t taken = exec_stream_take_input(&p->exec, bytes, length);
    (void)exec_stream_write_input(&p->exec, &p->input);
    return taken;
}

static void on_input_end(void *arg)
{
    struct process *p = arg;
    static const uint8_t end_of_file = 4; // Ctrl-D
    if (p->is_tty)
        (void)on_input(p, &end_of_file, 1);
    else if (p->exec.can_return && p->input.is_full)
        p->exec.is_input_over = true; // after what waits
    else
        input_pipe_shut(&p->input);
}

/* The viewer keeps any input that could not be passed to the terminal. */
void terminal_on_sink(struct process *p)
{
    p->input.is_full = false;
    bool is_written = exec_stream_write_input(&p->exec, &p->input);
    if (is_written && p->exec.is_input_over)
        input_pipe_shut(&p->input);
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++)
        if (viewer_is_open(&p->viewers[i]) && viewer_is_waiting(&p->viewers[i]) &&
            !viewer_resume(&p->viewers[i], &p->acts))
            terminal_on_gone(p);
    terminal_send_exec(p);
}

static void set_size(struct process *p, const struct terminal_size *size)
{
    struct winsize wanted = { .ws_row = size->rows, .ws_col = size->columns };
    if (p->is_tty && size->rows > 0 && size->columns > 0 && p->input.sink_fd >= 0)
        (void)ioctl(p->input.sink_fd, TIOCSWINSZ, &wanted);
}

/* The newest viewer with permission to type determines the size. */
static struct viewer *newest(struct process *p)
{
    struct viewer *found = NULL;
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++) {
        struct viewer *viewer = &p->viewers[i];
        if (viewer_is_open(viewer) && !viewer->is_read_only && viewer->size.rows > 0 &&
            (found == NULL || viewer->serial > found->serial))
            found = viewer;
    }
    return found;
}

static void on_window(void *arg, struct viewer *viewer)
{
    struct process *p = arg;
    if (newest(p) == viewer)
        set_size(p, &viewer->size);
}

static void on_signal(void *arg, int number)
{
    struct process *p = arg;
    if (!p->is_kept)
        signal_shepherd(p, number, -1);
}

void terminal_hang_up(struct process *p)
{
    if (p->phase == TERMINAL_OPEN && !p->is_hung_up)
        signal_shepherd(p, SIGHUP, HANGUP_MS);
    p->is_hung_up = true;
}

static void on_leave(void *arg)
{
    struct process *p = arg;
    if (!p->is_kept)
        terminal_hang_up(p);
}

static void on_confirmed(void *arg, uint64_t position)
{
    struct process *p = arg;
    if (!p->is_kept)
        exec_stream_confirm(&p->exec, position);
}

void terminal_set_acts(struct process *p)
{
    p->acts = (struct viewer_acts){ .arg = p,
        .input = on_input,
        .input_end = on_input_end,
        .window = on_window,
        .signal = on_signal,
        .leave = on_leave,
        .confirmed = on_confirmed };
}

int64_t terminal_keep_ms(const struct process *p)
{
    return p->is_job_over ? TERMINAL_OVER_MS : TERMINAL_KEEP_MS;
}

void terminal_leave_within(struct process *p, int64_t ms)
{
    p->deadline_ms = clock_boot_ms() + ms;
    death_timer_set(&p->death, ms + KILL_MARGIN_MS);
}

/* The connection of an exec step was lost: its client has some time to return. */
static void await_return(struct process *p)
{
    if (!p->exec.can_return || p->is_hung_up)
        terminal_hang_up(p);
    else if (p->phase == TERMINAL_FLUSHING)
        terminal_leave_within(p, terminal_keep_ms(p));
    else
        p->deadline_ms = clock_boot_ms() + terminal_keep_ms(p);
}

void terminal_on_gone(struct process *p)
{
    struct viewer *next = newest(p);
    if (next != NULL)
        set_size(p, &next->size);
    if (!p->is_kept)
        await_return(p);
}

/* Full-screen programs repaint when the size changes, so the size is changed. */
static void ask_for_repaint(struct process *p, const struct terminal_size *size)
{
    struct terminal_size other = { (uint16_t)(size->rows + 1), size->columns };
    set_size(p, &other);
    set_size(p, size);
}

/* --- visits --- */

static struct viewer *find_place(struct process *p)
{
    if (!p->is_kept)
        return p->is_hung_up || (p->has_visit && !p->exec.can_return) ? NULL : &p->viewers[0];
    for (size_t i = 0; i < TERMINAL_VIEWERS_MAX; i++)
        if (!viewer_is_open(&p->viewers[i]))
            return &p->viewers[i];
    return NULL;
}

static void greet(struct process *p, struct viewer *viewer)
{
    uint8_t position[8];
    if (!p->is_kept) {
        if (!exec_stream_greet(&p->exec, viewer, viewer->position))
            viewer_close(viewer); // not the client of this exec step
        return;
    }
    if (viewer->position == TERMINAL_LAST_SCREEN)
        viewer->position = history_last_screen(&p->history);
    else if (viewer->position > p->history.end)
        viewer->position = p->history.end;
    terminal_put(position, sizeof(position), viewer->position);
    viewer_put(viewer, TERMINAL_POSITION, position, sizeof(position));
}

void terminal_on_visit(struct process *p)
{
    struct terminal_visit visit;
    int fd = -1;
    if (descriptor_receive(p->door_fd, &visit, sizeof(visit), &fd) != 1)
        return;
    if (fd < 0) {
        if (visit.magic == TERMINAL_FAREWELL_MAGIC && p->exec.can_return)
            terminal_hang_up(p);
        return;
    }
    struct viewer *viewer = visit.magic == TERMINAL_VISIT_MAGIC ? find_place(p) : NULL;
    if (viewer == NULL) {
        /* The connection ends after a message that every client understands. */
        static const char full[] = "this terminal has the maximum number of viewers";
        uint8_t frame[TERMINAL_HEAD_SIZE + 4 + sizeof(full) - 1] = { 0 };
        terminal_head(frame, TERMINAL_END, sizeof(frame) - TERMINAL_HEAD_SIZE);
        terminal_put(frame + TERMINAL_HEAD_SIZE, 4, TERMINAL_REFUSED);
        memcpy(frame + TERMINAL_HEAD_SIZE + 4, full, sizeof(full) - 1);
        (void)send(fd, frame, sizeof(frame), MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)close(fd);
        return;
    }
    bool is_return = visit.position == TERMINAL_LAST_SCREEN;
    if (p->phase == TERMINAL_FLUSHING)
        terminal_leave_within(p, TERMINAL_FLUSH_MS);
    else
        p->deadline_ms = 0;
    if (p->is_kept || !p->has_visit)
        viewer_open(viewer, fd, &visit, ++p->serial);
    else
        viewer_return(viewer, fd, &visit, ++p->serial);
    p->has_visit = true;
    greet(p, viewer);
    if (newest(p) != viewer)
        return;
    if (is_return)
        ask_for_repaint(p, &viewer->size);
    else
        set_size(p, &viewer->size);
}
