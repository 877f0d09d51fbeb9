/* SPDX-License-Identifier: MIT */
/*
 * The verbs of mgpu-gpu-test. Each uses one GPU, writes lines of JSON to standard output, and returns the
 * program's exit status.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lab/cuda/api.h"

#define PROBE_OK      0
#define PROBE_WRONG   1 // the GPU or the driver did something wrong
#define PROBE_USAGE   2
#define PROBE_SKIPPED 77 // there is no driver, or no GPU

/* The status of a job that holds its memory now. */
#define PROBE_READY "ready"

struct probe_options {
    char *cuda_library;    // NULL: the driver's
    char *hip_library;     // NULL: ROCm's
    const char *arch;      // of compile: "gfx90a"; NULL: that of the GPU
    int64_t gpu;           // the driver's number
    uint64_t memory_bytes; // 0: what the verb takes by default
    double seconds;
    int64_t processes;       // of hold, side by side
    char *nccl_library;      // NULL: where the loader finds it
    char *nvml_library;      // NULL: where the loader finds it
    bool is_until_continued; // ends before, once the process was stopped and continued, as by parking
};

typedef int probe_fn(const struct probe_options *options, const struct cuda_api *api);

probe_fn probe_list;    // GPUs as the driver numbers them
probe_fn probe_health;  // speeds and the memory pattern
probe_fn probe_scrub;   // overwrites all free memory
probe_fn probe_hold;    // takes memory, keeps it for some seconds, and checks that it has not changed
probe_fn probe_need;    // takes memory or ends with the driver's out of memory
probe_fn probe_fault;   // writes to an address that is not mapped
probe_fn probe_managed; // memory that both sides use
probe_fn probe_peers;   // each pair of GPUs: access, kind of link, speed of copies
probe_fn probe_reduce;  // all-reduces of NCCL over all GPUs; skipped where there is no NCCL
probe_fn probe_compile; // translates the programs for an AMD GPU that need not be here
probe_fn probe_ram;     // takes host memory, and touches it; needs no driver
probe_fn probe_idle;    // waits for some seconds; needs no driver
probe_fn probe_limits;  // processors, and limits of the control group; needs no driver
probe_fn probe_nodes;   // which device nodes can be opened; needs no driver, and `api` is NULL
probe_fn probe_nvml;    // the GPUs that NVML can open here; needs no CUDA
probe_fn probe_open;    // whether the node of the driver itself can be opened; needs no driver

/* Prints the reason; returns PROBE_WRONG. */
int probe_failed(const struct error *err);

/* cuInit or hipInit. Returns PROBE_OK, or what to exit with, after a line that says why. */
int probe_start(const struct cuda_api *api);
