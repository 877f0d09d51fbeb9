/* SPDX-License-Identifier: MIT */
/*
 * A port is reserved in two ways. A bound socket proves that it is free, and keeps other programs from using
 * it until the gate opens. Then it is closed, because the job's program binds the port itself. That may take
 * seconds, so the port's number is also held as an abstract Unix socket name until the end of the attempt,
 * which keeps other jobs from choosing the same port meanwhile. Like ports, such names are unique within a
 * network namespace. Neither needs a file, and both end with this process. Names or ports taken by a user on
 * purpose are skipped like any other.
 */
#include "shepherd/meeting.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/launch.h"

#define OTHER_PORTS_TRIED 16 // of those chosen by the kernel when the whole range is in use

void meeting_init(struct meeting *meeting)
{
    *meeting = (struct meeting){ .tcp_fd = -1, .name_fd = -1 };
}

/* Binds all addresses of both families at once. Without SO_REUSEADDR, because a port that was just in use is
 * not free. */
static int bind_both(uint16_t port)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    int is_v6_only = 0;
    _cleanup_close_ int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &is_v6_only, sizeof(is_v6_only)) < 0)
        return -1;
    return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -1 : take_fd(&fd);
}

/* For machines without IPv6. */
static int bind_old(uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    return take_fd(&fd);
}

static bool has_ipv6(void)
{
    _cleanup_close_ int fd = bind_both(0);
    return fd >= 0;
}

static int bind_name(uint32_t port)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "mgpu-meeting-%u", port);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return fd < 0 || bind(fd, (const struct sockaddr *)&address, size) < 0 ? -1 : take_fd(&fd);
}

static uint32_t port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&address)->sin6_port
                                               : ((const struct sockaddr_in *)&address)->sin_port);
}

/* Port 0: any that the kernel chooses. */
static bool try_port(struct meeting *meeting, uint16_t port, bool is_ipv6)
{
    _cleanup_close_ int tcp_fd = is_ipv6 ? bind_both(port) : bind_old(port);
    uint32_t bound = tcp_fd >= 0 ? port_of(tcp_fd) : 0;
    _cleanup_close_ int name_fd = bound != 0 ? bind_name(bound) : -1;
    if (name_fd < 0)
        return false;
    *meeting = (struct meeting){ .port = bound, .tcp_fd = take_fd(&tcp_fd), .name_fd = take_fd(&name_fd) };
    return true;
}

void meeting_reserve(struct meeting *meeting, uint32_t first)
{
    bool is_ipv6 = has_ipv6();
    for (uint32_t i = 0; i < MEETING_PORTS; i++) {
        uint32_t port = MEETING_PORT_FIRST + (first - MEETING_PORT_FIRST + i) % MEETING_PORTS;
        if (try_port(meeting, (uint16_t)port, is_ipv6))
            return;
    }
    for (int i = 0; i < OTHER_PORTS_TRIED; i++)
        if (try_port(meeting, 0, is_ipv6))
            return;
}

void meeting_hand_over(struct meeting *meeting)
{
    closep(&meeting->tcp_fd);
}

void meeting_close(struct meeting *meeting)
{
    closep(&meeting->tcp_fd);
    closep(&meeting->name_fd);
    meeting_init(meeting);
}
