/* SPDX-License-Identifier: MIT */
#include "job/cluster_change.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "job/spec.h"

static const struct record_field device_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct cluster_device, index, 0),
    RECORD_FIELD(2, RECORD_STRING, struct cluster_device, uuid, 96),
    RECORD_FIELD(3, RECORD_STRING, struct cluster_device, model, SPEC_NAME_MAX),
    RECORD_FIELD(4, RECORD_SIZE, struct cluster_device, memory_bytes, 0),
    RECORD_FIELD(5, RECORD_I32, struct cluster_device, numa, 0),
    RECORD_FIELD(6, RECORD_I32, struct cluster_device, pcie_switch, 0),
    RECORD_FIELD(7, RECORD_U64, struct cluster_device, links, 0),
    RECORD_FIELD(8, RECORD_BOOL, struct cluster_device, is_lost, 0),
    RECORD_FIELD(9, RECORD_U32, struct cluster_device, closed, 0),
    RECORD_FIELD(10, RECORD_SIZE, struct cluster_device, memory_external, 0),
    RECORD_FIELD(11, RECORD_BOOL, struct cluster_device, has_external, 0),
    RECORD_FIELD(50, RECORD_U32, struct cluster_device, adoptee, 0),
};

const struct record_type cluster_device_record =
    RECORD_TYPE(6, "cluster device", struct cluster_device, device_fields);

static const struct record_field change_fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct cluster_change, kind, 0),
    RECORD_FIELD(2, RECORD_U32, struct cluster_change, uid, 0),
    RECORD_FIELD(3, RECORD_STRING, struct cluster_change, node, SPEC_NAME_MAX),
    RECORD_FIELD(4, RECORD_STRING, struct cluster_change, uuid, 96),
    RECORD_FIELD(5, RECORD_U64, struct cluster_change, reservation, 0),
    RECORD_FIELD(6, RECORD_I64, struct cluster_change, from_ms, 0),
    RECORD_FIELD(7, RECORD_I64, struct cluster_change, until_ms, 0),
    RECORD_FIELD(8, RECORD_U32, struct cluster_change, gpus, 0),
    RECORD_FIELD(9, RECORD_STRING, struct cluster_change, gpu_ids, ASK_TEXT_MAX),
    RECORD_FIELD(10, RECORD_STRING, struct cluster_change, users, ASK_TEXT_MAX),
    RECORD_FIELD(11, RECORD_STRING, struct cluster_change, text, CHANGE_TEXT_MAX),
    RECORD_FIELD(12, RECORD_U32, struct cluster_change, cpu_milli, 0),
    RECORD_FIELD(13, RECORD_U64, struct cluster_change, memory, 0),
    RECORD_SUBLIST(14, struct cluster_change, devices, CHANGE_DEVICES_MAX, &cluster_device_record),
    RECORD_FIELD(60, RECORD_U32, struct cluster_change, fault, 0),
    RECORD_FIELD(61, RECORD_U32, struct cluster_change, xid, 0),
    RECORD_FIELD(62, RECORD_U64, struct cluster_change, energy_mj, 0),
    RECORD_FIELD(63, RECORD_BOOL, struct cluster_change, is_released, 0),
    RECORD_FIELD(90, RECORD_BOOL, struct cluster_change, has_come, 0),
    RECORD_FIELD(91, RECORD_BOOL, struct cluster_change, is_held, 0),
    RECORD_FIELD(463, RECORD_U32, struct cluster_change, shares, 0),
    RECORD_FIELD(464, RECORD_U64, struct cluster_change, job, 0),
    RECORD_FIELD(465, RECORD_BOOL, struct cluster_change, parks, 0),
    RECORD_FIELD(466, RECORD_BOOL, struct cluster_change, returns_home, 0),
    RECORD_FIELD(467, RECORD_U32, struct cluster_change, kept_cpu_milli, 0),
    RECORD_FIELD(468, RECORD_U64, struct cluster_change, kept_memory, 0),
};

const struct record_type cluster_change_record =
    RECORD_TYPE(5, "cluster change", struct cluster_change, change_fields);

static const struct {
    const char *name;
    bool has_node, has_gpu, has_reservation, has_times, has_text, has_job;
} kinds[CHANGE_KINDS] = {
    [CHANGE_NODE_UP] = { "node_up", .has_node = true },
    [CHANGE_NODE_DOWN] = { "node_down", .has_node = true },
    [CHANGE_GPU_PAUSE] = { "gpu_pause", .has_node = true, .has_gpu = true },
    [CHANGE_GPU_RESUME] = { "gpu_resume", .has_node = true, .has_gpu = true },
    [CHANGE_NODE_DRAIN] = { "node_drain", .has_node = true },
    [CHANGE_NODE_RESUME] = { "node_resume", .has_node = true },
    [CHANGE_RESERVE] = { "reserve", .has_reservation = true, .has_times = true },
    [CHANGE_UNRESERVE] = { "unreserve", .has_reservation = true },
    [CHANGE_SETTINGS] = { "settings", .has_text = true },
    [CHANGE_GPU_POLICY] = { "gpu_policy", .has_node = true, .has_gpu = true, .has_text = true },
    [CHANGE_GPU_DRAIN] = { "gpu_drain", .has_node = true, .has_gpu = true, .has_text = true },
    [CHANGE_GPU_RETURN] = { "gpu_return", .has_node = true, .has_gpu = true },
    [CHANGE_NODE_UNREACHABLE] = { "node_unreachable", .has_node = true },
    [CHANGE_NODE_FENCE] = { "node_fence", .has_node = true },
    [CHANGE_NODE_JOIN] = { "node_join", .has_node = true },
    [CHANGE_NODE_BACK] = { "node_back", .has_node = true },
    [CHANGE_NODE_FORGET] = { "node_forget", .has_node = true },
    [CHANGE_NODE_BAR] = { "node_bar", .has_node = true },
    [CHANGE_NODE_PARKING] = { "node_parking", .has_node = true, .has_text = true },
    [CHANGE_JOB_REFUSED] = { "job_refused", .has_job = true },
    [CHANGE_PARK_BAR] = { "park_bar", .has_job = true },
};

const char *change_kind_name(enum change_kind kind)
{
    return (size_t)kind < CHANGE_KINDS ? kinds[kind].name : "invalid";
}

int cluster_change_validate(const struct cluster_change *change, struct error *err)
{
    if (change->kind >= CHANGE_KINDS)
        return error_set(err, -EBADMSG, "cluster change %u has an unknown kind", change->kind);
    const char *missing = NULL;
    if (kinds[change->kind].has_node && change->node == NULL)
        missing = "node";
    else if (kinds[change->kind].has_gpu && change->uuid == NULL)
        missing = "uuid";
    else if (kinds[change->kind].has_reservation && change->reservation == 0)
        missing = "reservation";
    else if (kinds[change->kind].has_text && change->text == NULL)
        missing = "text";
    else if (kinds[change->kind].has_job && change->job == 0)
        missing = "job";
    if (missing != NULL)
        return error_set(err, -EBADMSG, "cluster change %s has no %s", kinds[change->kind].name, missing);
    if (kinds[change->kind].has_times && change->until_ms <= change->from_ms)
        return error_set(err, -EBADMSG, "cluster change %s ends at %" PRId64 ", before it begins at %" PRId64,
            kinds[change->kind].name, change->until_ms, change->from_ms);
    return 0;
}

void cluster_change_clear(struct cluster_change *change)
{
    record_clear(&cluster_change_record, change);
}
