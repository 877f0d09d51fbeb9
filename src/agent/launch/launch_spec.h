/* SPDX-License-Identifier: MIT */
/* Creates the launch spec for a shepherd from the controller's message and this node's data. Accesses no
 * files. */
#pragma once

#include "agent/host/users.h"
#include "base/error.h"
#include "wire/message.h"

/* The node's data. All strings are borrowed. */
struct launch_node {
    const char *name;
    const char *run_dir;
    const char *state_dir;
    const char *log_dir; // as in struct launcher_options, never NULL
    const char *exit_dir;
    const char *script_dir;          // directory for the attempt's script, if it has one
    const struct record_list *gpus;  // struct gpu_state: all of the node; NULL: unknown
    const struct share_ways *shares; // ways to enforce shares; NULL: none
    bool is_guarding;                // a job can open only its own GPUs
    bool is_root;
    bool has_joined; // mgpud is on another machine
    uint64_t nofile_soft, nofile_hard;
    const char *limits;
    uint32_t pids_max;
    bool has_no_new_privs;
};

/*
 * Fills in `ret` (cleared by the caller with record_clear) from the message, its request, the user and the
 * node, except job_cgroup and other fields set by confinement. -EINVAL or -ENAMETOOLONG if the request itself
 * cannot be carried out.
 */
int launch_spec_make(const struct message_launch *launch, const struct job_spec *job, const struct user *user,
    const struct launch_node *node, struct launch_spec *ret, struct error *err);

/* Expands %j %n %a %A %h %r %% in a path: job, name, index in its array (else the attempt), id of the array
 * (else its own), node, rank, and a percent sign; %4j has at least four digits. The caller frees it. */
char *launch_expand_path(
    const char *pattern, const struct message_launch *launch, const char *name, const char *node);
