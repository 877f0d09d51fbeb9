/* SPDX-License-Identifier: MIT */
/* The job record and the only function that writes its state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "job/event.h"
#include "job/spec.h"
#include "job/state.h"

#define JOB_SUMMARY_MAX 160U // bytes of the command kept for lists

/* What stays in memory and in the jobs table for every job; the spec itself lives in the store. */
struct job {
    uint64_t id;
    uint32_t uid, gid;
    enum job_state state;
    uint32_t attempt; // number of the latest attempt, 0 before the first
    int32_t priority;
    uint32_t gpus;
    uint64_t gpu_mem;
    char *gpu_ids;                              // as asked, or NULL
    char *name;                                 // as shown
    char *summary;                              // start of the command line
    int64_t submitted_ms, started_ms, ended_ms; // wall clock, 0 while it has not happened
    /* While an attempt is active, and afterwards for the record. */
    uint64_t token;
    char *node;
    char *boot_id;
    struct record_list grants; // struct gpu_grant; kept after the end, to be shown
    char *log_path;
    /* When done. */
    enum job_end end;
    int32_t exit_code;
    uint32_t signal;
    uint32_t stopped_by; // uid, meaningful when `end` is END_CANCELLED
    int64_t run_ms;
    uint64_t cpu_ms, max_rss, log_bytes;
    char *text;
};

/* A job in state JOB_NEW, its request copied from `spec`. job_apply(EVENT_SUBMITTED) makes it real. */
struct job *job_new(uint64_t id, const struct job_spec *spec);
void job_free(struct job *job);
void job_freep(struct job **job);

/*
 * Folds one event into the job. Refuses, and changes nothing, when the transition table has no such row or
 * the event speaks of another attempt: -EPROTO with a sentence.
 */
int job_apply(struct job *job, const struct job_event *event, struct error *err);

/* What must hold in each state; for tests and --fsck. Returns 0 or -EBADMSG with the rule that is broken. */
int job_invariant(const struct job *job, struct error *err);
