/* SPDX-License-Identifier: MIT */
#include "cli/slurm/labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define READ_SIZE      16384
#define LINE_MAX_BYTES (1U << 20) // longer lines are split

void labels_init(struct labels *labels, const struct step *step)
{
    *labels = (struct labels){ .is_on = step->job->is_labelled, .count = step->count, .width = 1 };
    labels->lines = xcalloc(step->count + 1, sizeof(*labels->lines));
    for (uint32_t n = step->count - 1; n >= 10; n /= 10)
        labels->width++;
}

bool labels_fill(const struct labels *labels, const struct step *step, struct pollfd *sources)
{
    bool is_open = false;
    for (uint32_t i = 0; i < labels->count; i++) {
        sources[i] = (struct pollfd){ .fd = step->tasks[i].pipe_fd, .events = POLLIN };
        is_open |= sources[i].fd >= 0;
    }
    return is_open;
}

static void print(const struct labels *labels, uint32_t task, const char *line, size_t length)
{
    (void)printf("%*u: %.*s\n", labels->width, task, (int)length, line);
}

/* All lines that are whole; at the end of the task the rest, too. */
static void print_lines(struct labels *labels, uint32_t task, bool is_over)
{
    struct buffer *held = &labels->lines[task];
    const char *text = (const char *)held->bytes;
    size_t begin = 0;
    for (size_t i = 0; i < held->length; i++)
        if (text[i] == '\n') {
            print(labels, task, text + begin, i - begin);
            begin = i + 1;
        }
    if ((is_over || held->length - begin > LINE_MAX_BYTES) && begin < held->length) {
        print(labels, task, text + begin, held->length - begin);
        begin = held->length;
    }
    (void)fflush(stdout);
    if (begin == 0)
        return;
    memmove(held->bytes, held->bytes + begin, held->length - begin);
    held->length -= begin;
}

void labels_add(struct labels *labels, uint32_t task, const void *bytes, size_t length)
{
    buffer_append(&labels->lines[task], bytes, length);
    print_lines(labels, task, false);
}

static void take(struct labels *labels, struct step_task *task)
{
    char piece[READ_SIZE];
    ssize_t n = read(task->pipe_fd, piece, sizeof(piece));
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0)
        buffer_append(&labels->lines[task->id], piece, (size_t)n);
    print_lines(labels, task->id, n <= 0);
    if (n > 0)
        return;
    closep(&task->pipe_fd);
    task->pipe_fd = -1;
}

void labels_serve(struct labels *labels, struct step *step, const struct pollfd *sources)
{
    for (uint32_t i = 0; i < labels->count; i++)
        if (sources[i].fd >= 0 && sources[i].revents != 0)
            take(labels, &step->tasks[i]);
}

void labels_end(struct labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++)
        if (labels->lines[i].length > 0)
            print_lines(labels, i, true);
}

void labels_clear(struct labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++)
        buffer_clear(&labels->lines[i]);
    free(labels->lines);
}
