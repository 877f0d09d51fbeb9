/* SPDX-License-Identifier: MIT */
#include "cli/ports/running.h"

#include <errno.h>
#include <inttypes.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/follow/follow.h"
#include "cli/options/selector.h"
#include "cli/show/job_columns.h"

int running_wait(struct call *call, const json_t *job, enum leaver leaver, struct error *err)
{
    _cleanup_json_ json_t *started = NULL;
    const struct follow_options follow = { .leaver = leaver, .is_until_start = true, .ret_job = &started };
    int r = follow_job(call, job, &follow, err);
    if (r < 0)
        return r;
    return started != NULL ? 0 : r != EXIT_OK ? r : EXIT_WRONG_STATE;
}

/* Checked before anything is forwarded; otherwise each connection would be refused separately. */
static int check_owner(struct call *call, const json_t *job, struct error *err)
{
    _cleanup_json_ json_t *self = NULL;
    int r = client_get(&call->client, API_PATH "/whoami", &self, err);
    if (r < 0 || field_integer(self, "uid", -1) == field_integer(job, "uid", -1))
        return r;
    _cleanup_free_ char *owner = field_shown(job, "user");
    return error_set(err, -EPERM, "job %" PRId64 " belongs to %s: only its owner may connect to it",
        field_integer(job, "id", 0), owner);
}

int running_job(struct call *call, char *word, enum leaver leaver, char **ret, struct error *err)
{
    _cleanup_strings_ struct strings jobs = { 0 };
    _cleanup_json_ json_t *job = NULL;
    char *const words[] = { word };
    int r = selector_resolve(call, 1, words, &jobs, err);
    if (r == 0 && jobs.count != 1)
        r = error_set(err, -EINVAL, "'%.60s' matches %zu jobs; give one", word, jobs.count);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", jobs.items[0]);
    r = client_get(&call->client, path, &job, err);
    if (r < 0)
        return r;
    if (job_is_done(job))
        return error_set(err, -EALREADY, "job %s has ended", jobs.items[0]);
    r = check_owner(call, job, err);
    if (r == 0 && !field_is_known(job, "started_at"))
        r = running_wait(call, job, leaver, err);
    if (r == 0)
        *ret = xstrdup(jobs.items[0]);
    return r;
}

int running_report_end(struct call *call, const char *job, struct error *err)
{
    _cleanup_json_ json_t *ended = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", job);
    int r = client_get(&call->client, path, &ended, err);
    if (r < 0)
        return r;
    follow_report(call, call->command->name, ended);
    return exit_code_of_job(ended);
}
