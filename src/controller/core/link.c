/* SPDX-License-Identifier: MIT */
/*
 * The link to a node's agent: its HELLO, its end, and its messages. A node is identified by its name; the
 * newest link with that name is the node's link, and messages on an older one are refused.
 */
#include "controller/core/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/state.h"
#include "controller/core/usage.h"

#define REPORTED_MAX (UINT64_C(1) << 53) // of epochs, events and jobs

#define LATE_WORDS_MS (15 * 60 * 1000) // maximum age of a message that still arrives

/*
 * Messages of a connection that the node has abandoned can arrive after those of the next one, and two
 * machines may have the same name after copying a disk. Accepting either would end running attempts. A
 * machine that was rebooted while its old connection still appears alive is accepted as soon as that one is
 * found to be silent.
 */
static int check_order(const struct core *core, const struct core_node *node,
    const struct message_hello *hello, struct error *err)
{
    const struct message_hello *last = &node->hello;
    if (last->boot_id == NULL)
        return 0;
    if (core_is_same_boot(last->boot_id, hello->boot_id)) { // the clock is the same
        if (hello->sent_ms != 0 && hello->sent_ms < last->sent_ms)
            return error_set(err, -ESTALE, "node %s already has a newer connection", node->name);
        if (text_equal(last->boot_id, hello->boot_id) || !node->is_up || core->options.loss.timeout_ms == 0)
            return 0;
        (void)error_set(err, -EBUSY, "node %s is up, with another spool", node->name);
        return error_hint(err, "two agents of one machine, perhaps in containers, have the same key: give "
                               "each its own --state-dir, and join one of them again");
    }
    bool is_recent = core->boot_ms - node->restarted_ms < LATE_WORDS_MS;
    if (is_recent && core_is_same_boot(node->boot_before, hello->boot_id))
        return error_set(err, -ESTALE, "node %s has rebooted since: its boot id is different", node->name);
    if (!node->is_up || core->options.loss.timeout_ms == 0)
        return 0;
    (void)error_set(err, -EBUSY, "node %s is up, with another boot id", node->name);
    return error_hint(err,
        "if it has rebooted, it is accepted once its old connection has been silent for --node-timeout; "
        "otherwise two machines have the same key: join one of them again");
}

/* Numbers continue above those that a node reports (restored.c), so no sum may overflow. */
static bool is_possible(const struct message_hello *hello)
{
    const struct known_attempt *attempts = hello->attempts.items;
    if (hello->epoch >= REPORTED_MAX || hello->event >= REPORTED_MAX)
        return false;
    for (size_t i = 0; i < hello->attempts.count; i++)
        if (attempts[i].id.job >= REPORTED_MAX)
            return false;
    return true;
}

/* Accepts its HELLO. */
static void take_hello(const struct core *core, struct core_node *node, const struct message_hello *hello)
{
    if (node->hello.boot_id != NULL && !core_is_same_boot(node->hello.boot_id, hello->boot_id)) {
        free(node->boot_before);
        node->boot_before = xstrdup(node->hello.boot_id);
        node->restarted_ms = core->boot_ms;
    }
    record_clear(&message_hello_record, &node->hello);
    record_copy(&message_hello_record, &node->hello, hello);
    core_link_reports(node, true);
    core_sort_known(node);
}

int core_link_up(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link,
    const struct message_hello *hello, struct error *err)
{
    if (hello->protocol != LINK_PROTOCOL)
        return error_set(
            err, -EPROTO, "agent speaks protocol %u, this controller %u", hello->protocol, LINK_PROTOCOL);
    if (hello->node == NULL || hello->boot_id == NULL)
        return error_set(err, -EPROTO, "HELLO contains no node name or no boot id");
    if (!is_possible(hello))
        return error_set(err, -EPROTO, "HELLO contains an epoch, an event or a job that cannot exist");
    core_begin(core, boot_ms, wall_ms);
    struct core_node *node = core_add_node(core, hello->node);
    int r = check_order(core, node, hello, err);
    if (r < 0)
        return r;
    bool was_up = node->is_up;
    uint32_t old_link = node->link;
    node->left_ms = node->last_contact_ms;
    core_touch_node(core, node);
    take_hello(core, node, hello);
    r = core_hook_hello(core, node, err);
    if (r < 0)
        return r;
    node->is_up = true;
    node->link = link;
    if (was_up)
        core_hook_cut(core, node, old_link);
    struct message_welcome welcome = {
        .epoch = core->epoch,
        .sent_ms = hello->sent_ms,
        .last_order = core->last_order,
        .began_ms = core->began_ms,
        .event = core->last_durable_event,
    };
    core_hook_welcome(core, &welcome);
    core_ack_node(core, node);
    core->effects.send(core->effects.arg, link, &message_welcome_record, &welcome);
    core_hook_up(core, node, was_up);
    core_sampled(core, node);
    size_t count = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, node->name, &count);
    for (size_t i = 0; i < count; i++)
        if (job_state_is_active(entries[i]->job->state))
            core_reconcile(core, entries[i], node);
    core_hook_back(core, node);
    return 0;
}

void core_drop_link(struct core *core, struct core_node *node)
{
    node->is_up = false;
    core_hook_cut(core, node, node->link);
    core_hook_down(core, node);
    core_node_down(core, node);
}

void core_link_down(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link)
{
    struct core_node *node = core_find_link(core, link);
    if (node == NULL)
        return;
    core_begin(core, boot_ms, wall_ms);
    core_drop_link(core, node);
}

static void replace(char **text, char **fresh)
{
    char *old = *text;
    if (*fresh == NULL)
        return;
    *text = *fresh;
    *fresh = old;
}

/* Each replaces the feature with the same name. */
static void take_features(struct message_hello *hello, const struct message_gpus *gpus)
{
    struct message_hello fresh = { .gpu_backend = gpus->gpu_backend,
        .features = gpus->features,
        .driver = gpus->driver },
                         copy;
    if (gpus->features.count == 0)
        return;
    record_copy(&message_hello_record, &copy, &fresh);
    struct node_feature *new_ones = copy.features.items, *features = hello->features.items;
    for (size_t i = 0; i < copy.features.count; i++)
        for (size_t k = 0; k < hello->features.count; k++)
            if (text_equal(features[k].name, new_ones[i].name)) {
                struct node_feature old = features[k];
                features[k] = new_ones[i];
                new_ones[i] = old;
                break;
            }
    replace(&hello->gpu_backend, &copy.gpu_backend);
    replace(&hello->driver, &copy.driver);
    record_clear(&message_hello_record, &copy);
}

static void on_gpus(struct core *core, struct core_node *node, const struct message_gpus *gpus)
{
    struct message_gpus seen = { .gpus = gpus->gpus }, copy;
    record_copy(&message_gpus_record, &copy, &seen);
    core_take_usages(core, &gpus->usages);
    struct message_gpus old = { .gpus = node->hello.gpus };
    node->hello.gpus = copy.gpus;
    core_link_reports(node, false);
    record_clear(&message_gpus_record, &old);
    take_features(&node->hello, gpus);
    core_sampled(core, node);
}

int core_link_message(struct core *core, int64_t boot_ms, int64_t wall_ms, uint32_t link, uint16_t id,
    const void *message, struct error *err)
{
    struct core_node *node = core_find_link(core, link);
    if (node == NULL)
        return error_set(err, -EPROTO, "message %u on a link without a node", id);
    core_begin(core, boot_ms, wall_ms);
    core_touch_node(core, node);
    if (id == MESSAGE_GPUS)
        on_gpus(core, node, message);
    else if (!core_take_message(core, node, id, message))
        return error_set(err, -EPROTO, "an agent may not send message %u", id);
    return 0;
}
