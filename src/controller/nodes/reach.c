/* SPDX-License-Identifier: MIT */
#include "controller/nodes/reach.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/memory.h"
#include "wire/address.h"

static bool is_wildcard(const char *host)
{
    return strcmp(host, "::") == 0 || strcmp(host, "0.0.0.0") == 0;
}

char *reach_text(const char *listen, const char *default_port, const char *host)
{
    struct utsname self;
    _cleanup_address_ struct address bound = { 0 }, wanted = { 0 };
    if (address_parse(listen, default_port, &bound, NULL) < 0)
        bound = (struct address){ .host = xstrdup("::"), .port = xstrdup(default_port) };
    if (host != NULL && address_parse(host, bound.port, &wanted, NULL) == 0)
        return address_text(&wanted);
    if (is_wildcard(bound.host)) {
        free(bound.host);
        bound.host = xstrdup(uname(&self) == 0 ? self.nodename : "localhost");
    }
    return address_text(&bound);
}

void reach_controller(
    const char *address, const char *listen, const char *nodes_listen, char **ret_api, char **ret_nodes)
{
    _cleanup_address_ struct address host = { 0 };
    if (address != NULL)
        (void)address_parse(address, API_PORT, &host, NULL);
    bool has_api = address != NULL || strcmp(listen, "none") != 0,
         has_nodes = strcmp(nodes_listen, "none") != 0;
    *ret_api = !has_api          ? xstrdup("")
               : address != NULL ? xstrdup(address)
                                 : reach_text(listen, API_PORT, NULL);
    bool is_six = host.host != NULL && strchr(host.host, ':') != NULL;
    _cleanup_free_ char *shown = is_six ? xasprintf("[%s]", host.host) : xstrdup(host.host);
    *ret_nodes = has_nodes ? reach_text(nodes_listen, NODES_PORT, shown) : xstrdup("");
}

void reach_names(const char *listen, const char *default_port, struct strings *names)
{
    struct utsname self;
    _cleanup_address_ struct address bound = { 0 };
    if (uname(&self) == 0) {
        const char *domain = strchr(self.nodename, '.');
        strings_add(names, self.nodename);
        if (domain != NULL)
            strings_take(names, xstrndup(self.nodename, (size_t)(domain - self.nodename)));
    }
    if (address_parse(listen, default_port, &bound, NULL) == 0 && !is_wildcard(bound.host))
        strings_add(names, bound.host);
}
