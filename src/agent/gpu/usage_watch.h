/* SPDX-License-Identifier: MIT */
/*
 * Processes each GPU report: identifies the owners of processes and adds the sample to the usage of every
 * running attempt. Reads running attempts and their grants from the spool, and stores totals there, so that
 * they survive the agent. Nothing is written before an attempt's first sample.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/spool.h"
#include "job/usage.h"
#include "wire/message.h"

struct usage_watch;

/* `spool_fd` is borrowed; `proc` is the mount point of procfs. */
struct usage_watch *usage_watch_new(int spool_fd, const char *proc);

/* Stores unsaved totals. NULL is allowed. */
void usage_watch_free(struct usage_watch *watch);

/* Completes the processes of `gpus` (struct gpu_state) and adds the sample to every running attempt with
 * GPUs, and to some of the others: each has its turn. */
void usage_watch_add(struct usage_watch *watch, struct record_list *gpus, int64_t boot_ms, int64_t wall_ms);

/* Only completes the processes, for a report between two samples. */
void usage_watch_own(struct usage_watch *watch, struct record_list *gpus);

/* The attempt has other GPUs now: reads its spec again. */
void usage_watch_reload(struct usage_watch *watch, const struct spool_id *id);

/* The usage so far of the running attempts that were measured since it was passed on: struct attempt_usage,
 * to be cleared with usage_watch_clear(). */
void usage_watch_usages(const struct usage_watch *watch, struct record_list *ret);

/* The usages were passed on; or, if they are new, another controller has none of them yet. */
void usage_watch_set_new(struct usage_watch *watch, bool is_new);
void usage_watch_clear(struct record_list *usages);

/* Attributes the process of a waiting adoption to this job from the next sample on, until the job runs or
 * usage_watch_unawait(). */
void usage_watch_await(struct usage_watch *watch, uint64_t job, pid_t pid, uint64_t start);
void usage_watch_unawait(struct usage_watch *watch, uint64_t job);

/* The job that a process belongs to (a step or an adoption, running or waiting); 0: none. */
uint64_t usage_watch_job_of(struct usage_watch *watch, pid_t pid, int64_t boot_ms, int64_t wall_ms);

/* The attempt of mgpu, not an adoption, that runs here and has this process. False: none. */
bool usage_watch_attempt_of(
    struct usage_watch *watch, pid_t pid, int64_t boot_ms, int64_t wall_ms, struct spool_id *ret);

/* Indexes of the GPUs used by this process and its descendants in the last sample: "0,2". The caller frees
 * it; NULL: none. */
char *usage_watch_gpus_of(const struct usage_watch *watch, pid_t pid, uint64_t start);

/* The total usage of an attempt, for the report of its end; NULL if there was no sample. The caller frees it.
 * Nothing is added afterwards. */
struct job_usage *usage_watch_end(struct usage_watch *watch, const struct spool_id *id);
