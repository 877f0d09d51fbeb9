/* SPDX-License-Identifier: MIT */
/*
 * Nodes of which nothing is heard. Silence proves nothing: the jobs of such a node stay what they are, and
 * their GPUs stay booked. It is only called unreachable, and its link, which may look alive, is given up, so
 * that the node says HELLO when it can, which reconciles everything.
 *
 * All of it runs on the boot clock. When we ourselves were away (stopped, or the machine slept), the silence
 * was ours: every node gets its whole time again.
 */
#include "controller/core_private.h"

#define BEATS_PER_TIMEOUT 6U
#define HEARTBEAT_MAX_MS  5000
#define HEARTBEAT_MIN_MS  100

static int64_t silent_at_ms(const struct core *core, const struct core_node *node)
{
    return node->heard_ms + core->options.loss.timeout_ms;
}

static void look_by(struct core *core, int64_t boot_ms)
{
    if (core->loss_ms == 0 || boot_ms < core->loss_ms)
        core->loss_ms = boot_ms;
}

void core_hear(struct core *core, struct core_node *node)
{
    node->heard_ms = core->boot_ms;
    node->heard_wall_ms = core->now_ms;
    node->is_unreachable = false;
    if (core->options.loss.timeout_ms > 0)
        look_by(core, silent_at_ms(core, node));
}

void core_set_heartbeat(const struct core *core, struct message_welcome *welcome)
{
    int64_t beat_ms = core->options.loss.timeout_ms / BEATS_PER_TIMEOUT;
    beat_ms = beat_ms < HEARTBEAT_MAX_MS ? beat_ms : HEARTBEAT_MAX_MS;
    welcome->timeout_ms = core->options.loss.timeout_ms;
    welcome->heartbeat_ms = beat_ms > HEARTBEAT_MIN_MS ? beat_ms : HEARTBEAT_MIN_MS;
}

void core_await_nodes(struct core *core)
{
    for (struct core_job *entry = core->active_first; entry != NULL; entry = entry->active_after)
        if (entry->job->node != NULL)
            (void)core_add_node(core, entry->job->node);
    for (size_t i = 0; i < core->n_marks; i++)
        (void)core_add_node(core, core->marks[i].node);
}

int64_t core_next_loss(const struct core *core)
{
    return core->loss_ms != 0 ? core->loss_ms : TIME_NEVER;
}

static void lose(struct core *core, struct core_node *node)
{
    struct cluster_change change = {
        .kind = CHANGE_NODE_UNREACHABLE, .node = node->name, .from_ms = node->heard_wall_ms
    };
    if (node->is_up) {
        core->effects.close_link(core->effects.arg, node->link);
        core_drop_link(core, node);
    }
    node->is_unreachable = true;
    core_change_cluster(core, &change);
}

static void look(struct core *core, struct core_node *node)
{
    if (node->is_unreachable || core->options.loss.timeout_ms == 0)
        return;
    if (silent_at_ms(core, node) <= core->boot_ms)
        lose(core, node);
    else
        look_by(core, silent_at_ms(core, node));
}

void core_run_loss(struct core *core)
{
    int64_t late_ms = core->boot_ms - core->loss_ms;
    if (core->loss_ms == 0 || late_ms < 0)
        return;
    bool were_we_away = late_ms > core->options.loss.timeout_ms / 4;
    core->loss_ms = 0;
    for (size_t i = 0; i < core->n_nodes; i++) {
        struct core_node *node = &core->nodes[i];
        if (were_we_away && !node->is_unreachable)
            node->heard_ms = core->boot_ms;
        look(core, node);
    }
}
