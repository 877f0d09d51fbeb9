/* SPDX-License-Identifier: MIT */
#include "controller/groups.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"

#define GROUPS_MAX 65536 // of one user, as many as Linux allows

int group_find(const char *name, uint32_t *ret, struct error *err)
{
    struct group entry, *found = NULL;
    char text[16384];
    int64_t number;
    if (getgrnam_r(name, &entry, text, sizeof(text), &found) == 0 && found != NULL) {
        *ret = (uint32_t)found->gr_gid;
        return 0;
    }
    if (parse_integer(name, "group", 0, UINT32_MAX - 1, &number, NULL) < 0)
        return error_set(err, -ENOENT, "there is no group '%.60s'", name);
    *ret = (uint32_t)number;
    return 0;
}

bool group_has(uint32_t gid, uint32_t uid)
{
    struct passwd entry, *found = NULL;
    char text[4096];
    int count = 64;
    if (getpwuid_r((uid_t)uid, &entry, text, sizeof(text), &found) != 0 || found == NULL)
        return false;
    for (;;) {
        int asked = count;
        _cleanup_free_ gid_t *groups = xcalloc((size_t)asked, sizeof(*groups));
        bool is_whole = getgrouplist(found->pw_name, found->pw_gid, groups, &count) >= 0;
        for (int i = 0; is_whole && i < count; i++)
            if (groups[i] == (gid_t)gid)
                return true;
        if (is_whole || count <= asked || count > GROUPS_MAX)
            return false;
    }
}
