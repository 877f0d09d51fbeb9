/* SPDX-License-Identifier: MIT */
#include "shepherd/input_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"

void input_pipe_init(struct input_pipe *input, int sink_fd)
{
    *input = (struct input_pipe){ .sink_fd = sink_fd, .count_fd = -1 };
}

static uint64_t count_unread(const struct input_pipe *input)
{
    int unread = 0;
    int fd = input->sink_fd >= 0 ? input->sink_fd : input->count_fd;
    bool is_known = fd >= 0 && ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
    return is_known && (uint64_t)unread <= input->taken ? (uint64_t)unread : 0;
}

size_t input_pipe_write(struct input_pipe *input, const uint8_t *bytes, size_t length)
{
    if (input->sink_fd < 0)
        return length;
    ssize_t n = write(input->sink_fd, bytes, length);
    input->is_full = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (input->is_full)
        return 0;
    if (n < 0) {
        input_pipe_end(input);
        return length;
    }
    input->taken += (uint64_t)n;
    return (size_t)n;
}

/* A reader of our own would hide that the step has closed the pipe, so it is opened only after the last
 * write. */
void input_pipe_shut(struct input_pipe *input)
{
    char path[40];
    if (input->sink_fd < 0)
        return;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", input->sink_fd);
    input->count_fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    closep(&input->sink_fd);
    input->is_full = false;
}

void input_pipe_end(struct input_pipe *input)
{
    if (input->is_read_over)
        return;
    input->read = input->taken - count_unread(input);
    input->is_read_over = true;
    input->is_full = false;
    closep(&input->sink_fd);
    closep(&input->count_fd);
}
