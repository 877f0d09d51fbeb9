/* SPDX-License-Identifier: MIT */
/* The description of a job of a case, as the scheduler gets it. */
#pragma once

#include "lab/sim/check_world.h"

/* What the description points to is in here as well. */
struct case_spec {
    struct sched_job_spec given;
    struct ask_after after;
    struct gpu_pick pick;
    uint32_t allow[LEDGER_GPUS];
};

/* Describes job `number` as it is at this time; a parked job is bound to its place of return. The caller
 * clears `ret` with spec_clear(), and does not move it before. */
void spec_make(const struct world *world, size_t number, struct case_spec *ret);
void spec_clear(struct case_spec *spec);

/* Describes a waiting job that has run to the scheduler again: its place of return is another one now, or it
 * has none any more. */
void spec_submit_again(struct world *world, size_t number);
