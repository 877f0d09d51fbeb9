/* SPDX-License-Identifier: MIT */
/*
 * The kit for a machine with a GPU that mgpu has not met: a table of checks, a report for programs, and a
 * page for people. It changes no setting of a GPU and leaves nothing behind. A check that cannot be made is
 * skipped with the reason; a check that fails says what was expected and what came.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_SKIPPED, OUTCOMES };

struct result {
    enum outcome outcome;
    char text[512]; // one sentence
    json_t *facts;  // an object: what was seen, whatever the outcome
};

/* A word that stands for the number of that GPU in arguments of mgpu. */
#define KIT_GPU "@gpu"

struct instance;

struct kit {
    const char *programs;      // the folder of mgpu's programs
    char *work;                // a private folder, removed at the end; every user can read it
    int64_t end_ms;            // on the boot clock: no check runs beyond it
    int64_t start_ms;          // time limit for a program to start CUDA and end
    struct instance *instance; // a private mgpud; NULL: not started, or it does not start
    char *no_gpu;              // why there is no GPU to test; NULL: there is one
    char *no_cuda;             // why no program can use one; NULL: they can
    char *no_park;             // why no job can be parked; NULL: it is not known, or they can
    char *nvml_library;        // where the loader found it; NULL: nowhere
    json_t *nvml_gpus;         // array: index, uuid, pci, minor, memory, as NVML has them
    json_t *amd_gpus;          // array: the same of AMD GPUs; NULL: there is no driver of AMD
    const char *sysfs_root;    // NULL: /sys
    const char *rocm_library;  // NULL: where ROCm is installed
    size_t gpu;                // the place there of the GPU that most checks use: the first that has jobs
};

enum need {
    NEED_NOTHING,
    NEED_NVML,  // a GPU that NVML can open
    NEED_CUDA,  // and that programs can use
    NEED_MGPUD, // mgpud, which needs NVML
    NEED_JOBS,  // both of these
};

enum rank {
    RANK_FIRST, // others use what it finds, so --only does not leave it out
    RANK_HIGH,  // what decides whether mgpu can be used on such a machine, and what may be promised of it
    RANK_MIDDLE,
    RANK_LOW,   // it lasts long, or seldom tells something new
    RANK_ASKED, // only if --only names it: it changes the machine for a moment, or needs something prepared
    RANKS,
};

struct check {
    const char *name, *title;
    int64_t usual_ms; // how long it lasts on an H200; skipped if not much more than that is left
    enum need need;
    void (*run)(struct kit *kit, struct result *result);
    enum rank rank;
};

/* The checks of a subject in the order in which those of a rank run; the last row has no name. */
extern const struct check kit_machine_checks[], kit_nvml_checks[], kit_cuda_checks[], kit_agent_checks[],
    kit_job_checks[], kit_feature_checks[], kit_limit_checks[], kit_several_checks[], kit_park_checks[],
    kit_park_way_checks[], kit_framework_checks[], kit_container_checks[], kit_mig_checks[],
    kit_load_checks[], kit_amd_checks[], kit_array_checks[];

void result_pass(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void result_fail(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void result_skip(struct result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a fact; takes `value`. */
void result_fact(struct result *result, const char *name, json_t *value);

/* Milliseconds until the end of the kit's time; at most `most`, at least 1. */
int64_t kit_left_ms(const struct kit *kit, int64_t most);
