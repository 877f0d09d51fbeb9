/* SPDX-License-Identifier: MIT */
/* What srun -v prints about a step before its tasks start, in Slurm's words: scripts read the number of the
 * job from them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "compat/step/step.h"

/* "2(x1),1(x3)" of SLURM_JOB_CPUS_PER_NODE, which has no "(x1)". The caller frees it. */
static char *cpu_counts(void)
{
    const char *text = getenv("SLURM_JOB_CPUS_PER_NODE");
    _cleanup_buffer_ struct buffer out = { 0 };
    for (const char *p = text != NULL ? text : "1"; *p != '\0';) {
        size_t length = strcspn(p, ",");
        buffer_printf(&out, "%s%.*s%s", out.length > 0 ? "," : "", (int)length, p,
            memchr(p, '(', length) != NULL ? "" : "(x1)");
        p += length + (p[length] == ',');
    }
    return buffer_take(&out);
}

/* "0", "[0-3]" or "[0,2-3]": the tasks of a node. The caller frees it. */
static char *task_range(const struct step *step, uint32_t node, uint32_t count)
{
    _cleanup_buffer_ struct buffer list = { 0 };
    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t last = i;
        if (step->tasks[i].node != node)
            continue;
        while (last + 1 < step->count && step->tasks[last + 1].node == node)
            last++;
        buffer_printf(&list, "%s%u", list.length > 0 ? "," : "", i);
        if (last > i)
            buffer_printf(&list, "-%u", last);
        i = last;
    }
    return count > 1 ? xasprintf("[%s]", buffer_text(&list)) : buffer_take(&list);
}

void step_print(const struct step *step)
{
    const char *list = getenv("SLURM_JOB_NODELIST"), *number = getenv("SLURM_JOB_NUM_NODES");
    _cleanup_free_ char *counts = cpu_counts();
    if (!step->job->is_verbose)
        return;
    (void)fprintf(stderr, "srun: jobid %" PRIu64 ": nodes(%s):`%s', cpu counts: %s\n", step->job_id,
        number != NULL ? number : "1", list != NULL ? list : step->nodes.items[0], counts);
    for (uint32_t i = 0; i < step->nodes.count; i++) {
        uint32_t tasks = step_tasks_on(step, i);
        _cleanup_free_ char *range = task_range(step, i, tasks);
        (void)fprintf(stderr, "srun: launching StepId=%" PRIu64 ".%" PRId64 " on host %s, %u tasks: %s\n",
            step->job_id, step_id(step), step->nodes.items[i], tasks, range);
    }
}
