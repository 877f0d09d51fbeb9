/* SPDX-License-Identifier: MIT */
/* What srun -v prints about a step before its tasks start, in Slurm's words: scripts read the number of the
 * job from them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hostlist.h"
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

/* "0" or "[0-3]": tasks of a node are numbered in a row. */
static char *task_range(const struct step *step, uint32_t node, uint32_t count)
{
    uint32_t first = 0;
    while (first < step->count && step->tasks[first].node != node)
        first++;
    return count > 1 ? xasprintf("[%u-%u]", first, first + count - 1) : xasprintf("%u", first);
}

void step_tell(const struct step *step)
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
