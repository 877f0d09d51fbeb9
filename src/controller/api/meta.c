/* SPDX-License-Identifier: MIT */
/* Information about mgpud itself: its version, its limits and its settings. */
#include "base/version.h"
#include "controller/api/routes.h"
#include "controller/api/sessions.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/status.h"
#include "controller/config/settings.h"
#include "controller/http/request.h"
#include "controller/turns.h"
#include "wire/json_text.h"
#include "wire/limits.h"

/* null until the first check after the start has ended. */
static json_t *write_check(const struct store_verification *verification)
{
    if (verification->checked_ms == 0)
        return json_null();
    json_t *check = json_object();
    (void)json_object_set_new(check, "checked_at", json_text_time(verification->checked_ms));
    (void)json_object_set_new(check, "findings", json_integer(verification->findings));
    (void)json_object_set_new(check, "is_damaged", json_boolean(verification->is_file_damaged));
    (void)json_object_set_new(
        check, "finding", verification->findings > 0 ? json_text_string(verification->finding) : json_null());
    return check;
}

void handle_version(struct request *request)
{
    const struct store_summary *summary = &request->serve->controller->summary;
    json_t *body = json_object();
    (void)json_object_set_new(body, "version", json_string(MGPU_VERSION));
    (void)json_object_set_new(body, "instance", json_text_string(summary->instance));
    (void)json_object_set_new(body, "epoch", json_integer((json_int_t)summary->epoch));
    (void)json_object_set_new(
        body, "store_full", json_boolean(store_is_full(request->serve->controller->store)));
    (void)json_object_set_new(
        body, "store_lacks_inodes", json_boolean(store_lacks_inodes(request->serve->controller->store)));
    (void)json_object_set_new(body, "page_trouble", sessions_write_trouble(request->serve->controller));
    (void)json_object_set_new(body, "store_check", write_check(&request->serve->controller->verification));
    struct turns_worst worst = turns_worst(request->serve->controller->turns);
    _cleanup_free_ char *step = turns_step_name(&worst.step);
    (void)json_object_set_new(body, "longest_turn_us", json_integer((json_int_t)worst.busy_us));
    (void)json_object_set_new(body, "longest_step", json_text_string(step));
    (void)json_object_set_new(body, "longest_step_us", json_integer((json_int_t)worst.step.busy_us));
    (void)json_object_set_new(body, "longest_stall_ms", json_integer((json_int_t)worst.stall_ms));
    request_reply_json(request, 200, body);
}

/* A controller that is the only one is not part of a cluster. */
void handle_cluster(struct request *request)
{
    struct cluster *cluster = request->serve->controller->cluster;
    struct cluster_status status;
    if (cluster == NULL) {
        request_reply_json(request, 200,
            json_pack("{s:s, s:n, s:i, s:n, s:n, s:n, s:n, s:[], s:[]}", "role", "only", "leader", "entry", 0,
                "age_ms", "trouble", "lease_ms", "lease_left_ms", "controllers", "etcd"));
        return;
    }
    cluster_read_status(cluster, &status);
    request_reply_json(request, 200, cluster_status_write(&status));
}

void handle_health(struct request *request)
{
    request_reply_bytes(request, 200, "text/plain", "ok\n", 3);
}

void handle_limits(struct request *request)
{
    size_t count;
    const struct limit *limits = limits_all(&count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_object();
        (void)json_object_set_new(row, "name", json_string(limits[i].name));
        (void)json_object_set_new(row, "value", json_integer((json_int_t)limits[i].value));
        (void)json_object_set_new(row, "unit", json_string(limits[i].unit));
        (void)json_object_set_new(row, "meaning", json_string(limits[i].meaning));
        (void)json_array_append_new(array, row);
    }
    json_t *body = json_object();
    (void)json_object_set_new(body, "limits", array);
    request_reply_json(request, 200, body);
}

static void write_setting(void *arg, const struct setting *setting)
{
    json_t *array = arg;
    (void)json_array_append_new(
        array, json_pack("{s:o,s:o,s:o,s:b,s:o}", "key", json_text_string(setting->key), "value",
                   json_text_string(setting->value), "origin", json_text_string(setting->origin), "live",
                   setting->is_live, "help", json_text_string(setting->help)));
}

void handle_config(struct request *request)
{
    const struct controller_options *options = &request->serve->controller->options;
    json_t *settings = json_array(), *files = json_array(), *warnings = json_array(), *body = json_object();
    settings_visit(options, write_setting, settings);
    for (size_t i = 0; i < options->n_files; i++)
        (void)json_array_append_new(files, json_text_string(options->files[i]));
    for (size_t i = 0; i < options->warnings.count; i++)
        (void)json_array_append_new(warnings, json_text_string(options->warnings.items[i]));
    (void)json_object_set_new(body, "settings", settings);
    (void)json_object_set_new(body, "files", files);
    (void)json_object_set_new(body, "warnings", warnings);
    request_reply_json(request, 200, body);
}
