/* SPDX-License-Identifier: MIT */
/* Permission checks with error messages. */
#include "controller/core/access.h"

#include <errno.h>
#include <inttypes.h>

#include "controller/core/entry.h"
#include "controller/core/rights.h"
#include "controller/core/state.h"

static bool is_in_scope(const struct identity *who, enum action action, const struct job *job)
{
    unsigned needed = scope_needed(action, job != NULL && job->api_token == who->token.id);
    return who->token.id == 0 || needed == 0 || (who->token.scopes & needed) != 0;
}

bool core_may(const struct identity *who, enum action action, const struct job *job)
{
    return who->is_known && role_permits(who->role, action, job == NULL || core_owns(who, job)) &&
           is_in_scope(who, action, job);
}

bool core_token_lacks(
    const struct identity *who, enum action action, const struct job *job, struct error *err)
{
    if (!role_permits(who->role, action, core_owns(who, job)) || is_in_scope(who, action, job))
        return false;
    (void)error_set(
        err, -EPERM, "job %" PRIu64 " was not submitted with this token, which has no scope for it", job->id);
    (void)error_hint(err, CORE_SCOPES_HINT, scope_name((enum scope)scope_needed(action, false)));
    return true;
}

int core_check_control(const struct core *core, const struct identity *who, uint64_t id,
    const struct core_entry *entry, struct error *err)
{
    if (entry == NULL)
        return error_set(err, -ENOENT, "there is no job %" PRIu64, id);
    if (core_token_lacks(who, ACTION_CONTROL, entry->job, err))
        return err->code;
    if (!core_may(who, ACTION_CONTROL, entry->job)) {
        (void)error_set(err, -EPERM, "job %" PRIu64 " belongs to another user (uid %u)", id, entry->job->uid);
        return error_hint(err, "only its owner or an operator may change it");
    }
    if (entry->job->state == JOB_DONE)
        return error_set(err, -EALREADY, "job %" PRIu64 " has already ended", id);
    return 0;
}

int core_check_admin(const struct core *core, const struct identity *who, const char *what, int64_t until_ms,
    struct error *err)
{
    if (!core_may(who, ACTION_MANAGE, NULL)) {
        (void)error_set(err, -EPERM, "only operators may %s", what);
        return error_hint(err, CORE_ROLES_HINT);
    }
    if (until_ms != 0 && until_ms <= core->now_ms)
        return error_set(err, -EINVAL, "the time until which to %s has already passed", what);
    return 0;
}
