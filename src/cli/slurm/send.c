/* SPDX-License-Identifier: MIT */
#include "cli/slurm/send.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/parse.h"
#include "cli/slurm/partitions.h"
#include "cli/slurm/slurm.h"
#include "cli/term/field.h"

int slurm_job_send(
    struct slurm_job *job, json_t *command, const char *script, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL, *taken = command;
    unsigned left_out = 0;
    job->call.options = &job->submit;
    job->call.is_quiet = true;
    int r = submit_request(&job->call, taken, &request, &left_out, err);
    if (r == 0 && script != NULL && json_object_set_new(request, "script", json_string(script)) < 0)
        r = error_set(err, -EINVAL, "the script is not UTF-8 text");
    if (r == 0)
        r = submit_send(&job->call, request, ret, err);
    if (r < 0 && request != NULL && !slurm_is_away(err))
        slurm_partition_explain(&job->call.client, job->program, request, err);
    job->call.options = NULL;
    return r;
}

int slurm_job_await_immediate(struct slurm_job *job, const json_t *made, struct error *err)
{
    _cleanup_json_ json_t *now = NULL;
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/jobs/%" PRId64 "/wait?states=starting,running,stopping,done,failed,cancelled",
            field_integer(made, "id", 0));
    if (job->immediate_s <= 0)
        return 0;
    job->call.client.timeout_ms = CLIENT_PATIENT_MS;
    int r = client_get(&job->call.client, path, &now, err);
    if (r == -EINTR) {
        *err = (struct error){ 0 };
        return 0;
    }
    if (r < 0 || !field_is(now, "ended_by", "deadline"))
        return r;
    return error_set(err, -EBUSY, "Unable to allocate resources: Requested nodes are busy");
}

int slurm_exit_immediate(const struct error *err, int status)
{
    const char *text = getenv("SLURM_EXIT_IMMEDIATE");
    int64_t number = status;
    if (err->code == -EBUSY && text != NULL)
        (void)parse_integer(text, "SLURM_EXIT_IMMEDIATE", 0, 255, &number, NULL);
    return (int)number;
}
