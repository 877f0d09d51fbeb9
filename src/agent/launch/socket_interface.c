/* SPDX-License-Identifier: MIT */
#include "agent/launch/socket_interface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

static bool has_address(const struct ifaddrs *interface, const char *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct sockaddr *socket_address = interface->ifa_addr;
    if (socket_address->sa_family == AF_INET)
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)socket_address)->sin_addr, text,
            sizeof(text));
    else if (socket_address->sa_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)socket_address)->sin6_addr,
            text, sizeof(text));
    return text[0] != '\0' && strcmp(text, address) == 0;
}

/* True for an interface that is up, has a network address, and is not the loopback interface. */
static bool is_usable(const struct ifaddrs *interface)
{
    return interface->ifa_addr != NULL && (interface->ifa_flags & IFF_UP) != 0 &&
           (interface->ifa_flags & IFF_LOOPBACK) == 0 &&
           (interface->ifa_addr->sa_family == AF_INET || interface->ifa_addr->sa_family == AF_INET6);
}

char *socket_interface_find(const char *address)
{
    struct ifaddrs *all = NULL;
    const char *own = NULL;
    bool has_others = false;
    if (getifaddrs(&all) < 0)
        return NULL;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
        if (is_usable(i) && has_address(i, address))
            own = i->ifa_name;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
        has_others |= own != NULL && is_usable(i) && strcmp(i->ifa_name, own) != 0;
    char *name = has_others ? xstrdup(own) : NULL;
    freeifaddrs(all);
    return name;
}
