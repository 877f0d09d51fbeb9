/* SPDX-License-Identifier: MIT */
#include "controller/serve_rights.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define GROUPS_MAX 65536 // of one user, as many as Linux allows

static bool is_member(uint32_t uid, gid_t group)
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
            if (groups[i] == group)
                return true;
        if (is_whole || count <= asked || count > GROUPS_MAX)
            return false;
    }
}

bool rights_may_raise(const struct request *request)
{
    const struct controller *controller = request->serve->controller;
    const struct identity *who = &request->who;
    if (who->is_admin || who->uid == 0 || who->uid == controller->admin_uid)
        return true;
    struct group entry, *found = NULL;
    char text[16384];
    const char *name = controller->options.priority_group;
    return name != NULL && getgrnam_r(name, &entry, text, sizeof(text), &found) == 0 && found != NULL &&
           is_member(who->uid, found->gr_gid);
}
