/* SPDX-License-Identifier: MIT */
/* The features of this node, for HELLO and `mgpu doctor`. */
#pragma once

#include <stdbool.h>

#include "agent/confine/limits.h"
#include "agent/gpu/report.h"
#include "base/error.h"
#include "job/share.h"

struct feature_facts {
    bool is_root;
    const char *confine;             // name of the kind in use
    const struct error *confine_err; // why a better kind does not work here
    const struct error *devices_err; // why device access is not restricted; code 0: it is restricted
    bool is_root_job_allowed;
    const char *log_dir; // as passed to the launcher
    const char *state_dir;
    const char *sendmail;     // path
    const char *shepherd;     // path, absolute
    const char *cuda_library; // path, or NULL: the driver's own
    const struct gpu_report *gpus;
    const struct limits *limits;
    uint32_t pids_max; // of a job
    const struct share_ways *shares;
};

/* List of struct node_feature, to be freed with node_features_clear(). */
void node_features_list(const struct feature_facts *facts, struct record_list *ret);

/* Only the feature of the GPUs. */
void node_features_list_gpu(const struct gpu_report *gpus, struct record_list *ret);

void node_features_clear(struct record_list *features);
