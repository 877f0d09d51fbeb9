/* SPDX-License-Identifier: MIT */
#include "controller/nodes/reach.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/memory.h"
#include "wire/address.h"

char *reach_text(const char *listen, const char *default_port, const char *host)
{
    struct utsname self;
    _cleanup_address_ struct address bound = { 0 }, wanted = { 0 };
    if (address_parse(listen, default_port, &bound, NULL) < 0)
        bound = (struct address){ .host = xstrdup("::"), .port = xstrdup(default_port) };
    if (host != NULL && address_parse(host, bound.port, &wanted, NULL) == 0)
        return address_text(&wanted);
    bool is_any = strcmp(bound.host, "::") == 0 || strcmp(bound.host, "0.0.0.0") == 0;
    if (is_any) {
        free(bound.host);
        bound.host = xstrdup(uname(&self) == 0 ? self.nodename : "localhost");
    }
    return address_text(&bound);
}
