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
    *labels = (struct labels){ .count = step->count, .width = 1 };
    labels->sources = xcalloc(step->count + 2, sizeof(*labels->sources));
    labels->lines = xcalloc(step->count + 1, sizeof(*labels->lines));
    for (uint32_t i = 0; i < step->count; i++)
        labels->sources[i] = (struct pollfd){ .fd = step->tasks[i].pipe_fd, .events = POLLIN };
    for (uint32_t n = step->count - 1; n >= 10; n /= 10)
        labels->width++;
}

bool labels_are_open(const struct labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++)
        if (labels->sources[i].fd >= 0)
            return true;
    return false;
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

static void take(struct labels *labels, uint32_t task)
{
    char piece[READ_SIZE];
    ssize_t n = read(labels->sources[task].fd, piece, sizeof(piece));
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0)
        buffer_append(&labels->lines[task], piece, (size_t)n);
    print_lines(labels, task, n <= 0);
    if (n > 0)
        return;
    (void)close(labels->sources[task].fd);
    labels->sources[task].fd = -1;
}

bool labels_wait(struct labels *labels, int signal_fd, int record_fd, int timeout_ms)
{
    struct pollfd *record = &labels->sources[labels->count + 1];
    labels->sources[labels->count] = (struct pollfd){ .fd = signal_fd, .events = POLLIN };
    *record = (struct pollfd){ .fd = record_fd, .events = POLLIN };
    if (poll(labels->sources, labels->count + 2, timeout_ms) < 0)
        return false;
    for (uint32_t i = 0; i < labels->count; i++)
        if (labels->sources[i].fd >= 0 && labels->sources[i].revents != 0)
            take(labels, i);
    return record_fd >= 0 && record->revents != 0;
}

void labels_clear(struct labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++)
        buffer_clear(&labels->lines[i]);
    free(labels->lines);
    free(labels->sources);
}
