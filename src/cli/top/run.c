/* SPDX-License-Identifier: MIT */
/*
 * One thread waits for keys, mgpud and the next second, and redraws the screen after changes. Signals are
 * unblocked only while it waits, so none is missed between a check and the wait.
 */
#include "cli/top/run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/api/leaving_signals.h"
#include "cli/top/curses.h"
#include "cli/top/draw.h"
#include "cli/top/keys.h"
#include "cli/top/wire.h"

#define TICK_MS     1000
#define PAINT_MS    200 // minimum time between two pictures, unless a key was pressed
#define SETTLE_MS   10000
#define LOG_WAIT_MS 300 // for which a single picture waits for output that may never arrive
#define SELECTED_MS 150 // after this time, the log of the selected job is read

/* --- the terminal's signals --- */

static volatile sig_atomic_t leaving_signal; // 0: no signal was received
static sigset_t outside_signals;             // the original mask

static void on_signal(int signal)
{
    leaving_signal = signal;
}

/* Called before curses starts, which keeps existing handlers. Its own handlers, for a new size and Ctrl-Z,
 * draw, and must not interrupt drawing. */
static void take_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigset_t held;
    leaving_signals(&held);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(&held, number) == 1)
            (void)sigaction(number, &action, NULL);
    (void)sigaddset(&held, SIGWINCH);
    (void)sigaddset(&held, SIGTSTP);
    (void)sigprocmask(SIG_BLOCK, &held, &outside_signals);
}

/* Runs another program on the terminal, with the original signal mask. */
static void go_outside(struct top *top, void (*act)(struct top *top))
{
    sigset_t held;
    const struct sigaction as_usual = { .sa_handler = SIG_DFL };
    struct sigaction of_curses;
    curses_leave();
    (void)sigaction(
        SIGTSTP, &as_usual, &of_curses); // the handler of curses would redraw a screen that is not in use now
    (void)sigprocmask(SIG_SETMASK, &outside_signals, &held);
    act(top);
    (void)sigprocmask(SIG_SETMASK, &held, NULL);
    (void)sigaction(SIGTSTP, &of_curses, NULL);
    if (leaving_signal == SIGINT) // that key was for the program that had the terminal
        leaving_signal = 0;
    curses_return();
    top_wire_resume(top);
    top->is_changed = true;
}

/* If the terminal is closed, this program ends by that signal at once, like other programs. When the session
 * leader has ended too, the kernel sends the processes of the session another SIGHUP and SIGCONT. These must
 * not arrive while this program is still exiting, for example in a leak check, which waits for a stop that
 * SIGCONT would undo. */
static void die_of_hangup(void)
{
    (void)signal(SIGHUP, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &outside_signals, NULL);
    (void)raise(SIGHUP);
}

/* --- the loop --- */

static bool take_keys(struct top *top)
{
    bool is_any = false;
    for (;;) {
        struct curses_event event = curses_next();
        switch (event.kind) {
        case CURSES_NOTHING: return is_any;
        case CURSES_KEY: top_press(top, event.code); break;
        case CURSES_MOUSE: top_click(top, event.y, event.x, event.wheel, event.is_double); break;
        case CURSES_RESIZED: top->is_changed = true; break;
        }
        is_any = true;
        if (top->is_leaving)
            return true;
    }
}

static void paint(struct top *top)
{
    int rows = 0, columns = 0;
    curses_size(&rows, &columns);
    if (!top->view.is_frozen)
        top->now_ms = clock_wall_ms();
    top_draw(top, rows, columns);
    curses_show(&top->canvas, &top_themes[top->prefs.theme]);
    top->is_changed = top->is_urgent = false;
}

/* Moving through the list opens no logs on the way. */
static void follow_selection(struct top *top, int64_t *selected, int64_t *since_ms)
{
    int64_t now = clock_boot_ms();
    if (*selected != top->view.selected) {
        *selected = top->view.selected;
        *since_ms = now;
    }
    if (now - *since_ms >= SELECTED_MS && top->model.is_complete)
        top_log_follow(top, top->view.selected);
}

/* Waits for a key, mgpud or the time; true if the terminal was closed. */
static bool wait_for_any(struct top *top, int most_ms, bool ready[TOP_FDS])
{
    int fds[TOP_FDS] = { -1, -1, -1, -1 };
    struct pollfd polled[TOP_FDS + 1];
    if (!top->view.is_frozen) {
        top_wire_fds(top, fds);
        most_ms = top_wire_wait_ms(top, most_ms);
    }
    for (int i = 0; i < TOP_FDS; i++)
        polled[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
    polled[TOP_FDS] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
    const struct timespec timeout = { most_ms / 1000, (long)(most_ms % 1000) * 1000000 };
    int n = ppoll(polled, TOP_FDS + 1, &timeout, &outside_signals);
    for (int i = 0; i < TOP_FDS; i++)
        ready[i] = n > 0 && fds[i] >= 0 && polled[i].revents != 0;
    return n > 0 && (polled[TOP_FDS].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

static void loop(struct top *top)
{
    bool ready[TOP_FDS] = { false };
    int64_t painted_ms = 0, ticked_ms = 0, selected = 0, selected_ms = 0;
    while (!top->is_leaving && leaving_signal == 0) {
        bool has_key = take_keys(top);
        if (!top->view.is_frozen)
            top_wire_advance(top, ready);
        int64_t now = clock_boot_ms();
        bool is_tick = now / TICK_MS != ticked_ms / TICK_MS;
        bool is_due = top->is_changed && (top->is_urgent || now - painted_ms >= PAINT_MS);
        if (is_tick || is_due || has_key) {
            paint(top);
            painted_ms = now;
            ticked_ms = now;
        }
        follow_selection(top, &selected, &selected_ms);
        int wait_ms = TICK_MS - (int)(now % TICK_MS);
        if (top->is_changed && painted_ms + PAINT_MS - now < wait_ms)
            wait_ms = (int)(painted_ms + PAINT_MS - now);
        if (top->log.job != selected && SELECTED_MS < wait_ms)
            wait_ms = SELECTED_MS;
        if (wait_for_any(top, wait_ms < 0 ? 0 : wait_ms, ready))
            leaving_signal = SIGHUP;
    }
}

void top_init(struct top *top, struct call *call)
{
    top->call = call;
    top->own_uid = (int64_t)geteuid();
    top->now_ms = clock_wall_ms();
    top->view.focus = PANEL_JOBS;
    top->view.is_list_old = true;
    screen_open(&top->screen, STDOUT_FILENO, call->color);
    top_prefs_init(&top->prefs);
    top_prefs_load(&top->prefs);
}

void top_clear(struct top *top)
{
    json_t *values[] = { top->model.gpus, top->model.past, top->model.nodes, top->model.users,
        top->model.sums, top->model.history, top->model.why, top->model.detail, top->model.detail_past };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        json_decref(values[i]);
    top_jobs_clear(&top->model.jobs);
    free(top->view.rows);
    strings_clear(&top->view.popup_lines);
    strings_clear(&top->view.targets);
    top_log_clear(&top->log);
    canvas_clear(&top->canvas);
    top_prefs_clear(&top->prefs);
}

int top_run(struct top *top, const char *place, struct error *err)
{
    bool has_color = top->screen.has_color;
    take_signals();
    int r = curses_open(has_color, err);
    if (r < 0) {
        (void)sigprocmask(SIG_SETMASK, &outside_signals, NULL);
        return r;
    }
    top->screen.has_color = false; // colours are drawn by the canvas here
    top->outside = go_outside;
    top_wire_init(top);
    if (place != NULL)
        top_go(top, place);
    loop(top);
    curses_close();
    top_wire_clear(top);
    if (leaving_signal == SIGHUP)
        die_of_hangup();
    (void)sigprocmask(SIG_SETMASK, &outside_signals, NULL);
    return 0;
}

int top_print(struct top *top, int rows, int columns, const char *place, struct error *err)
{
    int r = client_get(&top->call->client, API_PATH "/version", NULL,
        err); // an unreachable mgpud is reported as by other verbs
    if (r < 0)
        return r;
    top->screen.has_color = false;
    top->screen.is_tty = true; // formatted for display
    top_wire_init(top);
    top_draw(top, rows, columns);
    r = top_wire_await_answers(top, SETTLE_MS, err);
    if (r == 0 && place != NULL)
        top_go(top, place);
    if (r == 0) {
        top_draw(top, rows, columns); // now the selection is known
        top_log_follow(top, top->view.selected);
        r = top_wire_await_answers(top, SETTLE_MS, err);
    }
    if (r == 0)
        r = top_wire_await_log(top, LOG_WAIT_MS, err);
    if (r == 0) {
        top->now_ms = clock_wall_ms();
        top_draw(top, rows, columns);
        _cleanup_free_ char *text = canvas_text(&top->canvas);
        (void)fputs(text, stdout);
    }
    top_wire_clear(top);
    return r;
}
