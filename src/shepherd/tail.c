/* SPDX-License-Identifier: MIT */
/*
 * The log was opened for writing only, because the command shares that open file. It is opened again through
 * its descriptor, which refers to the same file whatever its name is, and checks the user's permissions.
 */
#include "shepherd/tail.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define BELL   '\a'
#define ESCAPE '\033'

/* Reads one byte more than the space, which shows whether the text is cut at the beginning of a line. */
static size_t read_end(int fd, off_t from, char *bytes, size_t size)
{
    size_t length = 0;
    while (length < size) {
        ssize_t n = pread(fd, bytes + length, size - length, from + (off_t)length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    return length;
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* The length of the start that belongs to a line, or else to a character, whose beginning is missing. */
static size_t measure_cut(const char *bytes, size_t length)
{
    const char *newline = memchr(bytes, '\n', length);
    size_t cut = 1;
    if (newline != NULL && newline + 1 < bytes + length)
        return (size_t)(newline - bytes) + 1;
    while (cut < length && is_inside_character(bytes[cut]))
        cut++;
    return cut;
}

/* The length of the control sequence at the beginning: colours, cursor movements, titles. */
static size_t measure_sequence(const char *text, size_t length)
{
    size_t end = 2;
    if (length > 1 && text[1] == '[') {
        while (end < length && (text[end] < '@' || text[end] > '~'))
            end++;
        end++;
    } else if (length > 1 && text[1] == ']') {
        while (end < length && text[end] != BELL && text[end] != ESCAPE)
            end++;
        end += end + 1 < length && text[end] == ESCAPE ? 2 : 1;
    }
    return end < length ? end : length;
}

/* Programs on a terminal colour what they print, and the terminal ends lines with a return. The record has
 * the text. Returns its length. */
static size_t make_plain(char *text, size_t length)
{
    size_t kept = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_line_end = text[i] == '\r' && (i + 1 == length || text[i + 1] == '\n');
        if (text[i] == ESCAPE)
            i += measure_sequence(text + i, length - i) - 1;
        else if (!is_line_end)
            text[kept++] = text[i];
    }
    return kept;
}

size_t tail_read(int log_fd, off_t start, char text[TAIL_SIZE])
{
    char path[32];
    struct stat st;
    if (fstat(log_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (st.st_size < start)
        start = 0; // the file was truncated meanwhile
    off_t from = st.st_size - start > (off_t)TAIL_SIZE ? st.st_size - (off_t)TAIL_SIZE : start;
    char bytes[TAIL_SIZE];
    size_t length = read_end(fd, from, bytes, sizeof(bytes));
    size_t cut = from > start || length > USAGE_TAIL_MAX ? measure_cut(bytes, length) : 0;
    length -= length > cut ? cut : length;
    memcpy(text, bytes + cut, length);
    length = make_plain(text, length);
    /* The record holds text, which a NUL would end. */
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0')
            text[i] = '?';
    text[length] = '\0';
    return length;
}
