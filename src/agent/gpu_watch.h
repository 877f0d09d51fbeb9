/* SPDX-License-Identifier: MIT */
/*
 * What the agent makes of each GPU report: whose the processes are, and what every running attempt makes of
 * its GPUs. Which attempts run, and what they were given, it reads in the spool; what it has added up it
 * keeps there, so that it outlives an agent. Nothing is written before an attempt's first sample.
 */
#pragma once

#include <stdint.h>

#include "base/spool.h"
#include "job/usage.h"
#include "wire/message.h"

struct gpu_watch;

/* `spool_fd` is borrowed; `proc` is where procfs is mounted. */
struct gpu_watch *gpu_watch_new(int spool_fd, const char *proc);

/* Keeps what is not kept yet. NULL is fine. */
void gpu_watch_free(struct gpu_watch *watch);

/* Completes the processes of `gpus` (struct gpu_state) and adds the sample to every running attempt. */
void gpu_watch_add(struct gpu_watch *watch, struct record_list *gpus, int64_t boot_ms, int64_t wall_ms);

/* Only completes the processes, for a report that came between two samples. */
void gpu_watch_own(struct gpu_watch *watch, struct record_list *gpus);

/* What the running attempts have used so far: struct attempt_usage, cleared by gpu_watch_clear(). */
void gpu_watch_usages(const struct gpu_watch *watch, struct record_list *ret);
void gpu_watch_clear(struct record_list *usages);

/* All that an attempt has used, for the report of its end; NULL when no sample was taken of it. The caller
 * frees it. From here on nothing is added any more. */
struct job_usage *gpu_watch_end(struct gpu_watch *watch, const struct spool_id *id);
