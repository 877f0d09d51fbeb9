/* SPDX-License-Identifier: MIT */
/* Passes bytes from the step to the log and its viewers, or to the client of an exec step. */
#include <errno.h>
#include <unistd.h>

#include "base/memory.h"
#include "shepherd/terminal_private.h"

#define READ_MAX (64U << 10) // bytes of the step's output read in one turn

/* --- output --- */

/* True if bytes arrived. The end of a source closes it. */
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

/* A terminal returns at most 4 KiB at a time. They are collected, so the log is written in larger pieces. */
bool terminal_keep_output(struct process *p)
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

/* How much output of an exec step may be read. The step waits for its viewer; if the viewer has left, output
 * is dropped. */
size_t terminal_exec_room(const struct process *p)
{
    if (p->is_hung_up)
        return READ_MAX;
    return p->has_visit ? exec_stream_room(&p->exec) : 0;
}

void terminal_send_exec(struct process *p)
{
    struct viewer *viewer = &p->viewers[0];
    if (!viewer_is_open(viewer))
        return;
    exec_stream_answer(&p->exec, viewer);
    if (!exec_stream_send(&p->exec, viewer))
        terminal_on_gone(p);
}

bool terminal_pass_on(struct process *p)
{
    static const enum terminal_frame types[TERMINAL_SOURCES] = { TERMINAL_OUTPUT, TERMINAL_ERRORS };
    static uint8_t bytes[READ_MAX];
    bool has_moved = false;
    for (int i = 0; i < TERMINAL_SOURCES; i++) {
        size_t n, room = terminal_exec_room(p);
        if (p->source_fds[i] < 0 || room == 0)
            continue;
        if (!read_source(p, i, bytes, room < READ_MAX ? room : READ_MAX, &n))
            continue;
        has_moved = true;
        if (!p->is_hung_up)
            exec_stream_put(&p->exec, types[i], bytes, n);
        terminal_send_exec(p);
    }
    return has_moved;
}
