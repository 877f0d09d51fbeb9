/* SPDX-License-Identifier: MIT */
/* Every verb has one row here and one file in verbs/; a new one needs both and man/verbs/VERB.scd. */
#include "cli/options/commands.h"
#include "cli/ports/ports.h"
#include "cli/verbs/verbs.h"

const struct command *const commands[] = {
    &command_run,
    &command_submit,
    &command_shell,
    &command_notebook,
    &command_adopt,

    &command_ps,
    &command_history,
    &command_show,
    &command_why,
    &command_postmortem,
    &command_logs,
    &command_follow,

    &command_attach,
    &command_exec,
    &command_forward,
    &command_ssh_proxy,
    &command_notify,

    &command_wait,
    &command_cancel,
    &command_hold,
    &command_release,
    &command_edit,
    &command_signal,
    &command_suspend,
    &command_continue,
    &command_park,
    &command_unpark,
    &command_requeue,
    &command_retry,

    &command_gpus,
    &command_nodes,
    &command_partitions,
    &command_users,
    &command_top,
    &command_web,

    &command_gpu,
    &command_node,
    &command_reserve,
    &command_token,
    &command_journal,
    &command_backup,
    &command_config,
    &command_cluster,

    &command_doctor,
    &command_mcp,
    &command_compat,
    &command_completion,
    &command_complete,
    &command_help,
    &command_version,
    NULL,
};

const struct command_group command_groups[] = {
    { "Start jobs", &command_run },
    { "See jobs", &command_ps },
    { "Enter jobs", &command_attach },
    { "Control jobs", &command_wait },
    { "See the machine", &command_gpus },
    { "Administer", &command_gpu },
    { "mgpu itself", &command_doctor },
    { 0 },
};
