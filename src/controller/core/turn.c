/* SPDX-License-Identifier: MIT */
/*
 * Turns. Everything in one turn of the event loop has the same time, core->now_ms, from core/clock.c, always
 * later than in the previous turn. At the end of a turn there is at most one pass of the scheduler, at that
 * time. Timers of the scheduler are handled at exactly their time, before anything later. The log of events
 * therefore determines when each pass was, and replaying it through another scheduler gives the same
 * decisions (docs/journal.md).
 *
 * Times in the log are whole milliseconds. A turn that would end in the same millisecond as the previous one
 * stays open until the next: there are never more turns than milliseconds, and the log's time never runs
 * ahead.
 */
#include "base/memory.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/state.h"

void core_timer(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    (void)core_clock_read(core, boot_ms, wall_ms);
    core->armed_ms = 0;
    if (core_next_due(core) > boot_ms)
        return;
    core_begin(core, boot_ms, wall_ms);
    core_run_due(core);
}

/* Arms the timer for the next event that is due. */
static void arm_next(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    (void)core_clock_read(core, boot_ms, wall_ms);
    int64_t next_ms = core_next_due(core), pass_ms = core_boot_at(core, sched_next_ms(core->sched));
    next_ms = pass_ms < next_ms ? pass_ms : next_ms;
    if (next_ms != TIME_NEVER)
        core_arm(core, next_ms > boot_ms ? next_ms : boot_ms + 1);
}

static void end_turn(struct core *core, int64_t boot_ms)
{
    if (boot_ms == core->last_boot_ms) {
        core_arm(core, boot_ms + 1);
        return;
    }
    core->last_boot_ms = boot_ms;
    if (sched_is_dirty(core->sched) || sched_next_ms(core->sched) <= core->now_ms) {
        core_pass_at(core, core->now_ms);
        return;
    }
    core->last_ms = core->now_ms;
    core->now_ms = 0;
}

void core_turn(struct core *core, int64_t boot_ms, int64_t wall_ms)
{
    if (sched_next_ms(core->sched) <= core_clock_read(core, boot_ms, wall_ms))
        core_begin(core, boot_ms, wall_ms);
    if (core->now_ms != 0 && core_next_due(core) <= boot_ms)
        core_run_due(core); // before the pass, which must not start a job that has passed its deadline
    if (core->now_ms != 0) {
        core_hook_turn(core);
        end_turn(core, boot_ms);
    }
    arm_next(core, boot_ms, wall_ms);
    if (core->flying != NULL || core->open == NULL)
        return;
    if (core->open->due_ms == TIME_NEVER) // no event is in it
        core->open->due_ms = boot_ms + CORE_PATIENCE_MS;
    if (core->open->due_ms > boot_ms) {
        core_arm(core, core->open->due_ms);
        return;
    }
    core->flying = take_ptr(core->open);
    core->effects.commit(core->effects.arg, take_ptr(core->flying->changes));
}
