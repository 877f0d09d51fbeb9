/* SPDX-License-Identifier: MIT */
/* What a shepherd is told, made from what the controller asked for and what this node knows. Touches no file.
 */
#pragma once

#include "agent/host/users.h"
#include "base/error.h"
#include "wire/message.h"

/* What the node adds. All strings are borrowed. */
struct launch_node {
    const char *name;
    const char *run_dir;
    const char *state_dir;
    const char *log_dir; // as in struct launcher_options, never NULL
    const char *exit_dir;
    const char *script_dir;         // directory for the attempt's script, when it has one
    const struct record_list *gpus; // struct gpu_state: all of the node; NULL: not known
    bool is_guarding;               // a job can open its own GPUs alone
    bool is_root;
    bool has_joined; // mgpud is on another machine
    uint64_t nofile_soft, nofile_hard;
    uint32_t pids_max;
};

/*
 * Fills `ret` (cleared by the caller with record_clear) from the message, its request, the user and the node;
 * job_cgroup and what else confinement fills in is left out. -EINVAL or -ENAMETOOLONG when the request itself
 * cannot be carried out.
 */
int launch_spec_make(const struct message_launch *launch, const struct job_spec *job, const struct user *user,
    const struct launch_node *node, struct launch_spec *ret, struct error *err);

/* Replaces %j %n %a %A %h %r %% in a path: number, name, index in its array (else the attempt), number of the
 * array (else its own), node, rank among its nodes, and a percent sign; %4j has four digits at least. The
 * caller frees it. */
char *launch_expand_path(
    const char *pattern, const struct message_launch *launch, const char *name, const char *node);
