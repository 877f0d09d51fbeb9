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
