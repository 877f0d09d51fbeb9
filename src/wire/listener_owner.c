/* SPDX-License-Identifier: MIT */
/*
 * Without a remote end in the query, the kernel looks for the socket that would accept a connection from
 * anywhere: the one at this address, else the one at the wildcard address. Two users cannot listen on one
 * port, neither at the same address nor at one and the wildcard address, so the answer is valid for
 * connections made meanwhile.
 */
#include "wire/listener_owner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "wire/socket_query.h"

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

bool listener_owner(const struct sockaddr *address, uint32_t *ret_uid)
{
    struct inet_diag_req_v2 query = { .sdiag_family = (uint8_t)address->sa_family,
        .idiag_states = 1U << TCP_LISTEN };
    struct inet_diag_msg answer;
    if (!listener_is_loopback(address))
        return false;
    write_place(address, &query.id);
    /* If the kernel finds no listener, its answer may be about a connection. */
    if (!socket_query(&query, &answer) || answer.idiag_state != TCP_LISTEN ||
        answer.id.idiag_sport != query.id.idiag_sport)
        return false;
    if (answer.idiag_inode == 0 || answer.idiag_uid == UINT32_MAX)
        return false;
    *ret_uid = answer.idiag_uid;
    return true;
}
