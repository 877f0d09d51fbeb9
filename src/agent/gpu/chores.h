/* SPDX-License-Identifier: MIT */
/*
 * Work on a GPU between two jobs, by runs of mgpu-gpu-test: its memory is overwritten before a different user
 * than the last one gets it (--gpu-scrub), and it is tested while no job needs it (--gpu-test-every).
 *
 *           another user          done, or the last user again
 *      FREE ───────────> SCRUBBING ──────────────────────────> FREE, cleared
 *       │ ^                  └──failed──> out of service for a while
 *       │ └──done, failed, or a job wants it──┐
 *       └──idle, and it is time──> TESTING ───┘
 *
 * Only GPUs of vendors that mgpu-gpu-test can use. A GPU that other jobs share meanwhile is not overwritten:
 * their allocations could fail.
 */
#pragma once

#include <event2/event.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/gpu/check.h"
#include "agent/host/options.h"
#include "base/error.h"
#include "base/record.h"
#include "base/spool_id.h"

struct gpu_chores;

/* gpu_chores_admit() can be called again for this attempt. */
typedef void gpu_chores_ready_fn(void *arg, const struct spool_id *id);

/* NULL if the options request neither. `check` is told which GPUs are out of service; it and the directory
 * `state_fd`, in which results are kept, are borrowed. */
struct gpu_chores *gpu_chores_new(struct event_base *base, const struct agent_options *options,
    struct gpu_check *check, int state_fd, gpu_chores_ready_fn *on_ready, void *arg);
void gpu_chores_free(struct gpu_chores *chores); // NULL is allowed

/*
 * May this attempt of a user start on these GPUs (struct gpu_grant), which gpu_check_start() has found clean?
 * 0: yes, and it has them until gpu_chores_drop(). -EINPROGRESS: on_ready will be called. -EBUSY with a
 * sentence: one of them could not be overwritten.
 */
int gpu_chores_admit(struct gpu_chores *chores, const struct spool_id *id, uid_t uid,
    const struct record_list *grants, struct error *err);

/* It was started by an earlier agent. */
void gpu_chores_resume(
    struct gpu_chores *chores, const struct spool_id *id, uid_t uid, const struct record_list *grants);
void gpu_chores_drop(struct gpu_chores *chores, const struct spool_id *id);

/* A report (struct gpu_state): removes the processes of chores, adds the results of tests, and starts a test
 * if it is time. Each of these does nothing if `chores` is NULL. */
void gpu_chores_report(struct gpu_chores *chores, struct record_list *gpus, int64_t wall_ms);
