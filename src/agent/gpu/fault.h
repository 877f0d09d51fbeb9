/* SPDX-License-Identifier: MIT */
/* Which error of the driver an attempt had on its GPUs: what its black box says of it. */
#pragma once

#include "job/usage.h"
#include "wire/message.h"

/*
 * Notes the worst error that came to the GPUs of these grants (struct gpu_grant) at `from_ms` (boot clock) or
 * later, of equals the first: what follows from it is no news. `gpus` are struct gpu_state. Asking again
 * changes nothing.
 */
void gpu_fault_note(struct job_usage *usage, const struct record_list *grants, const struct record_list *gpus,
    int64_t from_ms);
