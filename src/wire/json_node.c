/* SPDX-License-Identifier: MIT */
/* The node itself describes its features; `mgpu doctor` prints them unchanged. */
#include "wire/json_node.h"

#include "base/strings.h"
#include "job/gpu_instance.h"
#include "job/share.h"
#include "wire/json_text.h"

static json_t *write_state(const void *at)
{
    const struct json_node_view *view = at;
    if (view->drain != NULL && view->drain->kind == CHANGE_NODE_FENCE)
        return json_string("fenced");
    if (view->unreachable_ms != 0)
        return json_string("unreachable");
    if (view->drain != NULL)
        return json_string("drained");
    return json_string(view->is_up ? "up" : "down");
}

/* Names of the kinds; none if an older agent did not report them. */
static json_t *write_shares(const void *bits)
{
    json_t *list = json_array();
    for (enum share_kind kind = SHARE_TIME; kind < SHARE_AUTO; kind++)
        if ((*(const uint32_t *)bits >> kind & 1) != 0)
            (void)json_array_append_new(list, json_string(share_kind_name(kind)));
    return list;
}

/* A GPU that has been divided is not counted in addition to its MIG instances. */
static bool is_divided(const struct message_hello *hello, const char *uuid)
{
    const struct gpu_state *gpus = hello->gpus.items;
    for (size_t i = 0; uuid != NULL && i < hello->gpus.count; i++)
        if (gpus[i].is_gone == 0 && text_equal(gpus[i].parent, uuid))
            return true;
    return false;
}

static bool is_counted(const struct message_hello *hello, const struct gpu_state *gpu)
{
    return gpu->is_gone == 0 && !is_divided(hello, gpu->uuid);
}

static json_t *write_gpus(const void *at)
{
    const struct message_hello *hello = at;
    const struct gpu_state *gpus = hello->gpus.items;
    json_int_t count = 0;
    for (size_t i = 0; i < hello->gpus.count; i++)
        count += is_counted(hello, &gpus[i]);
    return json_integer(count);
}

static json_t *write_gpu_instances(const void *at)
{
    const struct message_hello *hello = at;
    const struct gpu_state *gpus = hello->gpus.items;
    json_t *instances = json_object();
    for (size_t i = 0; i < hello->gpus.count; i++) {
        const char *profile = gpu_instance_profile(gpus[i].model);
        if (profile != NULL && is_counted(hello, &gpus[i]))
            (void)json_object_set_new(instances, profile,
                json_integer(json_integer_value(json_object_get(instances, profile)) + 1));
    }
    return instances;
}

/* --- features and network interfaces --- */

#define FEATURE(...) JSON_FIELD(node_feature, __VA_ARGS__)

static const struct json_member feature_members[] = {
    { "name", "string", "name of the feature", FEATURE(name, STRING) },
    { "on", "boolean", "whether it is available", JSON_FORM(node_feature, is_on, json_form_flag) },
    { "text", "string", "how, or why not", FEATURE(text, STRING) },
    { "fix", "string|null", "how to enable it", FEATURE(fix, STRING) },
};

const struct json_table json_feature_table = JSON_TABLE(node_feature, feature_members);

static const struct json_member nic_members[] = {
    { "name", "string", "eth0", JSON_FIELD(node_nic, name, STRING) },
    { "rdma", "string|null", "mlx5_0", JSON_FIELD(node_nic, rdma, STRING) },
    { "numa", "integer|null", "its NUMA node", JSON_FORM(node_nic, numa, json_form_place) },
    { "pcie_switch", "integer|null", "its PCIe switch, numbered like those of GPUs",
        JSON_FORM(node_nic, pcie_switch, json_form_place) },
    { "speed_mbit", "integer|null", "megabits per second", JSON_FIELD(node_nic, speed_mb, U32) },
    { "up", "boolean", "it has a carrier", JSON_FORM(node_nic, is_up, json_form_flag) },
};

const struct json_table json_nic_table = JSON_TABLE(node_nic, nic_members);

/* --- the last test of parking --- */

static const struct park_proof no_proof;

static bool is_tested(const void *view, uint32_t needs)
{
    return ((const struct json_node_view *)view)->parking != &no_proof;
}

static json_t *write_elsewhere(const void *at)
{
    const char *elsewhere = *(char *const *)at;
    return json_text_string(elsewhere != NULL ? elsewhere : park_elsewhere_name(PARK_ELSEWHERE_UNTRIED));
}

static json_t *write_rate(double bytes_per_s)
{
    return bytes_per_s > 0 ? json_integer((json_int_t)bytes_per_s) : json_null();
}

static json_t *write_save_rate(const void *proof)
{
    return write_rate(park_proof_save_rate(proof));
}

static json_t *write_load_rate(const void *proof)
{
    return write_rate(park_proof_load_rate(proof));
}

#define PROOF(...) JSON_THROUGH(json_node_view, parking), JSON_FIELD(park_proof, __VA_ARGS__)

static const struct json_member parking_members[] = {
    { "state", "string", "passed, failed, outdated, untested; none: nothing can be parked",
        JSON_FIELD(json_node_view, parking_state, STRING) },
    { "tested_at", "string|null", "time of the last test", PROOF(tested_ms, TIME) },
    { "driver", "string|null", "driver that was tested", PROOF(driver, STRING) },
    { "models", "string[]", "models of the tested GPUs", PROOF(models, STRINGS, .has_zero = true) },
    { "text", "string|null", "why it has not passed", PROOF(text, STRING) },
    { "wrong", "boolean", "memory did not come back unchanged", PROOF(wrong, BOOL) },
    { "elsewhere", "string", "return on another GPU: untried, passed, refused",
        JSON_THROUGH(json_node_view, parking), JSON_FORM(park_proof, elsewhere, write_elsewhere) },
    { "bytes", "integer|null", "largest GPU memory parked in one job",
        PROOF(most_bytes, U64, .has_zero = true), .needs = 1 },
    { "save_bytes_per_s", "integer|null", "speed of saving it", JSON_THROUGH(json_node_view, parking),
        .make = write_save_rate },
    { "load_bytes_per_s", "integer|null", "speed of restoring it", JSON_THROUGH(json_node_view, parking),
        .make = write_load_rate },
};

const struct json_table json_parking_table = JSON_TABLE(json_node_view, parking_members, .has = is_tested);

static json_t *write_parking(const void *at)
{
    struct json_node_view view = *(const struct json_node_view *)at;
    if (view.parking == NULL)
        view.parking = &no_proof;
    if (view.parking_state == NULL)
        view.parking_state = "none";
    return json_table_write(&json_parking_table, &view);
}

/* --- the node --- */

#define VIEW(...)  JSON_FIELD(json_node_view, __VA_ARGS__)
#define HELLO(...) JSON_THROUGH(json_node_view, hello), JSON_FIELD(message_hello, __VA_ARGS__)
#define FORM(...)  JSON_THROUGH(json_node_view, hello), JSON_FORM(message_hello, __VA_ARGS__)
#define LIST(...)  JSON_THROUGH(json_node_view, hello), JSON_LIST(message_hello, __VA_ARGS__)
#define DRAIN(...) JSON_THROUGH(json_node_view, drain), JSON_FIELD(cluster_change, __VA_ARGS__)

static const struct json_member node_members[] = {
    { "nics", "Nic[]", "network interfaces that belong to PCI devices", LIST(nics, &json_nic_table) },
    { "shares", "string[]", "kinds of --share that work there", FORM(shares, write_shares) },
    { "name", "string", "its name", VIEW(name, STRING) },
    { "up", "boolean", "it is connected", VIEW(is_up, BOOL) },
    { "state", "string", "up, drained, unreachable and others", .make = write_state },
    { "unreachable_since", "string|null", "time since which it has been unreachable",
        VIEW(unreachable_ms, TIME) },
    { "stopping", "integer", "jobs that are being ended", VIEW(n_stopping, U64, .has_zero = true) },
    { "reason", "string|null", "reason of the drain", DRAIN(text, STRING) },
    { "until", "string|null", "end of the drain", DRAIN(until_ms, TIME) },
    { "cpus", "integer", "CPUs", HELLO(cpus, U32, .has_zero = true) },
    { "memory_bytes", "integer", "memory", HELLO(memory_bytes, U64, .has_zero = true) },
    { "gpu_backend", "string", "backend that reads its GPUs", HELLO(gpu_backend, STRING) },
    { "driver", "string|null", "version of the driver of its GPUs", HELLO(driver, STRING) },
    { "gpus", "integer", "its GPUs", JSON_THROUGH(json_node_view, hello), .make = write_gpus },
    { "gpu_instances", "object", "how many of these are MIG instances, by profile",
        JSON_THROUGH(json_node_view, hello), .make = write_gpu_instances },
    { "gpus_drained", "integer", "GPUs taken out of service", VIEW(n_drained, U64, .has_zero = true) },
    { "parking", "NodeParking", "test of parking on this node", .make = write_parking },
    { "version", "string", "version of its agent", HELLO(version, STRING) },
    { "features", "Feature[]", "its features", LIST(features, &json_feature_table) },
    { "remote", "boolean", "it is another machine", VIEW(is_remote, BOOL) },
    { "address", "string|null", "address from which it connects", VIEW(address, STRING) },
    { "since", "string|null", "time since it has this state", VIEW(since_ms, TIME) },
    { "joined_at", "string|null", "time at which it joined", VIEW(joined_ms, TIME) },
};

const struct json_table json_node_table = JSON_TABLE(json_node_view, node_members);
