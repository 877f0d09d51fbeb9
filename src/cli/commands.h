/* SPDX-License-Identifier: MIT */
/* The table of verbs. */
#pragma once

#include "cli/options/call.h"

extern const struct command command_adopt, command_attach, command_cancel, command_compat, command_complete,
    command_completion, command_config, command_doctor, command_edit, command_exec, command_follow,
    command_gpu, command_gpus, command_help, command_hold, command_journal, command_logs, command_node,
    command_nodes, command_overview, command_ps, command_release, command_reserve, command_postmortem,
    command_run, command_shell, command_show, command_submit, command_users, command_version, command_wait,
    command_why, command_signal, command_suspend, command_continue, command_requeue, command_retry,
    command_history, command_notify, command_token, command_top;

/* All verbs in the order of the help, ended by NULL. */
extern const struct command *const commands[];

/* The verb of that name or alias, or NULL. */
const struct command *commands_find(const char *name);

/* Refuses an unknown verb, with the nearest one. */
int commands_refuse(const char *name, struct error *err);
