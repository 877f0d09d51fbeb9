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
    int link_fd;      // run as a worker on this socket; -1: not given
    int keep_fd;      // run as the keeper that passes links over this socket; -1: not given
    int uplink_fd;    // run as a worker that gets its links over this socket; -1: not given
    char *join;       // "HOST:PORT#TOKEN": join first; NULL: not given
    char *join_file;  // a file with the same
    char *controller; // the controllers' current addresses, if not that with which this machine joined; NULL:
                      // unchanged
    struct strings passed; // options for the worker of a joined machine
    bool is_node_given, is_state_dir_given, is_detached;
    bool is_join_only; // exit after joining
    char *run_dir, *state_dir, *node, *shepherd;
    char *log_dir;      // NULL: the launcher's default
    char *nvml_library; // NULL: the driver's own
    char *cuda_library; // NULL: the driver's own
    char *rocm_library; // NULL: ROCm's default path
    char *mps_control;  // nvidia-cuda-mps-control; NULL: where it usually is
    char *device_dir;   // NULL: /dev; simulated GPUs then have no device nodes
    bool is_imex_on;
    int64_t gpu_scrub_ms, gpu_test_every_ms; // 0: no
    char *sysfs_root;
    char *sendmail; // absolute
    char *cgroup;   // parent of the jobs' cgroups; NULL: below the agent's own
    struct gpu_spec gpus;
    uint32_t pids_max; // of a job; 0: unlimited
    char *job_limits;  // of the kernel, for jobs (wire/resource_limits.h); NULL: those of the agent
    uint32_t min_uid;  // lowest of job owners other than root
    bool is_root_job_allowed;
    bool adopts_any_user;  // without root, too
    bool has_no_new_privs; // jobs cannot gain rights by executing a program
    bool is_number_enough; // names of users are not compared
    bool is_verbose;
    bool is_help, is_version;
};

extern const struct option_row agent_option_rows[];

/* True if none of the descriptors was given: the agent of a machine that joins or has joined. */
bool agent_options_is_node(const struct agent_options *options);

/* Parses the command line; directories become absolute. A token is overwritten in argv, where all users can
 * see it. */
int agent_options_parse(struct agent_options *options, int argc, char **argv, struct error *err);
void agent_options_clear(struct agent_options *options);
