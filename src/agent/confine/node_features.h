/* SPDX-License-Identifier: MIT */
/* What this node promises and what it cannot, for HELLO and `mgpu doctor`. */
#pragma once

#include <stdbool.h>

#include "agent/confine/limits.h"
#include "agent/gpu/report.h"
#include "base/error.h"

struct feature_facts {
    bool is_root;
    const char *confine;             // name of the kind in use
    const struct error *confine_err; // why no better one works here
    const struct error *devices_err; // why jobs open any device; code 0: they do not
    bool is_root_job_allowed;
    const char *log_dir; // as the launcher was told
    const char *state_dir;
    const char *sendmail; // path
    const char *shepherd; // path, absolute
    const struct gpu_report *gpus;
    const struct limits *limits;
    uint32_t pids_max; // of a job
};

/* List of struct node_feature, freed by node_features_clear(). */
void node_features_list(const struct feature_facts *facts, struct record_list *ret);

/* The one about the GPUs alone. */
void node_features_list_gpu(const struct gpu_report *gpus, struct record_list *ret);

void node_features_clear(struct record_list *features);
