/* SPDX-License-Identifier: MIT */
/* Records driver errors on the GPUs of an attempt in its usage. */
#pragma once

#include "job/usage.h"
#include "wire/message.h"

/*
 * Records the most severe error on the GPUs of these grants (struct gpu_grant) at or after `from_ms` (boot
 * clock), the first among equals, because later ones are usually its consequences. `gpus` are struct
 * gpu_state. Idempotent.
 */
void gpu_fault_note(struct job_usage *usage, const struct record_list *grants, const struct record_list *gpus,
    int64_t from_ms);
