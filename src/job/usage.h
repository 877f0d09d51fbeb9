/* SPDX-License-Identifier: MIT */
/*
 * What an attempt made of what it was given: its black box. The agent keeps it while the attempt runs, says
 * it once a second for display, and hands it over with the end, when it becomes part of the job's record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/record.h"

#define USAGE_BUCKETS     60U // of the timeline
#define USAGE_BUCKET_SIZE 6U  // hexadecimal digits of one
#define USAGE_FAULT_MAX   512U
#define USAGE_TAIL_MAX    2048U // bytes of the last lines
#define USAGE_GPUS_MAX    1024U
#define USAGE_STATUS_MAX  256U

/* A percentage of the timeline that nobody measured. */
#define USAGE_NOT_KNOWN 0xffU

/* Which of the numbers were measured at all. */
enum usage_value {
    USAGE_UTILIZATION = 1,
    USAGE_GPU_MEMORY = 2,
    USAGE_ENERGY = 4,
    USAGE_MEMORY = 8,
    USAGE_PROGRESS = 16,
};

/* A GPU of an attempt. */
struct usage_gpu {
    uint64_t idle_ms; // for how long it has computed nothing; 0: it does, or nobody knows
};

struct job_usage {
    uint32_t valid;                  // bits of enum usage_value
    uint64_t sampled_ms;             // time over which the GPUs were sampled
    uint32_t utilization_milli;      // mean over that time and its GPUs, thousandths
    uint32_t utilization_peak_milli; // the busiest second of any of them
    uint64_t gpu_memory_peak; // bytes on one GPU: the job's own when processes are told apart, else all
    uint64_t gpu_memory_size; // of that GPU
    uint64_t energy_mj;       // millijoules drawn by its GPUs; of a shared GPU its share
    uint64_t memory_peak;     // host memory, bytes
    uint64_t idle_gpu_ms;     // GPU time in which it used nothing of what it held
    int64_t idle_since_ms;    // wall clock: none of its GPUs has been used since; 0: it is not idle
    uint64_t idle_ms;         // how long that was seen, which pauses do not lengthen; 0: it is not idle
    struct record_list gpus;  // struct usage_gpu, one per grant on its node; empty: not known
    uint32_t xid;             // the last error of the driver on its GPUs; 0: none
    char *fault;              // that error in words, with the GPU
    char *stray;              // GPUs that it was seen on and was not given: "0,3"
    uint32_t bucket_s;        // seconds of one bucket of the timeline; doubled whenever all are full
    char *timeline; // per bucket six hexadecimal digits: busy, memory, power in percent; ff: not known
    char *tail;     // the last lines of its output when it failed
    /* What the job said of itself. */
    uint32_t progress_ppm;   // of PROGRESS_WHOLE
    char *status;            // or NULL
    int64_t checkpointed_ms; // wall clock: when it said last that its work is saved; 0: never
};

extern const struct record_type job_usage_record;

/* One bucket of the timeline, each value in percent or USAGE_NOT_KNOWN. */
struct usage_bucket {
    uint8_t busy, memory, power;
};

/* Reads the bucket of that index; false behind the last one and when the text is damaged. */
bool usage_bucket_read(const struct job_usage *usage, uint32_t index, struct usage_bucket *ret);

/* Adds a bucket; when all are full, neighbours are merged (the higher value stands) and bucket_s doubles. */
void usage_bucket_add(struct job_usage *usage, const struct usage_bucket *bucket);

/* True when the job said something of itself. */
bool job_usage_has_said(const struct job_usage *usage);

void job_usage_clear(struct job_usage *usage);

/* A copy of its own, or NULL of NULL; job_usage_free(NULL) is fine. */
struct job_usage *job_usage_copy(const struct job_usage *usage);
void job_usage_free(struct job_usage *usage);
