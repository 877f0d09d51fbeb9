/* SPDX-License-Identifier: MIT */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define RECORD_FILE_MAX (RECORD_HEADER_SIZE + RECORD_BODY_MAX + RECORD_CRC_SIZE)

int file_read(int dirfd, const char *name, size_t limit, struct buffer *out)
{
    _cleanup_close_ int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        if (out->length + (size_t)n > limit)
            return -EFBIG;
        buffer_append(out, chunk, (size_t)n);
    }
}

int write_all(int fd, const void *bytes, size_t length)
{
    const char *p = bytes;
    while (length > 0) {
        ssize_t n = write(fd, p, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        length -= (size_t)n;
    }
    return 0;
}

int file_write(int dirfd, const char *name, const void *bytes, size_t length, bool durable)
{
    char temporary[256];
    if (snprintf(temporary, sizeof(temporary), "%s.tmp", name) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    _cleanup_close_ int fd =
        openat(dirfd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, bytes, length);
    if (r == 0 && durable && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
        r = -errno;
    if (r == 0 && durable && fsync(dirfd) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(dirfd, temporary, 0);
    return r;
}

int file_read_record(
    int dirfd, const char *name, const struct record_type *type, void *object, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    int r = file_read(dirfd, name, RECORD_FILE_MAX, &bytes);
    if (r < 0)
        return error_set_errno(err, r, "cannot read %s", name);
    return record_decode(type, bytes.bytes, bytes.length, object, err);
}

int file_write_record(
    int dirfd, const char *name, const struct record_type *type, const void *object, bool durable)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    return file_write(dirfd, name, bytes.bytes, bytes.length, durable);
}

int file_put_record(int dirfd, const char *name, const struct record_type *type, const void *object)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(type, object, &bytes);
    _cleanup_close_ int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : write_all(fd, bytes.bytes, bytes.length);
}

int make_directories(const char *path, mode_t mode)
{
    char partial[4096];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(partial))
        return length == 0 ? -ENOENT : -ENAMETOOLONG;
    memcpy(partial, path, length + 1);
    for (char *p = partial + 1; *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(partial, mode) < 0 && errno != EEXIST)
            return -errno;
        *p = '/';
    }
    return mkdir(partial, mode) < 0 && errno != EEXIST ? -errno : 0;
}

int lock_file(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

static bool is_locked_for_reading(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

int lock_path(const char *path, int *ret_fd)
{
    for (int tries = 0;; tries++) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -errno;
        int r = lock_file(fd);
        if (r == -EAGAIN && tries == 0 && is_locked_for_reading(fd)) {
            if (unlink(path) < 0)
                return -errno;
            continue;
        }
        if (r == 0 && fchmod(fd, 0600) < 0)
            return -errno;
        if (r == 0 || r == -EAGAIN)
            *ret_fd = take_fd(&fd);
        return r;
    }
}

int lock_private_directory(const char *path, int *ret_fd)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -errno;
    *ret_fd = take_fd(&fd);
    return 0;
}

bool is_file_locked(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
