/* SPDX-License-Identifier: MIT */
#include "cli/slurm/send.h"

#include <errno.h>

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
