/* SPDX-License-Identifier: MIT */
/*
 * The path comes from a job's record and leads through directories that its user can change. The file is
 * therefore opened as that user, must not be a symbolic link, and must be a regular file owned by that user:
 * only files that the user could read are read. A STREAM frame with the size or the error is sent first, then
 * the bytes. With `follow`, the process waits for more with inotify until the controller shuts down its side,
 * and sends everything written until then. A user has few inotify instances (128, shared with other
 * programs): if none is available, the size is polled.
 */
#include "agent/attach/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"

#define SEND_MAX ((size_t)1 << 20) // bytes per sendfile(2)
#define LOOK_MS  250               // without inotify
#define CUT_BACK ((off_t)64 << 10) // bytes resent before the end of a file that was cut

struct log_file {
    int fd, inotify; // -1: none available to the user
    uint64_t size;
};

/* The frame contains the uid; the agent itself must refuse root's logs. */
static int become_owner(
    const struct job_users *users, const struct message_open_log *request, struct error *err)
{
    _cleanup_user_ struct user user = { 0 };
    int r = job_user_find(users, request->uid, NULL, &user, err);
    return r < 0 ? r : job_user_become(&user, user.gid, err);
}

static int check_file(int fd, const struct message_open_log *request, uint64_t *ret_size, struct error *err)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return error_set_errno(err, -errno, "cannot inspect the log %s", request->path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, -EINVAL, "the log %s is not a regular file", request->path);
    if (status.st_uid != request->uid)
        return error_set(err, -EPERM, "the log %s belongs to uid %u, not to the job's uid %u", request->path,
            status.st_uid, request->uid);
    *ret_size = (uint64_t)status.st_size;
    return 0;
}

/* The watch is set by path, so it is used only if path and open file are still the same. */
static int watch_file(struct log_file *file, const char *path, struct error *err)
{
    struct stat opened, named;
    file->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    bool is_watched =
        file->inotify >= 0 && inotify_add_watch(file->inotify, path, IN_MODIFY | IN_DONT_FOLLOW) >= 0;
    if (!is_watched && (errno == EMFILE || errno == ENFILE || errno == ENOSPC)) {
        closep(&file->inotify);
        return 0;
    }
    if (!is_watched)
        return error_set_errno(err, -errno, "cannot watch the log %s", path);
    if (fstat(file->fd, &opened) < 0 || lstat(path, &named) < 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev)
        return error_set(err, -ESTALE, "the log %s was replaced while it was opened", path);
    return 0;
}

static int open_log(const struct job_users *users, const struct message_open_log *request,
    struct log_file *file, struct error *err)
{
    if (request->path == NULL || request->path[0] != '/')
        return error_set(err, -EINVAL, "the path of the log is not absolute");
    int r = become_owner(users, request, err);
    if (r < 0)
        return r;
    file->fd = open(request->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file->fd < 0 && errno == ELOOP)
        return error_set(err, -ELOOP, "the log %s is a symbolic link", request->path);
    if (file->fd < 0)
        return error_set_errno(err, -errno, "cannot open the log %s", request->path);
    r = check_file(file->fd, request, &file->size, err);
    if (r < 0 || !request->follow)
        return r;
    return watch_file(file, request->path, err);
}

static int send_head(int socket_fd, uint64_t stream, uint64_t size, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    struct message_stream head = {
        .stream = stream, .error = -err->code, .size = size, .text = err->code == 0 ? NULL : err->message
    };
    record_encode(&message_stream_record, &head, &bytes);
    return write_all(socket_fd, bytes.bytes, bytes.length);
}

/* Sends the available part of [*offset, end). */
static int send_range(int socket_fd, int fd, off_t *offset, uint64_t end)
{
    while ((uint64_t)*offset < end) {
        uint64_t left = end - (uint64_t)*offset;
        ssize_t n = sendfile(socket_fd, fd, offset, left < SEND_MAX ? (size_t)left : SEND_MAX);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 0;
}

/* A file that has become shorter, by --log-max or its user, continues with its last lines: repeating some is
 * better than omitting the end. */
static void follow_cut(int fd, off_t *offset)
{
    char bytes[4096];
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size >= *offset)
        return;
    *offset = st.st_size > CUT_BACK ? st.st_size - CUT_BACK : 0;
    ssize_t n = *offset > 0 ? pread(fd, bytes, sizeof(bytes), *offset) : 0;
    const char *newline = n > 0 ? memchr(bytes, '\n', (size_t)n) : NULL;
    if (newline != NULL)
        *offset += newline + 1 - bytes;
}

/* Waits until the file has grown or may have grown (1), the controller requests nothing beyond the current
 * end (0), or has closed (< 0). */
static int wait_for_more(int socket_fd, int inotify)
{
    char events[4096], byte;
    struct pollfd fds[] = { { .fd = socket_fd, .events = POLLIN | POLLRDHUP },
        { .fd = inotify, .events = POLLIN } };
    while (poll(fds, 2, inotify < 0 ? LOOK_MS : -1) < 0)
        if (errno != EINTR)
            return -errno;
    if ((fds[0].revents & (POLLHUP | POLLERR)) != 0)
        return -EPIPE;
    if (fds[0].revents != 0 && recv(socket_fd, &byte, 1, MSG_DONTWAIT) == 0)
        return 0;
    while (inotify >= 0 && read(inotify, events, sizeof(events)) > 0)
        ;
    return 1;
}

static int send_log(int socket_fd, const struct log_file *file, const struct message_open_log *request)
{
    off_t offset = (off_t)(request->offset > INT64_MAX ? INT64_MAX : request->offset);
    uint64_t end = request->length == 0 || request->length > INT64_MAX - (uint64_t)offset
                       ? INT64_MAX
                       : (uint64_t)offset + request->length;
    int r = 1;
    if (!request->follow)
        return send_range(socket_fd, file->fd, &offset, end < file->size ? end : file->size);
    while (r > 0 && (uint64_t)offset < end) {
        r = send_range(socket_fd, file->fd, &offset, end);
        if (r == 0 && (uint64_t)offset < end)
            r = wait_for_more(socket_fd, file->inotify);
        follow_cut(file->fd, &offset);
    }
    return r == 0 ? send_range(socket_fd, file->fd, &offset, end) : r;
}

int log_reader_serve(int socket_fd, const struct job_users *users, const struct message_open_log *request)
{
    struct error err = { 0 };
    struct log_file file = { -1, -1, 0 };
    int r = open_log(users, request, &file, &err);
    int sent = send_head(socket_fd, request->stream, file.size, &err);
    if (r == 0 && sent == 0)
        r = send_log(socket_fd, &file, request);
    closep(&file.fd);
    closep(&file.inotify);
    return r < 0 || sent < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int log_reader_dial(const char *link_path, const struct job_users *users,
    const struct message_open_log *request, bool is_too_many)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || strlen(link_path) >= sizeof(address.sun_path))
        return EXIT_FAILURE;
    memcpy(address.sun_path, link_path, strlen(link_path) + 1);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chdir("/") < 0)
        return EXIT_FAILURE;
    if (!is_too_many)
        return log_reader_serve(fd, users, request);
    struct error err = { 0 };
    (void)error_set(&err, -EBUSY, "the node has reached its limit of open logs; try again later");
    (void)send_head(fd, request->stream, 0, &err);
    return EXIT_FAILURE;
}
