/* SPDX-License-Identifier: MIT */
/*
 * GPUs released by operators, so that they can be reset. The list is stored as marks, like pauses. A node is
 * sent the whole list whenever its report differs. No state of messages is needed: a list that is lost, late
 * or forgotten in a crash is corrected by the next sample.
 */

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/marks.h"
#include "controller/core/node_table.h"
#include "controller/core/state.h"

static void send_released(struct core *core, struct core_node *node)
{
    _cleanup_strings_ struct strings uuids = { 0 };
    bool is_news = false;
    if (node == NULL || !node->is_up)
        return;
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        bool is_wanted = core_is_release_requested(node, core_gpu_at(node, i));
        is_news = is_news || is_wanted != (gpus[i].is_released != 0);
        if (is_wanted)
            strings_add(&uuids, gpus[i].uuid);
    }
    if (is_news)
        core->effects.send(core->effects.arg, node->link, &message_release_gpus_record,
            &(struct message_release_gpus){ uuids });
}

static void on_mark(struct core *core, const struct cluster_change *change)
{
    send_released(core, core_find_node(core, change->node));
}

const struct core_concern core_concern_release = {
    .name = "release",
    .sample = send_released,
    .mark = on_mark,
};
