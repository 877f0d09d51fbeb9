/* SPDX-License-Identifier: MIT */
#include "compat/step/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define READ_SIZE      16384
#define LINE_MAX_BYTES (1U << 20) // longer lines are split

/* Lines of standard output and standard error are separate: each has its own place in `lines`. */
static struct buffer *held_of(const struct labels *labels, uint32_t task, int stream)
{
    return &labels->lines[(size_t)task * LABEL_STREAMS + (size_t)stream];
}

void labels_init(struct labels *labels, const struct step *step)
{
    *labels =
        (struct labels){ .step = step, .is_on = step->job->is_labelled, .count = step->count, .width = 1 };
    labels->lines = xcalloc(((size_t)step->count + 1) * LABEL_STREAMS, sizeof(*labels->lines));
    for (uint32_t n = step->count - 1; n >= 10; n /= 10)
        labels->width++;
}

bool labels_fill(const struct labels *labels, const struct step *step, struct pollfd *sources)
{
    bool is_open = false;
    for (uint32_t i = 0; i < labels->count * LABEL_STREAMS; i++) {
        const struct step_task *task = &step->tasks[i / LABEL_STREAMS];
        sources[i] = (struct pollfd){ .fd = task->pipe_fds[i % LABEL_STREAMS], .events = POLLIN };
        is_open |= sources[i].fd >= 0;
    }
    return is_open;
}

/* Prints all complete lines; at the end of the task, also the rest. */
static void print_lines(struct labels *labels, uint32_t task, int stream, bool is_over)
{
    struct buffer *held = held_of(labels, task, stream);
    _cleanup_buffer_ struct buffer out = { 0 };
    int file = labels->step->tasks[task].files[stream];
    const char *text = (const char *)held->bytes;
    size_t begin = 0;
    for (size_t i = 0; i < held->length; i++) {
        bool is_last = i + 1 == held->length && (is_over || held->length - begin > LINE_MAX_BYTES);
        if (text[i] != '\n' && !is_last)
            continue;
        buffer_printf(&out, "%*u: ", labels->width, task);
        buffer_append(&out, text + begin, i - begin + (text[i] != '\n'));
        buffer_append(&out, "\n", 1);
        begin = i + 1;
    }
    if (begin == 0)
        return;
    (void)write_all(file >= 0 ? file : STDOUT_FILENO + stream, out.bytes, out.length);
    memmove(held->bytes, held->bytes + begin, held->length - begin);
    held->length -= begin;
}

void labels_add(struct labels *labels, uint32_t task, int stream, const void *bytes, size_t length)
{
    buffer_append(held_of(labels, task, stream), bytes, length);
    print_lines(labels, task, stream, false);
}

static void take(struct labels *labels, struct step_task *task, int stream)
{
    char piece[READ_SIZE];
    ssize_t n = read(task->pipe_fds[stream], piece, sizeof(piece));
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0)
        buffer_append(held_of(labels, task->id, stream), piece, (size_t)n);
    print_lines(labels, task->id, stream, n <= 0);
    if (n > 0)
        return;
    closep(&task->pipe_fds[stream]);
    task->pipe_fds[stream] = -1;
}

void labels_serve(struct labels *labels, struct step *step, const struct pollfd *sources)
{
    for (uint32_t i = 0; i < labels->count * LABEL_STREAMS; i++)
        if (sources[i].fd >= 0 && sources[i].revents != 0)
            take(labels, &step->tasks[i / LABEL_STREAMS], (int)(i % LABEL_STREAMS));
}

void labels_end(struct labels *labels)
{
    for (uint32_t i = 0; i < labels->count * LABEL_STREAMS; i++)
        print_lines(labels, i / LABEL_STREAMS, (int)(i % LABEL_STREAMS), true);
}

void labels_clear(struct labels *labels)
{
    for (uint32_t i = 0; i < labels->count * LABEL_STREAMS; i++)
        buffer_clear(&labels->lines[i]);
    free(labels->lines);
}
