/* SPDX-License-Identifier: MIT */
/* Requests of administrators: pauses, drains and policies, and marks that end at a set time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/access.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/clock.h"
#include "controller/core/concern.h"
#include "controller/core/marks.h"
#include "controller/core/node_table.h"
#include "controller/core/node_view.h"
#include "controller/core/park_proof.h"
#include "controller/core/state.h"

static int find_gpu(const struct core *core, const char *text, struct core_node **ret_node,
    struct core_gpu **ret, struct error *err)
{
    const char *colon = strrchr(text, ':'), *digits = colon != NULL ? colon + 1 : text;
    _cleanup_free_ char *name = colon != NULL ? xstrndup(text, (size_t)(colon - text)) : NULL;
    int64_t index;
    int r = parse_integer(digits, "GPU", 0, NODE_GPUS_MAX - 1, &index, err);
    if (r < 0)
        return r;
    if (name == NULL && core->n_nodes != 1)
        return error_set(err, -EINVAL, "GPU %s needs its node: use NODE:%s", text, text);
    struct core_node *node = name != NULL ? core_find_node(core, name) : &core->nodes[0];
    if (node == NULL)
        return error_set(err, -ENOENT, "there is no node %.100s", name);
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        if (gpus[i].index != (uint32_t)index || gpus[i].uuid == NULL)
            continue;
        *ret_node = node;
        *ret = core_gpu_at(node, i);
        return 0;
    }
    return error_set(err, -ENOENT, "node %s has no GPU %u", node->name, (unsigned)index);
}

static int64_t next_ms(const struct core *core)
{
    return core_boot_at(core, core->marks_due_ms);
}

/* Ends the mark when its time has come. */
static void check_mark(struct core *core, const struct cluster_change *mark)
{
    if (mark == NULL || mark->until_ms == 0)
        return;
    if (mark->until_ms > core->now_ms) {
        core->marks_due_ms = mark->until_ms < core->marks_due_ms ? mark->until_ms : core->marks_due_ms;
        return;
    }
    struct cluster_change over = {
        .kind = mark->uuid != NULL ? CHANGE_GPU_RESUME : CHANGE_NODE_RESUME,
        .uid = core->options.admin_uid,
        .node = xstrdup(mark->node),
        .uuid = xstrdup(mark->uuid),
        .text = xstrdup("its time has ended"),
    };
    core_make_mark(core, &over);
    cluster_change_clear(&over);
}

static void run(struct core *core)
{
    if (core->marks_due_ms > core->now_ms)
        return;
    core->marks_due_ms = TIME_NEVER;
    for (size_t i = 0; i < core->n_nodes; i++) {
        const struct core_node *node = &core->nodes[i];
        check_mark(core, node->mark);
        for (size_t k = 0; k < node->n_gpus; k++)
            check_mark(core, node->gpus[k].mark);
    }
}

void core_note_node(struct core *core, int64_t boot_ms, int64_t wall_ms, enum change_kind kind, uint32_t uid,
    const char *name)
{
    _cleanup_free_ char *node = xstrdup(name);
    const struct cluster_change change = { .kind = kind, .uid = uid, .node = node };
    core_begin(core, boot_ms, wall_ms);
    if (kind == CHANGE_NODE_FORGET) {
        core_node_removed(core, node);
        core_forget_park_proof(core, node);
    }
    core_change_cluster(core, &change);
}

struct in_use {
    const struct core *core;
    const char *node;
    const struct core_entry *entry; // NULL: none
};

static void find_job(void *arg, struct core_gpu *gpu)
{
    struct in_use *use = arg;
    if (use->entry == NULL)
        (void)core_gpu_jobs(use->core, use->node, gpu->state->index, &use->entry, 1);
}

/* The instances of a GPU are released with it. */
static int check_release(
    const struct core *core, const struct core_node *node, struct core_gpu *gpu, struct error *err)
{
    uint32_t index = gpu->state->index;
    struct in_use use = { core, node->name, NULL };
    if (gpu->state->parent != NULL) {
        (void)error_set(err, -EINVAL, "GPU %s:%" PRIu32 " is a MIG instance", node->name, index);
        return error_hint(err, "release the GPU that it is part of");
    }
    find_job(&use, gpu);
    core_each_instance(node, gpu, find_job, &use);
    if (use.entry == NULL)
        return 0;
    uint64_t job = use.entry->job->id;
    (void)error_set(err, -EBUSY, "GPU %s:%" PRIu32 " is in use by job %" PRIu64, node->name, index, job);
    return error_hint(err,
        "mgpu gpu drain --wait %s:%" PRIu32 " returns when no job is running there any more", node->name,
        index);
}

void core_pause(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *reason, int64_t until_ms, enum gpu_action action, void *request)
{
    static const char *const deeds[] = { "resume GPUs", "pause GPUs", "release GPUs" };
    struct core_answer answer = { 0 };
    struct core_node *node = NULL;
    bool is_resume = action == GPU_ACTION_RESUME;
    struct core_gpu *gpu = NULL;
    core_begin(core, boot_ms, wall_ms);
    answer.code = core_check_admin(core, who, deeds[action], until_ms, &answer.err);
    if (answer.code == 0 && gpus->count == 0)
        answer.code = error_set(&answer.err, -EINVAL, "no GPU given");
    for (size_t i = 0; answer.code == 0 && i < gpus->count; i++) {
        answer.code = find_gpu(core, gpus->items[i], &node, &gpu, &answer.err);
        if (answer.code == 0 && action == GPU_ACTION_RELEASE)
            answer.code = check_release(core, node, gpu, &answer.err);
    }
    for (size_t i = 0; answer.code == 0 && i < gpus->count; i++) {
        (void)find_gpu(core, gpus->items[i], &node, &gpu, &answer.err);
        bool is_faulty = is_resume && core_end_fault(core, node, gpu);
        if (is_resume && !is_faulty && core_gpu_mark(node, gpu) == NULL)
            continue; // it is in use
        struct cluster_change change = {
            .kind = is_resume ? CHANGE_GPU_RESUME : CHANGE_GPU_PAUSE,
            .uid = who->uid,
            .node = xstrdup(node->name),
            .uuid = xstrdup(gpu->uuid),
            .text = xstrdup(reason),
            .until_ms = until_ms,
            .is_released = action == GPU_ACTION_RELEASE,
        };
        core_make_mark(core, &change);
        cluster_change_clear(&change);
        if (is_faulty && node->is_up)
            core_node_changed(core, node);
    }
    core_reply(core, request, &answer);
}

void core_drain(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const char *name, const char *reason, int64_t until_ms, bool is_resume, void *request)
{
    struct core_answer answer = { 0 };
    core_begin(core, boot_ms, wall_ms);
    struct core_node *node = core_find_node(core, name);
    answer.code =
        core_check_admin(core, who, is_resume ? "resume nodes" : "drain nodes", until_ms, &answer.err);
    if (answer.code == 0 && node == NULL)
        answer.code = error_set(&answer.err, -ENOENT, "there is no node %.100s", name);
    const struct cluster_change *mark = node != NULL ? node->mark : NULL;
    bool is_fenced = mark != NULL && mark->kind == CHANGE_NODE_FENCE; // more than drained
    if (answer.code == 0 && (is_resume ? mark != NULL : !is_fenced)) {
        struct cluster_change change = {
            .kind = is_resume ? CHANGE_NODE_RESUME : CHANGE_NODE_DRAIN,
            .uid = who->uid,
            .node = xstrdup(name),
            .text = xstrdup(reason),
            .until_ms = until_ms,
            .is_held = !is_resume && core_is_held(node),
        };
        core_make_mark(core, &change);
        cluster_change_clear(&change);
    }
    core_reply(core, request, &answer);
}

void core_set_policy(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *policy, void *request)
{
    struct core_answer answer = { 0 };
    struct core_node *node = NULL;
    struct core_gpu *gpu = NULL;
    core_begin(core, boot_ms, wall_ms);
    bool is_known = text_equal(policy, "default") || external_policy_find(policy) != EXTERNAL_POLICIES;
    answer.code = core_check_admin(core, who, "set the policy for external processes", 0, &answer.err);
    if (answer.code == 0 && !is_known) {
        (void)error_set(&answer.err, -EINVAL, "there is no policy '%.40s'", policy != NULL ? policy : "");
        answer.code = error_hint(&answer.err, "one of avoid, fit-around, ignore, default");
    }
    if (answer.code == 0 && gpus->count == 0)
        answer.code = error_set(&answer.err, -EINVAL, "no GPU given");
    for (size_t i = 0; answer.code == 0 && i < gpus->count; i++)
        answer.code = find_gpu(core, gpus->items[i], &node, &gpu, &answer.err);
    for (size_t i = 0; answer.code == 0 && i < gpus->count; i++) {
        (void)find_gpu(core, gpus->items[i], &node, &gpu, &answer.err);
        struct cluster_change change = {
            .kind = CHANGE_GPU_POLICY,
            .uid = who->uid,
            .node = xstrdup(node->name),
            .uuid = xstrdup(gpu->uuid),
            .text = xstrdup(policy),
        };
        _cleanup_free_ char *key = xasprintf("%s/%s", change.node, change.uuid);
        core_change_cluster(core, &change);
        if (core_keep_policy(core, &change))
            core_put_change(core, "gpu-policy", key, &change);
        else
            store_batch_remove(core_batch(core)->changes, "gpu-policy", key);
        cluster_change_clear(&change);
        if (node->is_up)
            core_node_changed(core, node);
    }
    core_reply(core, request, &answer);
}

static void init(struct core *core)
{
    core->marks_due_ms = TIME_NEVER;
}

const struct core_concern core_concern_marks = {
    .name = "marks",
    .init = init,
    .next_ms = next_ms,
    .run = run,
};
