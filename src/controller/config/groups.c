/* SPDX-License-Identifier: MIT */
#include "controller/config/groups.h"

#include <errno.h>
#include <stddef.h>

#include "base/parse.h"
#include "wire/directory.h"

int group_find(const char *name, uint32_t *ret, struct error *err)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int64_t number;
    int r = directory_find(DIRECTORY_GROUP_NAMED, 0, name, &entry);
    if (r == 0) {
        *ret = entry.id;
        return 0;
    }
    if (parse_integer(name, "group", 0, UINT32_MAX - 1, &number, NULL) < 0)
        return error_set(err, -ENOENT, "there is no group '%.60s'", name);
    *ret = (uint32_t)number;
    return 0;
}

int group_has(uint32_t gid, uint32_t uid)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int r = directory_find(DIRECTORY_MEMBER, uid, NULL, &entry);
    for (size_t i = 0; r == 0 && i < entry.n_groups; i++)
        if (entry.groups[i] == (gid_t)gid)
            return 1;
    return r == -EAGAIN ? r : 0;
}
