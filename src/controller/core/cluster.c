/* SPDX-License-Identifier: MIT */
/*
 * What the cluster is: what nodes say that they have, and what administrators say of GPUs and nodes (paused,
 * drained), which outlives restarts of everything. Every change is an event of job 0, so that the log alone
 * can build the same cluster.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "controller/core/private.h"
#include "sched/from_record.h"

/* --- marks: what an administrator said --- */

static struct cluster_change *find_mark(const struct core *core, const char *node, const char *uuid)
{
    for (size_t i = 0; i < core->n_marks; i++)
        if (text_equal(core->marks[i].node, node) && text_equal(core->marks[i].uuid, uuid))
            return &core->marks[i];
    return NULL;
}

const struct cluster_change *core_mark(const struct core *core, const char *node, const char *uuid)
{
    return find_mark(core, node, uuid);
}

const struct cluster_change *core_gpu_mark(const struct core *core, const struct alloc_gpu *gpu, bool is_node)
{
    const struct cluster_node *node = &sched_cluster(core->sched)->nodes[gpu->node];
    return find_mark(core, node->name, is_node ? NULL : node->gpus[gpu->gpu].uuid);
}

const struct gpu_state *core_gpu_state(const struct core *core, const struct alloc_gpu *gpu)
{
    const struct cluster_node *place = &sched_cluster(core->sched)->nodes[gpu->node];
    const struct core_node *node = core_find_node(core, place->name);
    const struct gpu_state *gpus = node != NULL ? node->hello.gpus.items : NULL;
    for (size_t i = 0; node != NULL && i < node->hello.gpus.count; i++)
        if (text_equal(gpus[i].uuid, place->gpus[gpu->gpu].uuid))
            return &gpus[i];
    return NULL;
}

/* The ledger as the marks say; what is not known yet is marked when it comes. */
static void apply_mark(struct core *core, const char *node, const char *uuid, bool is_set)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *where = cluster_find(cluster, node);
    if (where == NULL)
        return;
    struct cluster_gpu *gpu = uuid != NULL ? cluster_find_gpu(where, uuid) : NULL;
    if (uuid == NULL)
        where->is_drained = is_set;
    else if (gpu != NULL)
        gpu->is_paused = is_set;
    cluster_touch(cluster, where);
}

void core_set_mark(struct core *core, const struct cluster_change *change)
{
    struct cluster_change *mark = find_mark(core, change->node, change->uuid);
    bool is_set = change->kind == CHANGE_GPU_PAUSE || change->kind == CHANGE_NODE_DRAIN ||
                  change->kind == CHANGE_NODE_FENCE;
    if (mark != NULL) {
        cluster_change_clear(mark);
        *mark = core->marks[--core->n_marks];
    }
    if (is_set) {
        core->marks = xreallocarray(core->marks, core->n_marks + 1, sizeof(*core->marks));
        record_copy(&cluster_change_record, &core->marks[core->n_marks++], change);
    }
    apply_mark(core, change->node, change->uuid, is_set);
}

void core_clear_marks(struct core *core)
{
    for (size_t i = 0; i < core->n_marks; i++)
        cluster_change_clear(&core->marks[i]);
    free(core->marks);
    core->marks = NULL;
    core->n_marks = 0;
}

void core_put_change(
    struct core *core, const char *kind, const char *key, const struct cluster_change *change)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    record_encode(&cluster_change_record, change, &bytes);
    store_batch_put(core_batch(core)->changes, kind, key, &bytes);
}

void core_make_mark(struct core *core, const struct cluster_change *change)
{
    const char *kind = change->uuid != NULL ? "gpu" : "node";
    _cleanup_free_ char *key =
        change->uuid != NULL ? xasprintf("%s/%s", change->node, change->uuid) : xstrdup(change->node);
    core_set_mark(core, change);
    core_change_cluster(core, change);
    core_tell_released(core, core_find_node(core, change->node));
    if (find_mark(core, change->node, change->uuid) != NULL)
        core_put_change(core, kind, key, change);
    else
        store_batch_remove(core_batch(core)->changes, kind, key);
}

int64_t core_next_mark(const struct core *core)
{
    int64_t next_ms = TIME_NEVER;
    for (size_t i = 0; i < core->n_marks; i++)
        if (core->marks[i].until_ms != 0 && core->marks[i].until_ms < next_ms)
            next_ms = core->marks[i].until_ms;
    return next_ms;
}

void core_run_marks(struct core *core)
{
    for (size_t i = core->n_marks; i-- > 0;) {
        const struct cluster_change *mark = &core->marks[i];
        if (mark->until_ms == 0 || mark->until_ms > core->now_ms)
            continue;
        struct cluster_change over = {
            .kind = mark->uuid != NULL ? CHANGE_GPU_RESUME : CHANGE_NODE_RESUME,
            .uid = core->options.admin_uid,
            .node = xstrdup(mark->node),
            .uuid = xstrdup(mark->uuid),
            .text = xstrdup("its time is over"),
        };
        core_make_mark(core, &over);
        cluster_change_clear(&over);
    }
}

/* --- what nodes have --- */

static void describe_node(const struct core *core, const struct core_node *node, struct cluster_change *ret)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    struct cluster_device *devices = xcalloc(node->hello.gpus.count + 1, sizeof(*devices));
    size_t count = 0;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        if (gpus[i].uuid == NULL)
            continue;
        devices[count] = (struct cluster_device){
            .index = gpus[i].index,
            .uuid = xstrdup(gpus[i].uuid),
            .model = xstrdup(gpus[i].model),
            .memory_bytes = gpus[i].memory_bytes,
            .numa = gpus[i].numa,
            .pcie_switch = gpus[i].pcie_switch,
            .links = gpus[i].links,
            .is_lost = gpus[i].is_lost != 0,
        };
        core_close_device(core, node, &devices[count++]);
    }
    *ret = (struct cluster_change){
        .kind = CHANGE_NODE_UP,
        .node = xstrdup(node->name),
        .cpu_milli = node->hello.cpus * 1000,
        .memory = node->hello.memory_bytes,
        .devices = { .items = devices, .count = count },
    };
}

static void apply_node(struct core *core, const struct cluster_change *change)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *node = cluster_take_node(cluster, change);
    const struct cluster_device *devices = change->devices.items;
    for (size_t i = 0; i < change->devices.count; i++)
        cluster_find_gpu(node, devices[i].uuid)->is_paused =
            find_mark(core, change->node, devices[i].uuid) != NULL;
    node->is_drained = find_mark(core, change->node, NULL) != NULL;
    cluster_touch(cluster, node);
    core_keep_size(core, change);
}

void core_keep_size(struct core *core, const struct cluster_change *change)
{
    (void)cluster_take_node(sched_known(core->sched), change);
}

void core_node_changed(struct core *core, struct core_node *node)
{
    struct cluster_change change;
    struct buffer bytes = { 0 };
    if (node->n_unwanted > 0)
        return; // it is told of when these have ended
    describe_node(core, node, &change);
    record_encode(&cluster_change_record, &change, &bytes);
    if (bytes.length == node->told.length && memcmp(bytes.bytes, node->told.bytes, bytes.length) == 0) {
        buffer_clear(&bytes);
    } else {
        change.has_come = node->told.length == 0;
        buffer_clear(&node->told);
        node->told = bytes;
        apply_node(core, &change);
        core_change_cluster(core, &change);
        core_put_change(core, CORE_NODE_SIZE, change.node, &change);
    }
    cluster_change_clear(&change);
}

void core_node_down(struct core *core, struct core_node *node)
{
    struct cluster *cluster = sched_cluster(core->sched);
    struct cluster_node *ledger = cluster_find(cluster, node->name);
    struct cluster_change change = { .kind = CHANGE_NODE_DOWN, .node = node->name };
    buffer_clear(&node->told);
    if (ledger != NULL) {
        ledger->is_up = false;
        cluster_touch(cluster, ledger);
    }
    core_change_cluster(core, &change);
}

void core_note_node(struct core *core, int64_t boot_ms, int64_t wall_ms, enum change_kind kind, uint32_t uid,
    const char *name)
{
    _cleanup_free_ char *node = xstrdup(name);
    const struct cluster_change change = { .kind = kind, .uid = uid, .node = node };
    core_begin(core, boot_ms, wall_ms);
    core_change_cluster(core, &change);
}

/* --- what administrators ask for --- */

int core_check_admin(const struct core *core, const struct identity *who, const char *what, int64_t until_ms,
    struct error *err)
{
    if (!core_may(who, ACTION_MANAGE, NULL)) {
        (void)error_set(err, -EPERM, "only operators may %s", what);
        return error_hint(err, CORE_ROLES_HINT);
    }
    if (until_ms != 0 && until_ms <= core->now_ms)
        return error_set(err, -EINVAL, "the time until which to %s has passed already", what);
    return 0;
}

int core_find_gpu(const struct core *core, const char *text, struct core_node **ret_node,
    const struct gpu_state **ret, struct error *err)
{
    const char *colon = strrchr(text, ':'), *digits = colon != NULL ? colon + 1 : text;
    _cleanup_free_ char *name = colon != NULL ? xstrndup(text, (size_t)(colon - text)) : NULL;
    int64_t index;
    int r = parse_integer(digits, "GPU", 0, NODE_GPUS_MAX - 1, &index, err);
    if (r < 0)
        return r;
    if (name == NULL && core->n_nodes != 1)
        return error_set(err, -EINVAL, "GPU %s of which node? write NODE:%s", text, text);
    struct core_node *node = name != NULL ? core_find_node(core, name) : &core->nodes[0];
    if (node == NULL)
        return error_set(err, -ENOENT, "there is no node %.100s", name);
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        if (gpus[i].index != (uint32_t)index || gpus[i].uuid == NULL)
            continue;
        *ret_node = node;
        *ret = &gpus[i];
        return 0;
    }
    return error_set(err, -ENOENT, "node %s has no GPU %u", node->name, (unsigned)index);
}

void core_pause(struct core *core, int64_t boot_ms, int64_t wall_ms, const struct identity *who,
    const struct strings *gpus, const char *reason, int64_t until_ms, enum gpu_wish wish, void *request)
{
    static const char *const deeds[] = { "resume GPUs", "pause GPUs", "release GPUs" };
    struct core_answer answer = { 0 };
    struct core_node *node = NULL;
    bool is_resume = wish == GPU_WISH_RESUME;
    const struct gpu_state *gpu = NULL;
    core_begin(core, boot_ms, wall_ms);
    answer.code = core_check_admin(core, who, deeds[wish], until_ms, &answer.err);
    if (answer.code == 0 && gpus->count == 0)
        answer.code = error_set(&answer.err, -EINVAL, "no GPU was named");
    for (size_t i = 0; answer.code == 0 && i < gpus->count; i++) {
        answer.code = core_find_gpu(core, gpus->items[i], &node, &gpu, &answer.err);
        if (answer.code == 0 && wish == GPU_WISH_RELEASE)
            answer.code = core_check_release(core, node, gpu, &answer.err);
    }
    for (size_t i = 0; answer.code == 0 && i < gpus->count; i++) {
        (void)core_find_gpu(core, gpus->items[i], &node, &gpu, &answer.err);
        bool is_faulty = is_resume && core_end_fault(core, node->name, gpu->uuid);
        if (is_resume && !is_faulty && find_mark(core, node->name, gpu->uuid) == NULL)
            continue; // it is in use
        struct cluster_change change = {
            .kind = is_resume ? CHANGE_GPU_RESUME : CHANGE_GPU_PAUSE,
            .uid = who->uid,
            .node = xstrdup(node->name),
            .uuid = xstrdup(gpu->uuid),
            .text = xstrdup(reason),
            .until_ms = until_ms,
            .is_released = wish == GPU_WISH_RELEASE,
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
    const struct cluster_change *mark = find_mark(core, name, NULL);
    bool is_fenced = mark != NULL && mark->kind == CHANGE_NODE_FENCE; // more than drained
    if (answer.code == 0 && (is_resume ? mark != NULL : !is_fenced)) {
        struct cluster_change change = {
            .kind = is_resume ? CHANGE_NODE_RESUME : CHANGE_NODE_DRAIN,
            .uid = who->uid,
            .node = xstrdup(name),
            .text = xstrdup(reason),
            .until_ms = until_ms,
            .is_held = !is_resume && core_is_held(core, node),
        };
        core_make_mark(core, &change);
        cluster_change_clear(&change);
        if (is_resume)
            core_release_unwanted(core, node);
    }
    core_reply(core, request, &answer);
}
