/* SPDX-License-Identifier: MIT */
#include "job/behind.h"

#include "base/memory.h"
#include "job/job.h"

bool job_is_behind(const struct job *job)
{
    return job_park(job)->behind != 0;
}

bool job_waits_behind(const struct job *job)
{
    return job->state == JOB_STARTING && job_is_behind(job);
}

enum job_state job_shown_state(const struct job *job)
{
    return job_waits_behind(job) ? JOB_QUEUED : job->state;
}

const char *job_behind_fault(const struct job *job, const struct job_event *event)
{
    if (event->type == EVENT_INHERITS)
        return job_is_behind(job) ? NULL : "it is not behind another element";
    if (event->behind == 0)
        return NULL;
    bool is_plain = event->gpus.count > 0 && event->nodes.count == 0 && event->is_early == 0;
    return job->array_job != 0 && is_plain ? NULL : "only an element with GPUs on one node is behind another";
}

void job_behind_apply(struct job *job, const struct job_event *event)
{
    struct job_run *run = job_make_run(job);
    bool is_bare = run->park == NULL || (run->park->phase == PARK_NONE && run->park->number == 0);
    if (is_bare && (event->behind != 0 || event->type == EVENT_INHERITS))
        job_park_free(take_ptr(run->park));
    if (event->behind != 0)
        run->park = xcalloc(1, sizeof(*run->park));
    if (run->park != NULL)
        run->park->behind = event->behind;
}
