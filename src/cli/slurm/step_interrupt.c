/* SPDX-License-Identifier: MIT */
#include "cli/slurm/step_interrupt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/buffer.h"
#include "cli/follow/terminal_options.h"

enum task_state { TASK_RUNNING, TASK_EXITED, TASK_FAILED, TASK_STATES };

static enum task_state state_of(const struct step_task *task)
{
    return task->is_running ? TASK_RUNNING : task->status == 0 ? TASK_EXITED : TASK_FAILED;
}

/* "tasks 0,2-5: running", for each state that some task has. */
static void print_state(const struct step *step, enum task_state state)
{
    static const char *const names[] = { "running", "exited", "exited abnormally" };
    _cleanup_buffer_ struct buffer list = { 0 };
    uint32_t count = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t last = i;
        if (state_of(&step->tasks[i]) != state)
            continue;
        while (last + 1 < step->count && state_of(&step->tasks[last + 1]) == state)
            last++;
        buffer_printf(&list, "%s%u", count > 0 ? "," : "", i);
        if (last > i)
            buffer_printf(&list, "-%u", last);
        count += last - i + 1;
        i = last;
    }
    if (count > 0)
        (void)fprintf(stderr, "srun: StepId=%" PRIu64 ".%" PRId64 " %s %s: %s\n", step->job_id, step_id(step),
            count > 1 ? "tasks" : "task", buffer_text(&list), names[state]);
}

void step_interrupt(struct step *step)
{
    bool is_again = follow_is_again(&step->interrupted_ms);
    if (!is_again && !step->job->is_status_off) {
        (void)fprintf(stderr, "srun: interrupt (one more within 1 sec to abort)\n");
        for (int state = TASK_RUNNING; state < TASK_STATES; state++)
            print_state(step, (enum task_state)state);
        return;
    }
    if (step->is_ending) {
        (void)fprintf(stderr, "srun: forcing job termination\n");
        step_signal(step, SIGKILL);
        return;
    }
    (void)fprintf(
        stderr, "srun: sending Ctrl-C to StepId=%" PRIu64 ".%" PRId64 "\n", step->job_id, step_id(step));
    step_signal(step, SIGINT);
    step_terminate(step);
}
