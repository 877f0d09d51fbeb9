/* SPDX-License-Identifier: MIT */
/* Steps on a terminal, and exec_steps, through the real program; the test is the agent and the viewer. */

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/descriptors.h"
#include "base/memory.h"
#include "base/terminal.h"
#include "fixture.h"
#include "job/state.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

#define TIMEOUT_MS 20000

struct view {
    int fd;
    struct buffer input, output, errors;
    uint64_t position, skipped;
    int status; // -2: none yet
    char text[TERMINAL_TEXT_MAX + 1];
    bool is_over;
};

static void view_open(struct fixture *f, struct view *view, uint64_t position, bool is_read_only)
{
    int pair[2];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const struct terminal_visit visit = {
        .magic = TERMINAL_VISIT_MAGIC, .is_read_only = is_read_only, .size = { 33, 111 }, .position = position
    };
    *view = (struct view){ .status = -2 };
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    _cleanup_close_ int theirs = pair[1];
    _cleanup_close_ int door = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/" SPOOL_TTY, f->dir);
    assert_int_equal(connect(door, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(descriptor_send(door, &visit, sizeof(visit), theirs), 0);
    view->fd = pair[0];
}

static void view_close(struct view *view)
{
    closep(&view->fd);
    buffer_clear(&view->input);
    buffer_clear(&view->output);
    buffer_clear(&view->errors);
}

static void take_frame(struct view *view, uint8_t type, const uint8_t *payload, size_t length)
{
    if (type == TERMINAL_OUTPUT)
        buffer_append(&view->output, payload, length);
    else if (type == TERMINAL_ERRORS)
        buffer_append(&view->errors, payload, length);
    else if (type == TERMINAL_POSITION)
        view->position = terminal_get(payload, 8);
    else if (type == TERMINAL_SKIPPED)
        view->skipped += terminal_get(payload, 8);
    else if (type == TERMINAL_END) {
        view->status = (int)(int32_t)terminal_get(payload, 4);
        memcpy(view->text, payload + 4, length - 4);
    }
}

/* Reads once, waiting for it. */
static void view_read(struct view *view)
{
    uint8_t bytes[65536], type;
    size_t length, at = 0;
    struct pollfd wanted = { .fd = view->fd, .events = POLLIN };
    if (poll(&wanted, 1, TIMEOUT_MS) != 1)
        fail_msg("the terminal says no more; so far: %s", buffer_text(&view->output));
    ssize_t n = recv(view->fd, bytes, sizeof(bytes), 0);
    if (n <= 0) {
        view->is_over = true;
        return;
    }
    buffer_append(&view->input, bytes, (size_t)n);
    while (view->input.length - at >= TERMINAL_HEAD_SIZE) {
        assert_true(terminal_read_head(view->input.bytes + at, &type, &length));
        if (view->input.length - at < TERMINAL_HEAD_SIZE + length)
            break;
        take_frame(view, type, view->input.bytes + at + TERMINAL_HEAD_SIZE, length);
        at += TERMINAL_HEAD_SIZE + length;
    }
    memmove(view->input.bytes, view->input.bytes + at, view->input.length - at);
    view->input.length -= at;
}

static void view_await(struct view *view, const char *text)
{
    while (strstr(buffer_text(&view->output), text) == NULL) {
        if (view->is_over)
            fail_msg("'%s' did not come, but: %s", text, buffer_text(&view->output));
        view_read(view);
    }
}

static void view_finish(struct view *view)
{
    while (!view->is_over)
        view_read(view);
}

static void view_say(const struct view *view, enum terminal_frame type, const void *payload, size_t length)
{
    uint8_t head[TERMINAL_HEAD_SIZE];
    terminal_head(head, type, length);
    assert_int_equal(send(view->fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
    assert_int_equal(send(view->fd, payload, length, MSG_NOSIGNAL), length);
}

static void start_on_terminal(struct fixture *f, const char *script)
{
    f->spec.is_tty = true;
    fixture_script(f, script);
    fixture_start(f);
    fixture_await(f, "started");
}

CASE(a_step_has_a_terminal_of_the_size_asked_for, f)
{
    f->spec.is_tty = true;
    f->spec.tty_rows = 7;
    f->spec.tty_columns = 70;
    fixture_script(
        f, "stty size; test -t 0 && test -t 1 && test -t 2 && echo all; echo here > /dev/tty; exit 3");
    fixture_run(f);
    assert_int_equal(f->exit.exit_code, 3);
    assert_string_equal(f->output, "7 70\r\nall\r\nhere\r\n");
    assert_int_equal(f->exit.log_bytes, strlen(f->output));
    assert_string_equal(f->exit.tail, "7 70\nall\nhere\n");
}

CASE(a_viewer_sees_types_and_hears_the_end, f)
{
    struct view view;
    start_on_terminal(f, "echo ready; read word; stty size; echo \"<$word>\"; exit 9");
    view_open(f, &view, 0, false);
    view_await(&view, "ready");
    view_say(&view, TERMINAL_INPUT, "hello\n", 6);
    view_finish(&view);
    assert_non_null(strstr(buffer_text(&view.output), "33 111"));
    assert_non_null(strstr(buffer_text(&view.output), "<hello>"));
    assert_int_equal(view.status, 9);
    view_close(&view);
    fixture_finish(f);
}

CASE(who_only_looks_types_nothing_and_sets_no_size, f)
{
    struct view watcher, typist;
    start_on_terminal(f, "echo ready; read word; stty size; echo \"<$word>\"");
    view_open(f, &typist, 0, false);
    view_await(&typist, "ready");
    view_open(f, &watcher, 0, true);
    view_await(&watcher, "ready");
    view_say(&watcher, TERMINAL_INPUT, "no\n", 3);
    view_say(&watcher, TERMINAL_WINDOW, "\0\5\0\5", 4);
    view_say(&typist, TERMINAL_WINDOW, "\0\50\0\144", 4); // 40 by 100
    view_say(&typist, TERMINAL_INPUT, "yes\n", 4);
    view_finish(&watcher);
    assert_non_null(strstr(buffer_text(&watcher.output), "40 100"));
    assert_non_null(strstr(buffer_text(&watcher.output), "<yes>"));
    view_close(&watcher);
    view_close(&typist);
    fixture_finish(f);
}

CASE(a_late_viewer_begins_at_a_line_of_the_last_screen, f)
{
    struct view view;
    start_on_terminal(f, "seq -w 1 9999; echo ready; read word");
    fixture_await_output(f, "ready");
    view_open(f, &view, TERMINAL_LAST_SCREEN, false);
    view_await(&view, "ready");
    assert_in_range(view.output.length, 15000, 17000);
    assert_int_equal(view.output.bytes[4], '\r'); // "8701\r\n": the line is whole
    assert_int_equal(view.position % 6, 0);
    view_say(&view, TERMINAL_INPUT, "\n", 1);
    view_finish(&view);
    view_close(&view);
    fixture_finish(f);
}

/* 8 MB are more than everything in between holds. */
CASE(a_viewer_who_does_not_read_stops_nothing_and_misses_nothing, f)
{
    _cleanup_(view_close) struct view view;
    start_on_terminal(f, "read word; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo done");
    view_open(f, &view, 0, false);
    view_say(&view, TERMINAL_INPUT, "\n", 1);
    fixture_finish(f); // the step is over, and nobody has read
    assert_int_equal(f->exit.exit_code, 0);
    assert_int_equal(f->exit.log_bytes, 2 + 8000000 + 2 + 6);
    view_finish(&view);
    assert_int_equal(view.output.length, f->exit.log_bytes);
    assert_int_equal(view.skipped, 0);
    assert_int_equal(view.status, 0);
}

/* There is no log to read it from: what was not kept is counted, and the rest is there. */
CASE(without_a_log_a_slow_viewer_is_told_what_it_missed, f)
{
    _cleanup_(view_close) struct view view;
    free(f->spec.output);
    f->spec.output = xstrdup("/dev/null");
    f->spec.is_output_default = false;
    start_on_terminal(f, "read word; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo done");
    view_open(f, &view, 0, false);
    view_say(&view, TERMINAL_INPUT, "\n", 1);
    fixture_await(f, "exit");
    view_finish(&view);
    assert_true(view.skipped > 0);
    assert_int_equal(view.skipped + view.output.length, 2 + 3000000 + 2 + 6);
    assert_non_null(strstr(buffer_text(&view.output), "x\r\ndone\r\n"));
}

CASE(a_viewer_who_speaks_nonsense_is_sent_away, f)
{
    static const char *const nonsense[] = { "w\0\0\1x", "i\xff\xff\xff" };
    struct view view;
    start_on_terminal(f, "echo ready; read word; echo \"<$word>\"");
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        view_open(f, &view, 0, false);
        view_await(&view, "ready");
        (void)send(view.fd, nonsense[i], i < 1 ? 5 : 4, MSG_NOSIGNAL);
        view_finish(&view);
        assert_int_equal(view.status, -2);
        view_close(&view);
    }
    view_open(f, &view, 0, false);
    view_say(&view, TERMINAL_INPUT, "still\n", 6);
    view_await(&view, "<still>");
    view_close(&view);
    fixture_finish(f);
}

CASE(frames_of_a_newer_viewer_are_passed_over, f)
{
    struct view view;
    start_on_terminal(f, "echo ready; read word; echo \"<$word>\"");
    view_open(f, &view, 0, false);
    view_await(&view, "ready");
    (void)send(view.fd, "?\0\0\3new!\0\0\0", 11, MSG_NOSIGNAL);
    view_say(&view, TERMINAL_INPUT, "still\n", 6);
    view_await(&view, "<still>");
    view_close(&view);
    fixture_finish(f);
}

CASE(viewers_beyond_the_limit_are_told_so, f)
{
    struct view views[17];
    start_on_terminal(f, "echo ready; read word");
    for (size_t i = 0; i < 17; i++) {
        view_open(f, &views[i], 0, false);
        if (i < 16)
            view_await(&views[i], "ready");
    }
    view_finish(&views[16]);
    assert_int_equal(views[16].status, -1);
    view_say(&views[3], TERMINAL_INPUT, "\n", 1);
    for (size_t i = 0; i < 17; i++)
        view_close(&views[i]);
    fixture_finish(f);
}

CASE(the_death_of_the_shepherd_hangs_up_on_nobody, f)
{
    struct view view, later;
    start_on_terminal(f, "echo ready; read word; echo \"<$word>\"; exit 4");
    view_open(f, &view, 0, false);
    view_await(&view, "ready");
    fixture_kill_shepherd(f);
    view_open(f, &later, 0, false);
    view_await(&later, "ready");
    fixture_adopt(f);
    view_say(&view, TERMINAL_INPUT, "on\n", 3);
    view_await(&later, "<on>");
    fixture_finish(f);
    assert_int_equal(f->exit.exit_code, 4);
    view_finish(&later);
    view_close(&view);
    view_close(&later);
}

CASE(what_the_step_leaves_on_its_terminal_is_ended, f)
{
    f->spec.is_tty = true;
    fixture_script(f, "trap '' HUP; sleep 8765 & echo done");
    fixture_run(f);
    assert_string_equal(f->output, "done\r\n");
    assert_int_equal(fixture_count_sleepers(f, "8765"), 0);
}

TEST_AS(what_the_step_leaves_on_its_terminal_is_ended_with_cgroup,
    run_what_the_step_leaves_on_its_terminal_is_ended, fixture_setup_cgroup, fixture_teardown)

CASE(a_guest_without_a_host_does_not_stay, f)
{
    f->spec.is_exec_step = true;
    free(f->spec.output);
    f->spec.output = xstrdup("/dev/null");
    f->spec.is_output_default = false;
    fixture_script(f, "sleep 8764");
    fixture_start(f);
    fixture_await(f, "exit");
    fixture_read_exit(f);
    assert_int_equal(f->exit.end, END_CANCELLED);
    assert_int_equal(fixture_count_sleepers(f, "8764"), 0);
}

/* As in a bare chroot. */
static bool has_terminals(void)
{
    _cleanup_close_ int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 && access("/dev/pts", X_OK) == 0 && ptsname(fd) != NULL && access(ptsname(fd), F_OK) == 0;
}

int main(void)
{
    if (!has_terminals()) {
        (void)puts("no pseudoterminals here (devpts)");
        return 77;
    }
    return unit_tests_run(NULL, NULL);
}
