/* SPDX-License-Identifier: MIT */
/*
 * Checks that a GPU is clean after its last job. When an attempt ends, its GPUs must be checked; nothing is
 * started on them until a check has found them clean. Meanwhile the controller commits the end and chooses
 * the next job, so the check costs no time when the GPU is clean.
 *
 *                       new ───────v
 *      CLEAN ──attempt ends──> UNCHECKED ──checked──> CLEAN
 *        ^                         └────────────────> UNCLEAN ──┐
 *        └─────────────── a later check finds it clean ─────────┘
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/spool.h"
#include "job/usage.h"
#include "wire/message.h"

struct gpu_check;

/* Requests a check of the GPUs of these grants; returns the number that their `answers` will have reached. */
typedef uint64_t gpu_ask_fn(void *arg, const struct record_list *grants);

struct gpu_check *gpu_check_new(gpu_ask_fn *ask, void *arg);
void gpu_check_free(struct gpu_check *check); // NULL is allowed

/* The attempt uses these GPUs (struct gpu_grant, copied) until gpu_check_drop(). Idempotent. */
void gpu_check_take(struct gpu_check *check, const struct spool_id *id, const struct record_list *grants);
void gpu_check_drop(struct gpu_check *check, const struct spool_id *id);

/* May it start? 0: yes; the check then regards it as started. -EINPROGRESS: its GPUs are being checked.
 * -EALREADY: another attempt has not left them yet. -EBUSY with a sentence: one of them may not be used. */
int gpu_check_start(struct gpu_check *check, const struct spool_id *id, struct error *err);

/* It was started by an earlier agent. */
void gpu_check_resume(struct gpu_check *check, const struct spool_id *id);

/*
 * A parked attempt has left its GPUs like an ended one: gpu_check_end(). gpu_check_left(): 0 once they were
 * found clean, -EINPROGRESS until then, -EBUSY with what is still on them. gpu_check_return(): before it is
 * restored; 0 if they are clean, and it has them again. gpu_check_keep(): it has them again in any case.
 */
int gpu_check_left(struct gpu_check *check, const struct spool_id *id, struct error *err);
int gpu_check_return(struct gpu_check *check, const struct spool_id *id, struct error *err);
void gpu_check_keep(struct gpu_check *check, const struct spool_id *id);

/* It starts, or has started, without its GPUs: gpu_check_return() assigns them. */
void gpu_check_leave(struct gpu_check *check, const struct spool_id *id);

/* True if it has left its GPUs, or never had them: it is parked, or has started early. */
bool gpu_check_is_away(const struct gpu_check *check, const struct spool_id *id);

/* It is parked, and will return on these GPUs. */
void gpu_check_move(struct gpu_check *check, const struct spool_id *id, const struct record_list *grants);

/* It has ended, and none of its processes is left. Idempotent. */
void gpu_check_end(struct gpu_check *check, const struct spool_id *id, int64_t boot_ms);

/*
 * True while an error that made it fail may still arrive: the driver reports errors at about the time the
 * command ends, in another way. A check GPU_CHECK_GRACE_MS after the end must have been answered. Callers
 * that wait are called by gpu_check_each_waiting(), or ask again. False for GPUs that report no errors.
 */
bool gpu_check_awaits_errors(struct gpu_check *check, const struct spool_id *id, int64_t boot_ms);
#define GPU_CHECK_GRACE_MS 50

/* Records the errors of its GPUs since `from_ms` (boot clock); see gpu_fault_note(). Creates *usage if it is
 * NULL and there is one. */
void gpu_check_note_fault(
    const struct gpu_check *check, const struct spool_id *id, int64_t from_ms, struct job_usage **usage);

/*
 * Processes a report: `gpus` are struct gpu_state, their processes with owners; sets is_unclean and trouble.
 * True if the controller must receive it before anything else happens on these GPUs.
 */
bool gpu_check_report(struct gpu_check *check, struct record_list *gpus, int64_t boot_ms);

/* Takes the GPU out of service with this reason, or, with NULL, ends that; the next report shows it. */
void gpu_check_refuse(struct gpu_check *check, const char *uuid, const char *why);

/* Calls for each attempt that waits for a check, to start or to report its end, and ends that wait. */
void gpu_check_each_waiting(
    struct gpu_check *check, void (*visit)(void *arg, const struct spool_id *id), void *arg);
