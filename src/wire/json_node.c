/* SPDX-License-Identifier: MIT */
/* The node itself describes its features; `mgpu doctor` prints them unchanged. */
#include "wire/json_node.h"

#include "base/strings.h"
#include "job/gpu_instance.h"
#include "job/share.h"
#include "wire/json_text.h"

static const char *state_word(const struct json_node_view *view)
{
    if (view->drain != NULL && view->drain->kind == CHANGE_NODE_FENCE)
        return "fenced";
    if (view->unreachable_ms != 0)
        return "unreachable";
    if (view->drain != NULL)
        return "drained";
    return view->is_up ? "up" : "down";
}

static json_t *json_place(int32_t number)
{
    return number < 0 ? json_null() : json_integer(number);
}

static json_t *write_nics(const struct message_hello *hello)
{
    const struct node_nic *nics = hello->nics.items;
    json_t *list = json_array();
    for (size_t i = 0; i < hello->nics.count; i++) {
        json_t *nic = json_object();
        (void)json_object_set_new(nic, "name", json_text_string(nics[i].name));
        (void)json_object_set_new(nic, "rdma", json_text_string(nics[i].rdma));
        (void)json_object_set_new(nic, "numa", json_place(nics[i].numa));
        (void)json_object_set_new(nic, "pcie_switch", json_place(nics[i].pcie_switch));
        (void)json_object_set_new(
            nic, "speed_mbit", nics[i].speed_mb != 0 ? json_integer(nics[i].speed_mb) : json_null());
        (void)json_object_set_new(nic, "up", json_boolean(nics[i].is_up != 0));
        (void)json_array_append_new(list, nic);
    }
    return list;
}

/* Names of the kinds; none if an older agent did not report them. */
static json_t *write_shares(const struct message_hello *hello)
{
    json_t *list = json_array();
    for (enum share_kind kind = SHARE_TIME; kind < SHARE_AUTO; kind++)
        if ((hello->shares >> kind & 1) != 0)
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

static void add_gpus(json_t *object, const struct message_hello *hello)
{
    const struct gpu_state *gpus = hello->gpus.items;
    json_t *instances = json_object();
    json_int_t count = 0;
    for (size_t i = 0; i < hello->gpus.count; i++) {
        const char *profile = gpu_instance_profile(gpus[i].model);
        if (gpus[i].is_gone != 0 || is_divided(hello, gpus[i].uuid))
            continue;
        count++;
        if (profile != NULL)
            (void)json_object_set_new(instances, profile,
                json_integer(json_integer_value(json_object_get(instances, profile)) + 1));
    }
    (void)json_object_set_new(object, "gpus", json_integer(count));
    (void)json_object_set_new(object, "gpu_instances", instances);
}

static json_t *json_rate(double bytes_per_s)
{
    return bytes_per_s > 0 ? json_integer((json_int_t)bytes_per_s) : json_null();
}

static json_t *write_parking(const struct json_node_view *view)
{
    const struct park_proof *proof = view->parking;
    json_t *object = json_object(), *models = json_array();
    bool is_known = proof != NULL;
    for (size_t i = 0; is_known && i < proof->models.count; i++)
        (void)json_array_append_new(models, json_text_string(proof->models.items[i]));
    (void)json_object_set_new(
        object, "state", json_string(view->parking_state != NULL ? view->parking_state : "none"));
    (void)json_object_set_new(object, "tested_at", is_known ? json_text_time(proof->tested_ms) : json_null());
    (void)json_object_set_new(object, "driver", json_text_string(is_known ? proof->driver : NULL));
    (void)json_object_set_new(object, "models", models);
    (void)json_object_set_new(object, "text", json_text_string(is_known ? proof->text : NULL));
    (void)json_object_set_new(object, "wrong", json_boolean(is_known && proof->wrong));
    (void)json_object_set_new(object, "elsewhere",
        json_text_string(is_known && proof->elsewhere != NULL ? proof->elsewhere : "untried"));
    (void)json_object_set_new(
        object, "bytes", is_known ? json_integer((json_int_t)proof->most_bytes) : json_null());
    (void)json_object_set_new(
        object, "save_bytes_per_s", json_rate(is_known ? park_proof_save_rate(proof) : 0));
    (void)json_object_set_new(
        object, "load_bytes_per_s", json_rate(is_known ? park_proof_load_rate(proof) : 0));
    return object;
}

json_t *json_node_write(const struct json_node_view *view)
{
    const struct message_hello *hello = view->hello;
    const struct cluster_change *drain = view->drain;
    json_t *features = json_array();
    const struct node_feature *rows = hello->features.items;
    for (size_t i = 0; i < hello->features.count; i++) {
        json_t *feature = json_object();
        (void)json_object_set_new(feature, "name", json_text_string(rows[i].name));
        (void)json_object_set_new(feature, "on", json_boolean(rows[i].is_on != 0));
        (void)json_object_set_new(feature, "text", json_text_string(rows[i].text));
        (void)json_object_set_new(feature, "fix", json_text_string(rows[i].fix));
        (void)json_array_append_new(features, feature);
    }
    json_t *object = json_object();
    (void)json_object_set_new(object, "nics", write_nics(hello));
    (void)json_object_set_new(object, "shares", write_shares(hello));
    (void)json_object_set_new(object, "name", json_text_string(view->name));
    (void)json_object_set_new(object, "up", json_boolean(view->is_up));
    (void)json_object_set_new(object, "state", json_string(state_word(view)));
    (void)json_object_set_new(object, "unreachable_since", json_text_time(view->unreachable_ms));
    (void)json_object_set_new(object, "stopping", json_integer((json_int_t)view->n_stopping));
    (void)json_object_set_new(object, "reason", json_text_string(drain != NULL ? drain->text : NULL));
    (void)json_object_set_new(object, "until", json_text_time(drain != NULL ? drain->until_ms : 0));
    (void)json_object_set_new(object, "cpus", json_integer(hello->cpus));
    (void)json_object_set_new(object, "memory_bytes", json_integer((json_int_t)hello->memory_bytes));
    (void)json_object_set_new(object, "gpu_backend", json_text_string(hello->gpu_backend));
    (void)json_object_set_new(object, "driver", json_text_string(hello->driver));
    add_gpus(object, hello);
    (void)json_object_set_new(object, "gpus_drained", json_integer((json_int_t)view->n_drained));
    (void)json_object_set_new(object, "parking", write_parking(view));
    (void)json_object_set_new(object, "version", json_text_string(hello->version));
    (void)json_object_set_new(object, "features", features);
    return object;
}

void json_node_add_place(json_t *object, const struct json_node_place *place)
{
    (void)json_object_set_new(object, "remote", json_boolean(place->is_remote));
    (void)json_object_set_new(object, "address", json_text_string(place->address));
    (void)json_object_set_new(object, "since", json_text_time(place->since_ms));
    (void)json_object_set_new(object, "joined_at", json_text_time(place->joined_ms));
}
