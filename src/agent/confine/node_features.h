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
    const char *confine;                 // name of the kind in use
    const struct error *confine_err;     // why a better kind does not work here
    const struct error *devices_err;     // why device access is not restricted; code 0: it is restricted
    const struct error *private_tmp_err; // why no job can have its own /tmp; code 0: each can
    const struct error *early_err;       // why no job can start before it has its GPUs; code 0: each can
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

/* Only those that change while the agent runs: of the GPUs, and who may open them. Of the facts, `gpus` and
 * `state_dir` are used. */
void node_features_list_live(const struct feature_facts *facts, struct record_list *ret);

/* Their texts and the version of the driver (NULL: not known), for detecting changes; the caller frees
 * it. */
char *node_features_text(const struct record_list *features, const char *driver);

/* Logs the guarantees that this node cannot give to users. */
void node_features_log(const char *node, const struct record_list *features);

void node_features_clear(struct record_list *features);
