/* SPDX-License-Identifier: MIT */
/*
 * Running jobs that exceed their share of GPU memory, if it is enforced (job/share.h). Their agent measures
 * the use and warns them at once; they are ended here if it lasts. Unknown usage does not count against a
 * job, nor does the time for which it was suspended.
 */
#include "job/share.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"

static void on_usage(struct core *core, struct core_entry *entry, const struct attempt_usage *reported)
{
    const struct job_usage *usage = core_extra(entry)->usage;
    if (entry->job->state != JOB_RUNNING || usage == NULL || usage->share == NULL ||
        usage->gpu_memory_over == 0 || usage->over_ms < SHARE_OVER_MS)
        return;
    core_stop_job(core, entry, core->options.admin_uid, END_GPU_MEM);
}

const struct core_concern core_concern_share = {
    .name = "share",
    .usage = on_usage,
};
