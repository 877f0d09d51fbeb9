/* SPDX-License-Identifier: MIT */
#include "wire/socket_query.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

bool socket_query(const struct inet_diag_req_v2 *query, struct inet_diag_msg *ret)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } ask = {
        .head = { .nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
        .body = *query,
    };
    struct {
        struct nlmsghdr head;
        struct inet_diag_msg body;
    } answer;
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    ask.body.sdiag_protocol = IPPROTO_TCP;
    ask.body.id.idiag_cookie[0] = ask.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (fd < 0 ||
        sendto(fd, &ask, sizeof(ask), 0, (struct sockaddr *)&kernel, sizeof(kernel)) != (ssize_t)sizeof(ask))
        return false;
    uint8_t bytes[4096]; // the kernel has answered before sendto() returned
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < (ssize_t)sizeof(answer))
        return false;
    memcpy(&answer, bytes, sizeof(answer));
    *ret = answer.body;
    return answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY && answer.head.nlmsg_len >= sizeof(answer);
}
