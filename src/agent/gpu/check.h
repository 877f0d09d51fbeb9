/* SPDX-License-Identifier: MIT */
/*
 * Whether a GPU is as it was before its last job. When an attempt ends, its GPUs are to be looked at; nothing
 * is started on them before that was done and showed them clean. Meanwhile the controller commits the end and
 * chooses the next job, so that the look costs no time when all is well.
 *
 *                       new ───────v
 *      CLEAN ──an attempt ends──> UNCHECKED ──looked at──> CLEAN
 *        ^                            └──────────────────> UNCLEAN ──┐
 *        └───────────────── a later look shows it clean ─────────────┘
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/spool.h"
#include "job/usage.h"
#include "wire/message.h"

struct gpu_check;

/* Has the GPUs of these grants looked at soon; returns the number that their `answers` will have reached. */
typedef uint64_t gpu_ask_fn(void *arg, const struct record_list *grants);

struct gpu_check *gpu_check_new(gpu_ask_fn *ask, void *arg);
void gpu_check_free(struct gpu_check *check); // NULL is fine

/* An attempt has these GPUs (struct gpu_grant, copied) until gpu_check_drop(). Harmless when repeated. */
void gpu_check_take(struct gpu_check *check, const struct spool_id *id, const struct record_list *grants);
void gpu_check_drop(struct gpu_check *check, const struct spool_id *id);

/* May it start? 0: it has started, as far as the check is concerned. -EINPROGRESS: its GPUs are being looked
 * at. -EBUSY with a sentence: one of them may not be used. */
int gpu_check_start(struct gpu_check *check, const struct spool_id *id, struct error *err);

/* It runs since before this agent. */
void gpu_check_resume(struct gpu_check *check, const struct spool_id *id);

/* It is over, and nothing of it runs. Harmless when repeated. */
void gpu_check_end(struct gpu_check *check, const struct spool_id *id, int64_t boot_ms);

/*
 * An error that it failed of may still come: the driver tells of it about when the command ends, by another
 * way. So a look GPU_CHECK_GRACE_MS after the end must have been answered; what waits for it is called by
 * gpu_check_each_waiting(), or asks again. False for GPUs that tell of no errors.
 */
bool gpu_check_awaits_errors(struct gpu_check *check, const struct spool_id *id, int64_t boot_ms);
#define GPU_CHECK_GRACE_MS 50

/* Notes the errors that it had since `from_ms` (boot clock); see gpu_fault_note(). *usage is made when it is
 * NULL and there is one. */
void gpu_check_note_fault(
    const struct gpu_check *check, const struct spool_id *id, int64_t from_ms, struct job_usage **usage);

/*
 * A report is there: `gpus` are struct gpu_state, their processes with their owners, whose is_unclean and
 * trouble are set. True when it says something that the controller should hear before anything is done on
 * these GPUs.
 */
bool gpu_check_report(struct gpu_check *check, struct record_list *gpus, int64_t boot_ms);

/* Calls for each attempt that waits for a look, to start or for its end to be told, and forgets that it does.
 */
void gpu_check_each_waiting(
    struct gpu_check *check, void (*visit)(void *arg, const struct spool_id *id), void *arg);
