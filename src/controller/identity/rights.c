/* SPDX-License-Identifier: MIT */
#include "controller/identity/rights.h"

#include "controller/config/groups.h"
#include "controller/config/roles.h"

enum role rights_role(const struct serve *serve, uint32_t uid)
{
    const struct controller *controller = serve->controller;
    if (uid == 0 || uid == controller->admin_uid)
        return ROLE_ADMIN;
    return roles_of(controller->options.roles, uid);
}

bool rights_may_raise(const struct request *request)
{
    const char *name = request->serve->controller->options.priority_group;
    uint32_t group;
    if (core_may(&request->who, ACTION_RAISE, NULL))
        return true;
    return name != NULL && group_find(name, &group, NULL) == 0 && group_has(group, request->who.uid) > 0;
}
