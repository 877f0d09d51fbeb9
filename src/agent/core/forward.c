/* SPDX-License-Identifier: MIT */
/* Reports that do not concern the state of an attempt are sent while the controller accepts them, and dropped
 * otherwise. */
#include "agent/core/actions.h"

void agent_core_gpus(struct agent_core *core, const struct message_gpus *gpus)
{
    if (core->link == LINK_OBEYING)
        core->effects.send(core->effects.arg, &message_gpus_record, gpus);
}

void agent_core_process(struct agent_core *core, const struct message_process_info *process)
{
    if (core->link == LINK_OBEYING)
        core->effects.send(core->effects.arg, &message_process_info_record, process);
}

void agent_core_notified(struct agent_core *core, const struct message_notified *outcome)
{
    if (core->link == LINK_OBEYING)
        core->effects.send(core->effects.arg, &message_notified_record, outcome);
}

void agent_core_parked(struct agent_core *core, const struct message_park_result *result)
{
    if (core->link == LINK_OBEYING)
        core->effects.send(core->effects.arg, &message_park_result_record, result);
}
