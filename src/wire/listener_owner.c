/* SPDX-License-Identifier: MIT */
/*
 * Asked without a remote end, the kernel looks for the socket that would take a connection from anybody: the
 * one at this very address, else the one at all addresses. Two users cannot listen at one port, neither at
 * the same address nor at one and at all, so the answer holds for the connections that are made while it
 * does.
 */
#include "wire/listener_owner.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

bool listener_is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    if (address->sa_family == AF_INET) {
        memcpy(&four, address, sizeof(four));
        return (ntohl(four.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    }
    if (address->sa_family != AF_INET6)
        return false;
    memcpy(&six, address, sizeof(six));
    return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) != 0;
}

static void write_place(const struct sockaddr *address, struct inet_diag_sockid *id)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    if (address->sa_family == AF_INET) {
        memcpy(&four, address, sizeof(four));
        id->idiag_src[0] = four.sin_addr.s_addr;
        id->idiag_sport = four.sin_port;
        return;
    }
    memcpy(&six, address, sizeof(six));
    memcpy(id->idiag_src, &six.sin6_addr, sizeof(id->idiag_src));
    id->idiag_sport = six.sin6_port;
}

/* The answer may be about a connection when the kernel finds no listener. */
static bool read_answer(const void *bytes, size_t length, uint16_t port, uint32_t *ret_uid)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg body;
    } answer;
    if (length < sizeof(answer))
        return false;
    memcpy(&answer, bytes, sizeof(answer));
    if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.head.nlmsg_len < sizeof(answer))
        return false;
    bool is_listener = answer.body.idiag_state == TCP_LISTEN && answer.body.id.idiag_sport == port;
    if (!is_listener || answer.body.idiag_inode == 0 || answer.body.idiag_uid == UINT32_MAX)
        return false;
    *ret_uid = answer.body.idiag_uid;
    return true;
}

bool listener_owner(const struct sockaddr *address, uint32_t *ret_uid)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } ask = {
        .head = { .nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
        .body = {
            .sdiag_family = (uint8_t)address->sa_family,
            .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = 1U << TCP_LISTEN,
            .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
        },
    };
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    uint8_t bytes[4096];
    if (!listener_is_loopback(address))
        return false;
    write_place(address, &ask.body.id);
    _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (fd < 0 ||
        sendto(fd, &ask, sizeof(ask), 0, (struct sockaddr *)&kernel, sizeof(kernel)) != (ssize_t)sizeof(ask))
        return false;
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT); // it has answered before sendto() returned
    return n > 0 && read_answer(bytes, (size_t)n, ask.body.id.idiag_sport, ret_uid);
}
