/* SPDX-License-Identifier: MIT */
#include "controller/config/groups.h"

#include <errno.h>
#include <stdbool.h>
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

static bool is_member(const struct directory_entry *user, uint32_t gid)
{
    for (size_t i = 0; i < user->n_groups; i++)
        if (user->groups[i] == gid)
            return true;
    return false;
}

int group_has(uint32_t gid, uint32_t uid)
{
    _cleanup_entry_ struct directory_entry entry = { 0 };
    int r = directory_find(DIRECTORY_MEMBER, uid, NULL, &entry);
    if (r == 0)
        return is_member(&entry, gid);
    return r == -EAGAIN ? r : 0;
}

static bool is_configured(const struct controller_options *options, gid_t gid)
{
    for (size_t i = 0; i < options->n_accounts; i++)
        if (options->accounts[i].kind == ACCOUNT_GROUP && options->accounts[i].id == gid)
            return true;
    return false;
}

uint32_t group_that_counts(const struct controller_options *options, uint32_t uid, uint32_t gid)
{
    _cleanup_entry_ struct directory_entry user = { 0 };
    if (directory_find(DIRECTORY_MEMBER, uid, NULL, &user) < 0)
        return gid;
    if (is_configured(options, user.gid))
        return user.gid;
    for (size_t i = 0; i < options->n_accounts; i++) {
        const struct core_account *group = &options->accounts[i];
        if (group->kind == ACCOUNT_GROUP && is_member(&user, group->id))
            return group->id;
    }
    return user.gid;
}
