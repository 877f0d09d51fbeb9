/* SPDX-License-Identifier: MIT */
/*
 * T: moves the bytes of one step. It runs as the user, allocates nothing, and has these states:
 *
 *   OPEN ──S reports the end of the step──> DRAINING ──no more output──> FLUSHING ──all viewers told──> ended
 *
 * The output of a job's terminal goes to the log, whether or not there are viewers, and each viewer reads it
 * at its own speed (terminal_history.c). A viewer that stops reading costs nothing, and is dropped if it
 * still does not read after the job has ended. The output of an exec step (`mgpu exec`) goes to its single
 * viewer and to no log; the command waits while the viewer does not read, and gets a hangup when it leaves.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/spool.h"
#include "shepherd/death_timer.h"
#include "shepherd/input_pipe.h"
#include "shepherd/terminal.h"
#include "shepherd/terminal_history.h"
#include "shepherd/terminal_idle.h"
#include "shepherd/terminal_viewer.h"
#include "shepherd/user.h"

#define VIEWERS_MAX    16
#define READ_MAX       (64U << 10) // of the step's output in one turn
#define FLUSH_MS       10000       // without progress, at the end
#define FIRST_VISIT_MS 20000       // an exec step is started for a viewer
#define KILL_MARGIN_MS 2000        // after FLUSH_MS, by which it leaves by itself
#define HANGUP_MS      5000        // between SIGHUP and SIGKILL

enum phase { TERMINAL_OPEN, TERMINAL_DRAINING, TERMINAL_FLUSHING };

struct process {
    const struct terminal_setup *setup;
    bool is_kept, is_tty;
    enum phase phase;
    struct input_pipe input; // or the terminal's own side
    int source_fds[TERMINAL_SOURCES], door_fd, channel_fd;
    bool has_visit;  // an exec step's viewer came
    bool is_hung_up; // and has gone
    bool has_end;
    struct terminal_end end;
    int64_t deadline_ms; // boot clock; 0: none
    struct death_timer death;
    uint64_t serial;
    struct terminal_warning warning;
    struct history history;
    struct viewer viewers[VIEWERS_MAX];
};

static struct process process;

static void tell_shepherd(struct process *p, int number, int64_t grace_ms)
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
    return input_pipe_write(&p->input, bytes, length);
}

static void on_input_end(void *arg)
{
    struct process *p = arg;
    static const uint8_t end_of_file = 4; // Ctrl-D
    if (p->is_tty)
        (void)on_input(p, &end_of_file, 1);
    else
        input_pipe_shut(&p->input);
}

static void set_size(struct process *p, const struct terminal_size *size)
{
    struct winsize wanted = { .ws_row = size->rows, .ws_col = size->columns };
    if (p->is_tty && size->rows > 0 && size->columns > 0 && p->input.sink_fd >= 0)
        (void)ioctl(p->input.sink_fd, TIOCSWINSZ, &wanted);
}

/* The newest viewer that may type determines the size. */
static struct viewer *newest(struct process *p)
{
    struct viewer *found = NULL;
    for (size_t i = 0; i < VIEWERS_MAX; i++) {
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
        tell_shepherd(p, number, -1);
}

static const struct viewer_acts acts = {
    .arg = &process, .input = on_input, .input_end = on_input_end, .window = on_window, .signal = on_signal
};

static void hang_up(struct process *p)
{
    p->is_hung_up = true;
    if (p->phase == TERMINAL_OPEN)
        tell_shepherd(p, SIGHUP, HANGUP_MS);
}

static void on_gone(struct process *p)
{
    struct viewer *next = newest(p);
    if (next != NULL)
        set_size(p, &next->size);
    if (!p->is_kept)
        hang_up(p);
}

/* Programs that fill the screen repaint it when the size changes, so it is changed. */
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
        return p->has_visit ? NULL : &p->viewers[0];
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        if (!viewer_is_open(&p->viewers[i]))
            return &p->viewers[i];
    return NULL;
}

static void greet(struct process *p, struct viewer *viewer)
{
    uint8_t position[8];
    if (viewer->position == TERMINAL_LAST_SCREEN)
        viewer->position = history_last_screen(&p->history);
    else if (viewer->position > p->history.end)
        viewer->position = p->history.end;
    terminal_put(position, sizeof(position), viewer->position);
    viewer_put(viewer, TERMINAL_POSITION, position, sizeof(position));
}

static void on_visit(struct process *p)
{
    struct terminal_visit visit;
    int fd = -1;
    if (descriptor_receive(p->door_fd, &visit, sizeof(visit), &fd) != 1 || fd < 0)
        return;
    struct viewer *viewer = visit.magic == TERMINAL_VISIT_MAGIC ? find_place(p) : NULL;
    if (viewer == NULL) {
        /* The connection ends after a word that everybody understands. */
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
    p->has_visit = true;
    p->deadline_ms = 0;
    viewer_open(viewer, fd, &visit, ++p->serial);
    greet(p, viewer);
    if (newest(p) != viewer)
        return;
    if (is_return)
        ask_for_repaint(p, &viewer->size);
    else
        set_size(p, &viewer->size);
}

/* --- output --- */

/* True when something came. The end of a source closes it. */
static bool read_source(struct process *p, int index, uint8_t *bytes, size_t room, size_t *ret_length)
{
    ssize_t n;
    do
        n = read(p->source_fds[index], bytes, room);
    while (n < 0 && errno == EINTR);
    *ret_length = n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN))
        closep(&p->source_fds[index]);
    return n > 0;
}

/* A terminal gives at most 4 KiB at a time: they are collected, so that the log gets larger pieces. */
static bool keep_output(struct process *p)
{
    size_t room, length = 0, n;
    uint8_t *bytes = history_room(&p->history, &room);
    if (room > READ_MAX)
        room = READ_MAX;
    while (length < room && p->source_fds[0] >= 0 && read_source(p, 0, bytes + length, room - length, &n))
        length += n;
    if (length > 0) {
        history_take(&p->history, length);
        terminal_warning_byte(&p->warning);
    }
    return length > 0;
}

/* One frame at a time: the step waits for the viewer. Without a viewer the output is dropped. */
static bool pass_on(struct process *p)
{
    static const enum terminal_frame types[TERMINAL_SOURCES] = { TERMINAL_OUTPUT, TERMINAL_ERRORS };
    static uint8_t dropped[READ_MAX];
    struct viewer *viewer = &p->viewers[0];
    bool has_moved = false;
    for (int i = 0; i < TERMINAL_SOURCES; i++) {
        size_t n;
        bool is_there = viewer_is_open(viewer);
        if (p->source_fds[i] < 0 || (is_there && !viewer_is_idle(viewer)) || (!is_there && !p->is_hung_up))
            continue;
        if (!read_source(p, i, is_there ? viewer_payload(viewer) : dropped, READ_MAX, &n))
            continue;
        has_moved = true;
        if (!is_there)
            continue;
        viewer_commit(viewer, types[i], n);
        if (!viewer_send(viewer))
            on_gone(p);
    }
    return has_moved;
}

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
    if (p->is_kept || !viewer_is_open(&p->viewers[0]))
        return true;
    return viewer_is_idle(&p->viewers[0]);
}

static void leave_within(struct process *p, int64_t ms)
{
    p->deadline_ms = clock_boot_ms() + ms;
    death_timer_set(&p->death, ms + KILL_MARGIN_MS);
}

static void begin_flushing(struct process *p)
{
    if (p->channel_fd >= 0)
        (void)send(p->channel_fd, TERMINAL_DRAINED, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    closep(&p->channel_fd);
    closep(&p->door_fd);
    p->phase = TERMINAL_FLUSHING;
    leave_within(p, FLUSH_MS);
}

/* How much of its standard input the step has read. */
static void put_read(struct process *p, struct viewer *viewer)
{
    uint8_t read[8];
    input_pipe_end(&p->input);
    terminal_put(read, sizeof(read), p->input.read);
    (void)viewer_add(viewer, TERMINAL_READ, read, sizeof(read));
}

/* All output has gone to this viewer: the end follows it. True while there is something to do. */
static bool tell_end(struct process *p, struct viewer *viewer)
{
    uint8_t payload[4 + TERMINAL_TEXT_MAX];
    if (!viewer_is_open(viewer))
        return false;
    bool is_behind = p->is_kept && viewer->position < p->history.end;
    if (!viewer_is_idle(viewer) || is_behind)
        return true;
    if (!viewer->has_end && p->has_end) {
        size_t length = strlen(p->end.text);
        terminal_put(payload, 4, (uint32_t)p->end.code);
        memcpy(payload + 4, p->end.text, length);
        viewer->has_end = true;
        if (!p->is_tty)
            put_read(p, viewer);
        (void)viewer_add(viewer, TERMINAL_END, payload, 4 + length);
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
    SOURCE_SINK,
    SOURCE_OUT,
    SOURCE_VIEWERS = SOURCE_OUT + TERMINAL_SOURCES
};
#define SOURCES (SOURCE_VIEWERS + VIEWERS_MAX)

static bool is_wanted(const struct process *p, const struct viewer *viewer)
{
    return p->phase != TERMINAL_FLUSHING && !viewer_is_waiting(viewer);
}

static void fill(const struct process *p, struct pollfd fds[SOURCES])
{
    const struct viewer *only = &p->viewers[0];
    bool is_held = !p->is_kept && (viewer_is_open(only) ? !viewer_is_idle(only) : !p->is_hung_up);
    fds[SOURCE_DOOR] = (struct pollfd){ p->door_fd, POLLIN, 0 };
    fds[SOURCE_CHANNEL] = (struct pollfd){ p->channel_fd, POLLIN, 0 };
    fds[SOURCE_SINK] = (struct pollfd){ p->input.is_full ? p->input.sink_fd : -1, POLLOUT, 0 };
    for (int i = 0; i < TERMINAL_SOURCES; i++)
        fds[SOURCE_OUT + i] = (struct pollfd){ is_held ? -1 : p->source_fds[i], POLLIN, 0 };
    for (size_t i = 0; i < VIEWERS_MAX; i++) {
        const struct viewer *viewer = &p->viewers[i];
        bool is_behind = p->is_kept && viewer->position < p->history.end;
        bool has_more = !viewer_is_idle(viewer) || is_behind;
        fds[SOURCE_VIEWERS + i] = (struct pollfd){ viewer->fd,
            (short)((is_wanted(p, viewer) ? POLLIN : 0) | (has_more ? POLLOUT : 0)), 0 };
    }
}

static void serve_viewer(struct process *p, struct viewer *viewer, short events)
{
    bool is_here = true;
    if ((events & POLLOUT) != 0)
        is_here = p->is_kept ? viewer_follow(viewer, &p->history) : viewer_send(viewer);
    if (is_here && (events & (POLLHUP | POLLERR)) != 0 && (events & POLLIN) == 0) {
        viewer_close(viewer);
        is_here = false;
    }
    if (is_here && (events & POLLIN) != 0 && is_wanted(p, viewer))
        is_here = viewer_receive(viewer, &acts);
    if (!is_here)
        on_gone(p);
}

static void resume_input(struct process *p)
{
    p->input.is_full = false;
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        if (viewer_is_open(&p->viewers[i]) && viewer_is_waiting(&p->viewers[i]) &&
            !viewer_resume(&p->viewers[i], &acts))
            on_gone(p);
}

static void follow_all(struct process *p)
{
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        if (viewer_is_open(&p->viewers[i]) && viewer_is_idle(&p->viewers[i]) &&
            !viewer_follow(&p->viewers[i], &p->history))
            on_gone(p);
}

static void show_output(struct process *p)
{
    if (!p->is_kept)
        (void)pass_on(p);
    else if (keep_output(p))
        follow_all(p);
}

/* It is in the log too, for users who return later. */
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
    hang_up(p);
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
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        if (fds[SOURCE_VIEWERS + i].revents != 0 && viewer_is_open(&p->viewers[i])) {
            if (p->phase == TERMINAL_FLUSHING)
                leave_within(p, FLUSH_MS);
            serve_viewer(p, &p->viewers[i], fds[SOURCE_VIEWERS + i].revents);
        }
    if (fds[SOURCE_SINK].revents != 0)
        resume_input(p);
    for (int i = 0; i < TERMINAL_SOURCES; i++)
        if (fds[SOURCE_OUT + i].revents != 0) {
            show_output(p);
            break;
        }
    if (fds[SOURCE_DOOR].revents != 0)
        on_visit(p);
    if (fds[SOURCE_CHANNEL].revents != 0)
        on_channel(p);
}

/* Nothing of the step lives: what is there is all there is. A viewer of an exec step may make it wait. */
static void drain(struct process *p)
{
    bool is_awaited = !p->is_kept && !p->has_visit && !p->is_hung_up;
    if (is_awaited) {
        turn(p);
        return;
    }
    bool has_moved = p->is_kept ? keep_output(p) : pass_on(p);
    if (!has_moved && is_drained(p))
        begin_flushing(p);
    else if (!has_moved)
        turn(p);
}

static void flush(struct process *p)
{
    bool is_busy = false;
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        is_busy |= tell_end(p, &p->viewers[i]);
    if (!is_busy)
        _exit(0);
    turn(p);
}

/* S died, and no process has the terminal open any more. */
static bool is_abandoned(const struct process *p)
{
    return p->channel_fd < 0 && p->source_fds[0] < 0 && p->source_fds[1] < 0;
}

_Noreturn void terminal_run(const struct terminal_setup *setup)
{
    struct process *p = &process;
    enum launch_step step;
    (void)prctl(PR_SET_NAME, "mgpu-terminal");
    (void)setsid();
    terminal_keep_only(setup);
    if (user_become(setup->spec, &step) < 0)
        _exit(1);
    (void)prctl(PR_SET_DUMPABLE, 0);
    death_timer_open(&p->death);
    p->setup = setup;
    p->is_tty = setup->spec->is_tty;
    p->is_kept = !setup->spec->is_exec_step;
    input_pipe_init(&p->input, setup->sink_fd);
    p->door_fd = setup->door_fd;
    p->channel_fd = setup->channel_fd;
    for (int i = 0; i < TERMINAL_SOURCES; i++)
        p->source_fds[i] = setup->source_fds[i];
    for (size_t i = 0; i < VIEWERS_MAX; i++)
        p->viewers[i].fd = -1;
    terminal_warning_open(&p->warning, setup->spec, setup->seen_fd);
    if (p->is_kept)
        history_open(&p->history, setup->log_fd);
    else
        p->deadline_ms = clock_boot_ms() + FIRST_VISIT_MS;
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
