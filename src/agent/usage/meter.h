/* SPDX-License-Identifier: MIT */
/*
 * Adds up the resource usage of one attempt, sample by sample. It uses no clock and no file: a sample
 * contains everything, and the state that must outlive an agent is a record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/usage.h"
#include "wire/message.h"

/* Host resources used by the attempt's processes; see agent/usage/host.h. */
struct usage_host {
    bool is_cpu_known, is_memory_known;
    bool is_paused;  // none of its processes can run: frozen or stopped
    uint64_t cpu_ms; // total
    uint64_t memory; // bytes now, or the peak
};

struct usage_sample {
    int64_t boot_ms, wall_ms;
    const struct record_list *gpus; // struct gpu_state, their processes with owners
    struct usage_host host;
};

/* A granted GPU in the last sample. */
struct meter_gpu {
    uint64_t energy_mj; // counter; 0: unknown
    uint64_t memory_used;
    uint64_t idle_ms; // as in struct usage_gpu
};

struct usage_meter {
    uint64_t job;
    uint32_t attempt;
    int64_t last_ms;         // boot clock: last sample, or the start
    int64_t unused_from_ms;  // boot clock: its start, later by what it was paused; 0: its GPUs were used, or
                             // unknown
    uint64_t busy_ms;        // GPU time weighted by utilization, in thousandths
    uint64_t gpu_ms;         // GPU time with known utilization
    uint64_t cpu_ms;         // of the host, at the last sample
    struct record_list gpus; // struct meter_gpu, one per grant
    /* The bucket of the timeline being filled. */
    uint64_t bucket_ms;
    uint32_t busy, memory, power; // percent; USAGE_NOT_KNOWN
    struct record_list usage;     // exactly one struct job_usage
};

/* The state passed on to the next agent. */
extern const struct record_type usage_meter_record;

/* `started_ms`: on the boot clock. */
void usage_meter_init(
    struct usage_meter *meter, uint64_t job, uint32_t attempt, size_t n_grants, int64_t started_ms);
void usage_meter_clear(struct usage_meter *meter);

/* From now on, memory above the share that was granted is noted. `share`: a name of job/share.h, or NULL. */
void usage_meter_enforce(struct usage_meter *meter, const char *share, const char *why);

/* `grants` (struct gpu_grant) must be the same in each call. */
void usage_meter_add(
    struct usage_meter *meter, const struct record_list *grants, const struct usage_sample *sample);

/* A copy of the usage so far, to be freed with job_usage_free(); NULL before the first sample of a job
 * without status reports. */
struct job_usage *usage_meter_read(const struct usage_meter *meter);
