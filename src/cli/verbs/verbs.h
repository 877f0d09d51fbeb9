/* SPDX-License-Identifier: MIT */
/* The rows of the verbs, each defined in the file with its name; cli/commands.c is the table. */
#pragma once

#include <stdio.h>

#include "cli/options/call.h"

extern const struct command command_adopt, command_attach, command_backup, command_cancel, command_compat,
    command_cluster, command_complete, command_completion, command_config, command_doctor, command_edit,
    command_exec, command_follow, command_gpu, command_gpus, command_help, command_hold, command_journal,
    command_logs, command_node, command_nodes, command_overview, command_partitions, command_ps,
    command_release, command_reserve, command_postmortem, command_run, command_shell, command_show,
    command_submit, command_users, command_version, command_wait, command_why, command_signal,
    command_suspend, command_continue, command_park, command_unpark, command_requeue, command_retry,
    command_history, command_notify, command_token, command_top, command_web, command_mcp;

/* What a newcomer needs, on one screen: mgpu --help. */
void help_print_first(FILE *out);
