/* SPDX-License-Identifier: MIT */
/*
 *   | beginning: half of the limit | "mgpu: 5.2G of output are not kept" | end: a quarter, 256 KiB at most |
 *
 * The next cut is due when the rest of the limit is full again, and replaces that line and what follows it.
 * The job's processes continue to write meanwhile. They append, so each line is whole, but some lines may
 * precede the line about the omitted output, and output written in the microseconds before the cut is lost.
 */
#include "shepherd/log_limit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/parse.h"

#define TAIL_MAX  ((uint64_t)256 << 10)
#define LINE_MAX  4096 // longer lines are cut
#define NOTE_MAX  160U // space in front of the end, so that both are one write
#define READS_MAX 8U   // reads of the end before a cut, for a job that writes all the time

void log_limit_open(struct log_limit *limit, int fd, uint64_t max)
{
    struct stat st;
    bool is_limited = max > 0 && fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    *limit = (struct log_limit){ .fd = fd };
    if (!is_limited)
        return;
    limit->max = max;
    limit->tail_size = (size_t)(max / 4 < TAIL_MAX ? max / 4 : TAIL_MAX);
    limit->tail = xcalloc(NOTE_MAX + limit->tail_size, 1); // later the job may have used all of its memory
}

/* The file was opened for writing only. This opens the same file, whatever its name is by now. */
static int reopen(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* The offset behind the last line that ends before `wanted`. */
static off_t find_head(int fd, off_t wanted)
{
    char bytes[LINE_MAX];
    off_t from = wanted > (off_t)sizeof(bytes) ? wanted - (off_t)sizeof(bytes) : 0;
    ssize_t n = pread(fd, bytes, (size_t)(wanted - from), from);
    const char *newline = n > 0 ? memrchr(bytes, '\n', (size_t)n) : NULL;
    return newline != NULL ? from + (newline + 1 - bytes) : wanted;
}

/* The last whole lines, at most `size` bytes. */
static size_t read_tail(int fd, off_t end, size_t size, char *bytes, char **ret)
{
    ssize_t n = pread(fd, bytes, size, end - (off_t)size);
    size_t length = n > 0 ? (size_t)n : 0;
    const char *newline = memchr(bytes, '\n', length < LINE_MAX ? length : LINE_MAX);
    size_t cut = newline != NULL ? (size_t)(newline + 1 - bytes) : 0;
    *ret = bytes + cut;
    return length - cut;
}

/* Bytes appended between this call and the cut are lost. It therefore reads again until nothing is appended
 * meanwhile, which preserves the last line of a job that is just ending. */
static size_t read_end(const struct log_limit *limit, int fd, off_t *size, char **ret)
{
    size_t length = read_tail(fd, *size, limit->tail_size, limit->tail + NOTE_MAX, ret);
    struct stat st;
    for (unsigned i = 0; i < READS_MAX && fstat(fd, &st) == 0 && st.st_size > *size; i++) {
        *size = st.st_size;
        length = read_tail(fd, *size, limit->tail_size, limit->tail + NOTE_MAX, ret);
    }
    return length;
}

static void cut(struct log_limit *limit, int fd, off_t size)
{
    char amount[32], most[32], note[NOTE_MAX];
    char *tail;
    if (limit->head == 0)
        limit->head = find_head(fd, (off_t)(limit->max / 2));
    size_t length = read_end(limit, fd, &size, &tail);
    limit->left_out += (uint64_t)(size - limit->head) - length - limit->note;
    format_size(limit->left_out, amount, sizeof(amount));
    format_size(limit->max, most, sizeof(most));
    limit->note = (size_t)snprintf(note, sizeof(note),
        "mgpu: %s of output are not kept here: the limit is %s (--log-max)\n", amount, most);
    char *kept = memcpy(tail - limit->note, note, limit->note);
    if (ftruncate(limit->fd, limit->head) == 0)
        (void)write_all(limit->fd, kept, limit->note + length);
}

void log_limit_keep(struct log_limit *limit)
{
    struct stat st;
    if (limit->max == 0 || fstat(limit->fd, &st) < 0)
        return;
    if (st.st_size < limit->head) { // the user has truncated it
        limit->head = 0;
        limit->note = 0;
    }
    if ((uint64_t)st.st_size <= limit->max)
        return;
    _cleanup_close_ int fd = reopen(limit->fd);
    if (fd >= 0)
        cut(limit, fd, st.st_size);
}
