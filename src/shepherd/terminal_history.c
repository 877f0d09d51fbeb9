/* SPDX-License-Identifier: MIT */
#include "shepherd/terminal_history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"

#define LAST_SCREEN_MAX (16U << 10)

void history_open(struct history *history, int log_fd)
{
    char path[32];
    struct stat st;
    history->end = 0;
    history->log_fd = log_fd;
    history->read_fd = -1;
    history->is_log_torn = false;
    if (fstat(log_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    history->log_start = st.st_size;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
    history->read_fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

uint8_t *history_room(struct history *history, size_t *ret_room)
{
    size_t at = (size_t)(history->end % HISTORY_SIZE);
    *ret_room = HISTORY_SIZE - at;
    return history->bytes + at;
}

void history_take(struct history *history, size_t length)
{
    const uint8_t *bytes = history->bytes + history->end % HISTORY_SIZE;
    history->end += length;
    if (write_all(history->log_fd, bytes, length) < 0)
        history->is_log_torn = true;
}

uint64_t history_oldest(const struct history *history)
{
    return history->end > HISTORY_SIZE ? history->end - HISTORY_SIZE : 0;
}

ssize_t history_read(const struct history *history, uint64_t position, uint8_t *bytes, size_t size)
{
    if (position >= history->end)
        return 0;
    uint64_t left = history->end - position;
    size_t length = left < size ? (size_t)left : size;
    if (position >= history_oldest(history)) {
        size_t at = (size_t)(position % HISTORY_SIZE);
        if (length > HISTORY_SIZE - at)
            length = HISTORY_SIZE - at;
        memcpy(bytes, history->bytes + at, length);
        return (ssize_t)length;
    }
    if (history->read_fd < 0 || history->is_log_torn)
        return -ENODATA;
    ssize_t n = pread(history->read_fd, bytes, length, history->log_start + (off_t)position);
    return n > 0 ? n : -ENODATA;
}

uint64_t history_last_screen(const struct history *history)
{
    if (history->end <= LAST_SCREEN_MAX)
        return 0;
    for (uint64_t at = history->end - LAST_SCREEN_MAX; at < history->end; at++)
        if (history->bytes[at % HISTORY_SIZE] == '\n')
            return at + 1;
    return history->end - LAST_SCREEN_MAX;
}
