/* SPDX-License-Identifier: MIT */
#include "controller/identity/rights.h"

#include <errno.h>

#include "controller/config/groups.h"
#include "controller/config/partitions.h"
#include "controller/config/roles.h"

enum role rights_role(const struct serve *serve, uint32_t uid)
{
    const struct controller *controller = serve->controller;
    if (uid == 0 || uid == controller->admin_uid)
        return ROLE_ADMIN;
    return roles_of(controller->options.roles, uid);
}

bool rights_is_guest(const struct request *request)
{
    const struct controller *controller = request->serve->controller;
    const struct identity *who = &request->who;
    bool has_guests = !controller->is_root && controller->options.adopts_any_user;
    return has_guests && who->uid != 0 && who->uid != controller->admin_uid && who->role == ROLE_USER;
}

bool rights_may_raise(const struct request *request)
{
    const char *name = request->serve->controller->options.priority_group;
    uint32_t group;
    if (token_is_of_job(request->who.token.id))
        return false; // only a node has reported that a process of this user makes the request
    if (core_may(&request->who, ACTION_RAISE, NULL))
        return true;
    return name != NULL && group_find(name, &group, NULL) == 0 && group_has(group, request->who.uid) > 0;
}

static int check_member(const struct core_partition *partition, const void *arg, struct error *err)
{
    const struct request *request = arg;
    if (partition_admits(partition, request->who.uid))
        return 0;
    (void)error_set(err, -EPERM, "you are not allowed to use partition %.60s", partition->set.name);
    return error_hint(err, "its users are %.100s; see: mgpu partitions", partition->users);
}

int rights_check_partition(const struct request *request, const struct job_ask *ask, struct error *err)
{
    return core_each_partition_of(request->serve->controller->core, ask, check_member, request, err);
}
