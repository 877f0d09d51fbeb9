/* SPDX-License-Identifier: MIT */
#include "wire/node_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "wire/message.h"

int node_name_check(const char *name, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t length = strlen(name);
    if (length > 0 && length <= NODE_NAME_MAX && strspn(name, allowed) == length && name[0] != '.')
        return 0;
    (void)error_set(err, -EINVAL, "'%.80s' is not a valid node name", name);
    return error_hint(
        err, "use 1 to %u letters, digits, '-', '_' and '.'; set it with --node", NODE_NAME_MAX);
}

static bool read_version(const char *text, int *ret_major, int *ret_minor)
{
    return text != NULL && sscanf(text, "%9d.%9d", ret_major, ret_minor) == 2;
}

int node_version_check(uint32_t protocol, const char *version, const char *who, struct error *err)
{
    int major = 0, minor = 0, our_major = 0, our_minor = 0;
    (void)read_version(MGPU_VERSION, &our_major, &our_minor);
    bool is_read = read_version(version, &major, &minor);
    int apart = minor > our_minor ? minor - our_minor : our_minor - minor;
    if (is_read && protocol == LINK_PROTOCOL && major == our_major && apart <= 1)
        return 0;
    (void)error_set(err, -EPROTONOSUPPORT, "%s has mgpu %.32s (protocol %u), the other side %s (protocol %u)",
        who, is_read ? version : "of an unknown version", protocol, MGPU_VERSION, LINK_PROTOCOL);
    return error_hint(err, "versions that are one minor version apart work together: update the older one");
}
