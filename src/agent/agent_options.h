/* SPDX-License-Identifier: MIT */
/* The command line of mgpu-agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "wire/gpu_spec.h"

struct agent_options {
    int link_fd; // worker on this socket; -1: not given
    int keep_fd; // keeper that passes links over this socket; -1: not given
    char *run_dir, *state_dir, *node, *shepherd;
    char *log_dir;      // NULL: the launcher's default
    char *nvml_library; // NULL: the driver's own
    char *rocm_library; // NULL: where ROCm puts it
    char *device_dir;   // NULL: /dev, and simulated GPUs have no nodes
    char *sysfs_root;   // NULL: /sys
    char *sendmail;     // absolute
    char *cgroup;       // where cells are made; NULL: below the agent's own
    struct gpu_spec gpus;
    uint32_t pids_max; // of a job; 0: any number
    bool is_root_job_allowed;
    bool is_verbose;
    bool is_help, is_version;
};

extern const struct option_row agent_option_rows[];

/* Reads the command line; directories become absolute. */
int agent_options_parse(struct agent_options *options, int argc, char **argv, struct error *err);
void agent_options_clear(struct agent_options *options);
