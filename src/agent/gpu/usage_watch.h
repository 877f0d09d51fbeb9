/* SPDX-License-Identifier: MIT */
/*
 * What the agent makes of each GPU report: whose the processes are, and what every running attempt makes of
 * its GPUs. Which attempts run, and what they were given, it reads in the spool; what it has added up it
 * keeps there, so that it outlives an agent. Nothing is written before an attempt's first sample.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/spool.h"
#include "job/usage.h"
#include "wire/message.h"

struct usage_watch;

/* `spool_fd` is borrowed; `proc` is where procfs is mounted. */
struct usage_watch *usage_watch_new(int spool_fd, const char *proc);

/* Keeps what is not kept yet. NULL is fine. */
void usage_watch_free(struct usage_watch *watch);

/* Completes the processes of `gpus` (struct gpu_state) and adds the sample to every running attempt. */
void usage_watch_add(struct usage_watch *watch, struct record_list *gpus, int64_t boot_ms, int64_t wall_ms);

/* Only completes the processes, for a report that came between two samples. */
void usage_watch_own(struct usage_watch *watch, struct record_list *gpus);

/* What the running attempts have used so far: struct attempt_usage, cleared by usage_watch_clear(). */
void usage_watch_usages(const struct usage_watch *watch, struct record_list *ret);
void usage_watch_clear(struct record_list *usages);

/* The process of an adoption that waits counts as this job's from the next sample on, until the job runs or
 * usage_watch_unawait(). */
void usage_watch_await(struct usage_watch *watch, uint64_t job, pid_t pid, uint64_t start);
void usage_watch_unawait(struct usage_watch *watch, uint64_t job);

/* The job that a process belongs to (a step's own or an adoption's, running or waiting); 0: none. */
uint64_t usage_watch_job_of(struct usage_watch *watch, pid_t pid, int64_t boot_ms, int64_t wall_ms);

/* Indexes of the GPUs that this process and its descendants were on in the last sample: "0,2". The caller
 * frees it; NULL: none. */
char *usage_watch_gpus_of(const struct usage_watch *watch, pid_t pid, uint64_t start);

/* All that an attempt has used, for the report of its end; NULL when no sample was taken of it. The caller
 * frees it. From here on nothing is added any more. */
struct job_usage *usage_watch_end(struct usage_watch *watch, const struct spool_id *id);
