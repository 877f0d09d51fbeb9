/* SPDX-License-Identifier: MIT */
#include "base/descriptors.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/memory.h"

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int descriptor_send(int socket, const void *packet, size_t length, int fd)
{
    struct iovec part = { .iov_len = length };
    memcpy(&part.iov_base, &packet, sizeof(packet)); // sendmsg only reads it
    union control control = { 0 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int descriptor_offer(int socket, const void *packet, size_t length, int fd)
{
    int unread = 0;
    if (ioctl(socket, SIOCOUTQ, &unread) == 0 && unread > 0)
        return -EAGAIN;
    return descriptor_send(socket, packet, length, fd);
}

int descriptor_receive(int socket, void *packet, size_t length, int *ret_fd)
{
    struct iovec part = { .iov_base = packet, .iov_len = length };
    union control control = { 0 };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    _cleanup_close_ int fd = -1;
    ssize_t n;
    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS && header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(header), sizeof(int));
    if ((size_t)n != length || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return -EBADMSG;
    *ret_fd = take_fd(&fd);
    return 1;
}

uint64_t descriptors_allow(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted || limit.rlim_cur >= limit.rlim_max)
        return 0;
    uint64_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? before : 0;
}
