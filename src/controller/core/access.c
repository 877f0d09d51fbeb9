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
    uint64_t token = who->token.id;
    bool is_own = job != NULL && (job->api_token == token || (JOB_TOKEN | job->id) == token);
    unsigned needed = scope_needed(action, is_own);
    return who->token.id == 0 || needed == 0 || (who->token.scopes & needed) != 0;
}

bool core_may(const struct identity *who, enum action action, const struct job *job)
{
    return who->is_known && role_permits(who->role, action, job == NULL || core_owns(who, job)) &&
           is_in_scope(who, action, job);
}

int core_refuse_scope(const struct identity *who, unsigned needed, struct error *err)
{
    enum scope least = (enum scope)(needed & (~needed + 1)); // the lowest bit
    if (token_is_of_job(who->token.id)) {
        (void)error_set(err, -EPERM, "commands in a job on this node do not have the right to do this");
        return error_hint(err, "%s",
            least == SCOPE_SUBMIT
                ? "mgpud's setting job-access does not let jobs on joined machines submit jobs"
                : "use mgpud's machine, or set MGPU_HOST and a token: mgpu token create");
    }
    (void)error_set(
        err, -EPERM, "the scope of your token does not permit this; %s is required", scope_name(least));
    return error_hint(err, CORE_SCOPES_HINT, scope_name(least));
}

bool core_token_lacks(
    const struct identity *who, enum action action, const struct job *job, struct error *err)
{
    if (!role_permits(who->role, action, core_owns(who, job)) || is_in_scope(who, action, job))
        return false;
    if (token_is_of_job(who->token.id)) {
        (void)error_set(err, -EPERM,
            "commands in job %" PRIu64
            " can change only that job and the jobs that it has submitted, not job "
            "%" PRIu64,
            who->token.id & ~JOB_TOKEN, job->id);
        (void)error_hint(err, "use mgpud's machine, or set MGPU_HOST and a token: mgpu token create");
        return true;
    }
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
        const char *name = core_owner_name(core, entry->job);
        (void)error_set(err, -EPERM, "job %" PRIu64 " belongs to %s%s (uid %u)", id,
            name != NULL ? "user " : "another user", name != NULL ? name : "", entry->job->uid);
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

uint32_t core_hold_of(const struct identity *who, const struct job *job)
{
    return who->uid == job->uid ? HOLD_USER : HOLD_ADMIN;
}
