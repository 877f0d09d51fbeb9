/* SPDX-License-Identifier: MIT */
/*
 * Resource usage of an attempt. The agent keeps it while the attempt runs, reports it once a second for
 * display, and sends it with the end, when it becomes part of the job's record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/optional.h"
#include "base/record.h"

#define USAGE_BUCKETS     60U // of the timeline
#define USAGE_BUCKET_SIZE 6U  // hexadecimal digits of one
#define USAGE_FAULT_MAX   512U
#define USAGE_TAIL_MAX    2048U // bytes of the last lines
#define USAGE_GPUS_MAX    1024U
#define USAGE_STATUS_MAX  256U
#define USAGE_SHARE_MAX   512U

/* A percentage of the timeline that was not measured. */
#define USAGE_NOT_KNOWN 0xffU

/* Flags of the values that were measured. */
enum usage_value {
    USAGE_UTILIZATION = 1,
    USAGE_GPU_MEMORY = 2,
    USAGE_ENERGY = 4,
    USAGE_MEMORY = 8,
    USAGE_PROGRESS = 16,
};

/* A GPU of an attempt. */
struct usage_gpu {
    uint64_t idle_ms; // how long it has been unused; 0: in use or unknown
};

struct job_usage {
    uint32_t valid;                  // bits of enum usage_value
    uint64_t sampled_ms;             // time over which the GPUs were sampled
    uint32_t utilization_milli;      // mean over that time and its GPUs, thousandths
    uint32_t utilization_peak_milli; // highest sample of any GPU
    uint64_t
        gpu_memory_peak; // bytes on one GPU: of the job's processes if they can be told apart, else total
    uint64_t gpu_memory_size; // of that GPU
    uint64_t energy_mj;       // millijoules consumed by its GPUs; for a shared GPU, its share
    uint64_t memory_peak;     // host memory, bytes
    uint64_t idle_gpu_ms;     // GPU time during which an allocated GPU was unused
    int64_t idle_since_ms;    // wall clock: all its GPUs have been unused since; 0: not idle
    uint64_t idle_ms;         // measured idle time, excluding gaps in sampling; 0: not idle
    struct record_list gpus;  // struct usage_gpu, one per grant on its node; empty: unknown
    uint32_t xid;             // the last driver error on its GPUs; 0: none
    char *fault;              // that error as text, with the GPU
    char *stray;              // GPUs it used without having been allocated them: "0,3"
    uint32_t bucket_s;        // seconds per bucket of the timeline; doubled whenever all are full
    char *timeline; // per bucket six hexadecimal digits: busy, memory, power in percent; ff: unknown
    char *tail;     // the last lines of its output when it failed
    /* Of a share of a GPU that is enforced (job/share.h). */
    char *share;              // the kind in effect: "mps"; NULL: none
    char *share_why;          // why this one, and no stronger one
    uint64_t gpu_memory_cap;  // bytes on one GPU; 0: none
    uint64_t gpu_memory_over; // bytes used on a GPU on which they exceed the cap; 0: on none
    uint64_t over_ms;         // for how long they have
    /* From its start to the first sample that shows one of its processes on one of its GPUs, excluding
     * pauses; 0: no such sample, or a gap before it. */
    uint64_t first_use_ms;
    /* Status reports of the job. */
    uint32_t progress_ppm;   // of PROGRESS_WHOLE
    char *status;            // or NULL
    int64_t checkpointed_ms; // wall clock: last report that its work is saved; 0: never
};

extern const struct record_type job_usage_record;

/*
 * The measured values. Only code that measures, stores or merges them uses `valid` and the values above
 * (tools/check-numbers has the list); all other code uses these, which are "not known" if nothing was
 * measured. A peak of GPU memory of 0 is "not measured": a program that uses a GPU has memory on it.
 */
struct optional usage_utilization_milli(const struct job_usage *usage);
struct optional usage_utilization_peak_milli(const struct job_usage *usage);
struct optional usage_first_use_ms(const struct job_usage *usage);
struct optional usage_gpu_memory_peak(const struct job_usage *usage);
struct optional usage_gpu_memory_size(const struct job_usage *usage);
struct optional usage_energy_mj(const struct job_usage *usage);
struct optional usage_memory_peak(const struct job_usage *usage);

/* One bucket of the timeline, each value in percent or USAGE_NOT_KNOWN. */
struct usage_bucket {
    uint8_t busy, memory, power;
};

/* The higher one of two parts of a bucket that is known. */
uint8_t usage_higher(uint8_t a, uint8_t b);

/* Reads the bucket at that index; false after the last one and if the text is damaged. */
bool usage_bucket_read(const struct job_usage *usage, uint32_t index, struct usage_bucket *ret);

/* Adds a bucket; when all are full, neighbours are merged (keeping the higher value) and bucket_s doubles. */
void usage_bucket_add(struct job_usage *usage, const struct usage_bucket *bucket);

/* True if the job has sent a status report. */
bool job_usage_has_reports(const struct job_usage *usage);

void job_usage_clear(struct job_usage *usage);

/* A deep copy, or NULL for NULL; job_usage_free(NULL) is allowed. */
struct job_usage *job_usage_copy(const struct job_usage *usage);
void job_usage_free(struct job_usage *usage);
