/* SPDX-License-Identifier: MIT */
/* The reasons why a job waits: all blockers by code, the jobs ahead of it, its start time, and the change
 * that would start it now. */
#pragma once

#include "job/why_code.h"
#include "sched/forecast.h"
#include "sched/sched.h"

struct why_reason {
    enum why_code code;
    char text[QUEUE_TEXT_MAX];
    uint64_t jobs[8]; // that block it, the first few
    size_t n_jobs;
    struct alloc_gpu gpus[8];
    size_t n_gpus;
    int64_t until_ms;    // TIME_NEVER: unknown
    bool is_own_failure; // of the job's last attempt: its record has the reason
};

/* With `park: auto`: why no running job is parked for it. */
struct why_park {
    uint64_t host;  // which comes nearest; 0: it is about the waiting job itself
    bool is_barred; // the host cannot be parked: its caller knows more
    char text[192]; // behind "because": "it probably ends in 10m"; empty: not known, or nothing to say
};

struct why_run;

struct why_ahead {
    uint64_t job;
    int64_t start_ms; // waiting ones: expected start
    int64_t end_ms;   // running ones: expected end
    bool is_running;
};

struct why {
    struct why_reason reasons[8]; // longest-lasting first; empty: it starts in the next pass
    size_t n_reasons;
    struct why_ahead ahead[8]; // jobs ahead of it
    size_t n_ahead;
    uint64_t position;          // in the queue, 1 is next; 0: not in the queue
    int64_t eta_ms, latest_ms;  // TIME_NEVER: unknown
    int64_t overtaken_until_ms; // jobs of its priority submitted after this cannot precede it; TIME_NEVER:
                                // unknown
    int64_t promised_ms;        // the maximum of that time; TIME_NEVER: unknown
    char eta_basis[128], latest_basis[128], promise_basis[96];
    struct why_park park;
    bool has_change;          // the cheapest change that would start it now
    char change[160];         // as text: "-g 1 starts now on node1:5"
    struct class_key changed; // owned; with that change applied
};

/* No reasons, and no time is known. */
#define WHY_NONE                                                                                             \
    ((struct why){ .eta_ms = TIME_NEVER,                                                                     \
        .latest_ms = TIME_NEVER,                                                                             \
        .overtaken_until_ms = TIME_NEVER,                                                                    \
        .promised_ms = TIME_NEVER })

/* Only the reasons: cheap, without a forecast; for listings. `is_brief` stops after the first. */
void why_reasons(struct sched *sched, int64_t now_ms, uint64_t job, bool is_brief, struct why *ret);

/* Everything. With `spec`: for a job that does not exist yet (spec->id 0), as if submitted now. */
void why_explain(
    struct sched *sched, int64_t now_ms, uint64_t job, const struct sched_job_spec *spec, struct why *ret);
void why_clear(struct why *why);

/*
 * The same in parts, so the caller can do other work in between: each advance() makes one copy of the
 * scheduler, or processes the given number of steps of a forecast. True: it is complete. The scheduler
 * may change meanwhile and must exist until the end, which frees the run; `ret` NULL: no result is
 * wanted.
 */
struct why_run *why_begin(struct sched *sched, int64_t now_ms, uint64_t job);
bool why_advance(struct why_run *run, size_t steps);
void why_end(struct why_run *run, struct why *ret);
