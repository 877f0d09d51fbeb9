/* SPDX-License-Identifier: MIT */
/*
 * For TCP the kernel is queried for the socket whose local address is the peer's and whose remote address is
 * this end's. Four conditions make the answer trustworthy:
 *
 *  - only loopback addresses are queried: both ends are then sockets of this machine and this network
 *    namespace (a packet with such a source cannot come from outside);
 *  - the answer must repeat exactly the queried addresses and ports: a listening socket or another connection
 *    may be returned if there is no exact match;
 *  - that socket must still be connected and belong to an open file (an inode): the owner of a socket that
 *    lost its process is not reported reliably. It may have ended its own direction (FIN_WAIT);
 *  - afterwards this end must still be connected, at most with the other direction ended (CLOSE_WAIT): while
 *    it is, the four numbers cannot belong to another socket, so no process took over the port between
 *    connecting and querying.
 */
#include "wire/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/socket_query.h"
#include "wire/usernames.h"

struct peer peer_of_unix(int fd)
{
    struct ucred who;
    socklen_t length = sizeof(who);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0 || length != sizeof(who))
        return (struct peer){ 0 };
    if (who.uid == (uid_t)-1 || who.gid == (gid_t)-1)
        return (struct peer){ 0 }; // a socketpair, or a user without a number in this namespace
    return (struct peer){ .is_known = true, .uid = who.uid, .gid = who.gid };
}

/* An end of a connection; ::ffff:a.b.c.d is converted to IPv4. */
struct end {
    int family;
    uint32_t address[4]; // network order
    uint16_t port;       // network order
};

static void set_v6(struct end *end, const void *address)
{
    struct in6_addr six = { 0 };
    memcpy(&six, address, sizeof(six));
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
        end->family = AF_INET;
        memcpy(end->address, &six.s6_addr[12], 4);
        return;
    }
    end->family = AF_INET6;
    memcpy(end->address, &six, sizeof(six));
}

static bool read_end(const struct sockaddr_storage *from, struct end *end)
{
    *end = (struct end){ 0 };
    if (from->ss_family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, from, sizeof(four));
        end->family = AF_INET;
        end->address[0] = four.sin_addr.s_addr;
        end->port = four.sin_port;
        return true;
    }
    if (from->ss_family != AF_INET6)
        return false;
    struct sockaddr_in6 six = { 0 };
    memcpy(&six, from, sizeof(six));
    set_v6(end, &six.sin6_addr);
    end->port = six.sin6_port;
    return true;
}

static bool is_loopback(const struct end *end)
{
    if (end->family == AF_INET)
        return (ntohl(end->address[0]) >> 24) == 127;
    struct in6_addr six = { 0 };
    memcpy(&six, end->address, sizeof(six));
    return IN6_IS_ADDR_LOOPBACK(&six);
}

/* The ends as an answer reports them for a socket: both in the family of the socket. */
static bool is_end(uint8_t family, const uint32_t address[4], uint16_t port, const struct end *wanted)
{
    struct end end = { .port = port };
    if (family == AF_INET6) {
        set_v6(&end, address);
    } else if (family == AF_INET) {
        end.family = AF_INET;
        end.address[0] = address[0];
    }
    return end.family == wanted->family && end.port == wanted->port &&
           memcmp(end.address, wanted->address, sizeof(end.address)) == 0;
}

static bool ask_owner(const struct end *peer, const struct end *own, uint32_t *ret_uid)
{
    struct inet_diag_req_v2 query = { .sdiag_family = (uint8_t)peer->family,
        .idiag_states = UINT32_MAX,
        .id = { .idiag_sport = peer->port, .idiag_dport = own->port } };
    struct inet_diag_msg answer;
    memcpy(query.id.idiag_src, peer->address, sizeof(peer->address));
    memcpy(query.id.idiag_dst, own->address, sizeof(own->address));
    if (!socket_query(&query, &answer) || answer.idiag_inode == 0 ||
        (answer.idiag_state != TCP_ESTABLISHED && answer.idiag_state != TCP_FIN_WAIT1 &&
            answer.idiag_state != TCP_FIN_WAIT2))
        return false;
    if (!is_end(answer.idiag_family, answer.id.idiag_src, answer.id.idiag_sport, peer) ||
        !is_end(answer.idiag_family, answer.id.idiag_dst, answer.id.idiag_dport, own))
        return false;
    *ret_uid = answer.idiag_uid;
    return *ret_uid != UINT32_MAX;
}

static bool is_connected(int fd)
{
    struct tcp_info now;
    socklen_t length = sizeof(now);
    memset(&now, 0, sizeof(now));
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &now, &length) == 0 &&
           (now.tcpi_state == TCP_ESTABLISHED || now.tcpi_state == TCP_CLOSE_WAIT);
}

struct peer peer_of_loopback(int fd)
{
    struct sockaddr_storage there = { 0 }, here = { 0 };
    socklen_t there_length = sizeof(there), here_length = sizeof(here);
    struct end peer = { 0 }, own = { 0 };
    uint32_t uid = 0, gid = 0;
    if (getpeername(fd, (struct sockaddr *)&there, &there_length) < 0 ||
        getsockname(fd, (struct sockaddr *)&here, &here_length) < 0)
        return (struct peer){ 0 };
    if (!read_end(&there, &peer) || !read_end(&here, &own) || peer.family != own.family)
        return (struct peer){ 0 };
    if (!is_loopback(&peer) || !is_loopback(&own) || !ask_owner(&peer, &own, &uid) || !is_connected(fd))
        return (struct peer){ 0 };
    if (usernames_account(uid, &gid, NULL) < 0)
        return (struct peer){ 0 };
    return (struct peer){ .is_known = true, .uid = uid, .gid = gid };
}
