/* SPDX-License-Identifier: MIT */
#include "cli/term/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/strings.h"

#define CHUNK 16384

static int read_all(int fd, const char *name, size_t limit, struct buffer *out, struct error *err)
{
    char chunk[CHUNK];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set_errno(err, -errno, "cannot read %.200s", name);
        if (n == 0)
            return 0;
        buffer_append(out, chunk, (size_t)n);
        if (out->length > limit)
            return error_set(err, -EFBIG, "%.200s has more than %zu bytes", name, limit);
    }
}

int text_file_open(struct text_file *file, const char *path, size_t limit, struct error *err)
{
    bool is_input = strcmp(path, "-") == 0;
    _cleanup_buffer_ struct buffer bytes = { 0 };
    *file = (struct text_file){ .path = is_input ? "standard input" : path };
    int fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot read %.200s", path);
    int r = read_all(fd, file->path, limit, &bytes, err);
    if (!is_input)
        (void)close(fd);
    if (r < 0)
        return r;
    if (text_mark_is_wide(bytes.bytes, bytes.length))
        return text_mark_refuse(file->path, err);
    size_t mark = text_mark_length(bytes.bytes, bytes.length);
    if (mark > 0)
        memmove(bytes.bytes, bytes.bytes + mark, bytes.length -= mark);
    if (bytes.length > 0 && memchr(bytes.bytes, '\0', bytes.length) != NULL)
        return error_set(err, -EINVAL, "%.200s is not text: it contains a zero byte", file->path);
    file->text = bytes.length > 0 ? buffer_take(&bytes) : xstrdup("");
    file->rest = file->text;
    return 0;
}

char *text_file_next(struct text_file *file)
{
    char *line = strsep(&file->rest, "\n");
    if (line == NULL || (file->rest == NULL && line[0] == '\0'))
        return NULL;
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    file->line++;
    return line;
}

int text_file_refuse(const struct text_file *file, struct error *err, const char *format, ...)
{
    char what[sizeof(err->message)];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return error_set(err, -EINVAL, "%.200s:%u: %.280s", file->path, file->line, what);
}

void text_file_clear(struct text_file *file)
{
    free(file->text);
    *file = (struct text_file){ 0 };
}
