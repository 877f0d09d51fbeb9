/* SPDX-License-Identifier: MIT */
/* The requeue and the larger request are two events of one batch, so both are durable or neither is. */
#include "controller/core/gpu_oom.h"

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/change.h"
#include "controller/core/enqueue.h"
#include "controller/core/entry.h"
#include "controller/core/submit.h"
#include "job/gpu_oom.h"

char *core_gpu_oom_recognise(struct job_event *event)
{
    const struct job_usage *usage = event->usage.items;
    bool has_failed = (event->end == END_EXIT && event->exit_code != 0) || event->end == END_SIGNAL;
    if (!has_failed || usage == NULL || usage->tail == NULL)
        return NULL;
    _cleanup_free_ char *line = gpu_oom_line(usage->tail);
    if (line == NULL)
        return NULL;
    event->end = END_GPU_OOM;
    struct optional used = usage_gpu_memory_peak(usage), all = usage_gpu_memory_size(usage);
    if (!used.is_known || !all.is_known) // it ended too quickly for the samples; the line has its own figures
        return take_ptr(line);
    char peak[32], size[32];
    format_size(used.value, peak, sizeof(peak));
    format_size(all.value, size, sizeof(size));
    return xasprintf("it used up to %s of %s; its output: %s", peak, size, line);
}

static bool can_run(const struct core *core, const struct job *job, const struct job_ask *ask)
{
    struct error ignored = { 0 };
    uint32_t gpus = 0;
    return job_ask_validate(ask, &ignored) == 0 &&
           core_check_changed(core, job, ask, NULL, &gpus, &ignored) == 0;
}

bool core_gpu_oom_enlarge(const struct core *core, const struct core_entry *entry,
    const struct job_event *event, struct job_ask *ret)
{
    const struct job *job = entry->job;
    if (event->end != END_GPU_OOM || job->stop_reason != END_NONE ||
        !gpu_oom_enlarge(job->ask, event->usage.items, core_memory_of_gpu(core, job), ret))
        return false;
    if (can_run(core, job, ret) || (gpu_oom_take_whole(ret) && can_run(core, job, ret)))
        return true;
    job_ask_clear(ret);
    return false;
}

void core_gpu_oom_edit(struct core *core, struct core_entry *entry, struct job_ask *larger)
{
    static const struct core_facts none = { 0 };
    struct job_event event = {
        .type = EVENT_EDITED,
        .uid = entry->job->uid, // the user who requested it with the job
        .ask = { .items = larger, .count = 1 },
    };
    core_change(core, entry, &event, NULL);
    core_enqueue(core, entry, &none, true);
    job_ask_clear(larger);
}
