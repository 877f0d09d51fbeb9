/* SPDX-License-Identifier: MIT */
/* The command line of mgpu-agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"
#include "base/strings.h"
#include "wire/gpu_spec.h"

struct agent_options {
    int link_fd;           // worker on this socket; -1: not given
    int keep_fd;           // keeper that passes links over this socket; -1: not given
    int uplink_fd;         // worker that gets its links over this socket; -1: not given
    char *join;            // "HOST:PORT#TOKEN": join first; NULL: no
    char *join_file;       // a file with the same
    char *controller;      // where it is now, instead of where it was when this machine joined; NULL: there
    struct strings passed; // options for the worker of a machine that has joined
    bool is_node_given, is_state_dir_given, is_detached;
    bool is_join_only; // leave when it has joined
    char *run_dir, *state_dir, *node, *shepherd;
    char *log_dir;      // NULL: the launcher's default
    char *nvml_library; // NULL: the driver's own
    char *rocm_library; // NULL: where ROCm puts it
    char *device_dir;   // NULL: /dev, and simulated GPUs have no nodes
    bool is_imex_on;
    char *sysfs_root;
    char *sendmail; // absolute
    char *cgroup;   // where cells are made; NULL: below the agent's own
    struct gpu_spec gpus;
    uint32_t pids_max; // of a job; 0: any number
    bool is_root_job_allowed;
    bool is_number_enough; // users are not compared by name
    bool is_verbose;
    bool is_help, is_version;
};

extern const struct option_row agent_option_rows[];

/* None of the descriptors was given: the agent of a machine that joins, or has joined. */
bool agent_options_is_node(const struct agent_options *options);

/* Reads the command line; directories become absolute. A token in it is overwritten, for it can be seen
 * there by everybody. */
int agent_options_parse(struct agent_options *options, int argc, char **argv, struct error *err);
void agent_options_clear(struct agent_options *options);
