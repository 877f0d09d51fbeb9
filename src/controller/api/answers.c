/* SPDX-License-Identifier: MIT */
/*
 * One row for each member of an object, grouped by object, or for the table that writes the object.
 * tests/system/test_openapi.py compares them with the responses of mgpud.
 */
#include "controller/api/answers.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "wire/json_gpu.h"
#include "wire/json_node.h"
#include "wire/json_spec.h"

static const struct row {
    const char *schema, *name, *type, *help;
    bool is_optional;               // not always present
    const struct json_table *table; // instead of a member: all those of the table that writes the object
} rows[] = {
    { "Problem", "type", "string", "\"about:blank\"" },
    { "Problem", "title", "string", "the status in words" },
    { "Problem", "status", "integer", "the HTTP status" },
    { "Problem", "code", "string", "error code for programs" },
    { "Problem", "detail", "string", "the error in a sentence" },
    { "Problem", "hint", "string", "advice on the error", true },
    { "JobList", "jobs", "Job[]", "the jobs" },
    { "JobList", "next", "integer|null", "`after` of the next page; null: it was the last, or no page" },
    { "JobList", "omitted", "object|null", "with `top`: how many jobs of each state were left out" },
    { "JobDetails", .table = &json_spec_table },
    { "JobDetails", "script", "string|null", "the submitted script, if requested", true },
    { "JobDetails", "notify", "string[]", "targets of its notifications", true },
    { "JobDetails", "notify_on", "string|null", "events to notify of", true },
    { "JobDetails", "notices", "object[]", "notifications, waiting and sent", true },
    { "JobDetails", "events", "object[]", "its history", true },
    { "JobDetails", "advice", "string|null", "advice to its owner after this end", true },
    { "JobDetails", "cause", "string|null", "cause of its end, from the last lines of its output", true },
    { "JobAhead", "id", "integer", "job that is placed ahead or runs" },
    { "JobAhead", "user", "string", "its owner" },
    { "JobAhead", "name", "string", "its name" },
    { "JobAhead", "gpus", "number", "GPUs it has or requests" },
    { "JobAhead", "gpu_share", "number|null", "part of a shared GPU" },
    { "JobAhead", "array_job", "integer|null", "array it is an element of" },
    { "JobAhead", "array_index", "integer|null", "its index there" },
    { "JobAhead", "eta", "string|null", "expected start of a waiting job" },
    { "JobAhead", "ends", "string|null", "expected end of a running job" },
    { "Reason", "code", "string", "the reason, for programs" },
    { "Reason", "text", "string", "the reason in words" },
    { "Reason", "jobs", "integer[]", "jobs that block it" },
    { "Reason", "gpus", "object[]", "GPUs that block it: node, index" },
    { "Reason", "until", "string|null", "end of the reason, if known" },
    { "Why", "job", "integer|null", "the job; null for a dry run" },
    { "Why", "state", "string", "its state" },
    { "Why", "starts_now", "boolean", "nothing blocks it" },
    { "Why", "reasons", "Reason[]", "everything that blocks it" },
    { "Why", "position", "integer|null", "place in the queue" },
    { "Why", "eta", "string|null", "expected start" },
    { "Why", "eta_basis", "string|null", "basis of the expected start" },
    { "Why", "eta_from", "string|null", "a tenth of such jobs starts before this" },
    { "Why", "eta_until", "string|null", "a tenth of such jobs starts after this" },
    { "Why", "eta_latest", "string|null", "latest start" },
    { "Why", "eta_latest_basis", "string|null", "basis of the latest start" },
    { "Why", "overtaken_until", "string|null",
        "jobs submitted after this time are placed behind it, as expected now" },
    { "Why", "promised_until", "string|null", "latest value that this time can reach" },
    { "Why", "promise_basis", "string|null", "basis of that value" },
    { "Why", "ahead", "JobAhead[]", "jobs ahead of it" },
    { "Why", "parking", "object|null", "with `park: auto`: why no running job is parked for it: job, text" },
    { "Why", "borrowing", "string|null",
        "it may start on GPUs that are owed to a parked job, and then have to start again" },
    { "Why", "change", "object|null", "change that would start it now: text, edit" },
    { "Why", "external", "object[]", "GPUs with external processes that are still allocated" },
    { "GpuJob", .table = &json_gpu_job_table },
    { "Gpu", .table = &json_gpu_table },
    { "GpuTest", .table = &json_gpu_test_table },
    { "GpuList", "gpus", "Gpu[]", "the GPUs of all nodes" },
    { "GpuList", "next", "integer|null", "`after` of the next page; null: it was the last" },
    { "GpuList", "omitted", "object|null", "with `top`: how many GPUs of each state were left out" },
    { "GpuPast", "node", "string", "its node" },
    { "GpuPast", "index", "integer", "its number there" },
    { "GpuPast", "uuid", "string", "its identity" },
    { "GpuPast", "utilization", "number|null[]", "mean of each step, from 0 to 1" },
    { "GpuPast", "utilization_max", "number|null[]", "peak of each step" },
    { "GpuPast", "memory", "number|null[]", "mean, from 0 to 1" },
    { "GpuPast", "memory_max", "number|null[]", "peak" },
    { "GpuPast", "power_w", "number|null[]", "mean" },
    { "GpuPast", "power_w_max", "number|null[]", "peak" },
    { "GpuPast", "temperature_c", "number|null[]", "mean" },
    { "GpuPast", "temperature_c_max", "number|null[]", "peak" },
    { "GpuHistory", "from", "string", "beginning of the first step" },
    { "GpuHistory", "step_s", "integer", "seconds of a step" },
    { "GpuHistory", "gpus", "GpuPast[]", "their values" },
    { "History", "jobs", "Job[]", "ended jobs; without `by`", true },
    { "History", "by", "string", "key of the sums; with `by`", true },
    { "History", "since", "string|null", "with `by`", true },
    { "History", "until", "string|null", "with `by`", true },
    { "History", "sums", "object[]", "with `by`: jobs, GPU-seconds and waits of each", true },
    { "Feature", .table = &json_feature_table },
    { "Node", .table = &json_node_table },
    { "NodeParking", .table = &json_parking_table },
    { "Nic", .table = &json_nic_table },
    { "NodeList", "nodes", "Node[]", "the nodes" },
    { "NodeList", "next", "integer|null", "`after` of the next page; null: it was the last" },
    { "Partition", "name", "string", "its name" },
    { "Partition", "default", "boolean", "default for jobs that name none" },
    { "Partition", "nodes", "string[]", "known nodes in it" },
    { "Partition", "node_list", "string|null", "as configured; null: all nodes" },
    { "Partition", "users", "string|null", "users who may use it; null: all" },
    { "Partition", "may_use", "boolean", "whether you may use it" },
    { "Partition", "max_time", "number|null", "maximum time limit, in seconds" },
    { "Partition", "default_time", "number|null", "time limit of jobs that request none" },
    { "Partition", "priority", "integer", "added to the priority of its jobs" },
    { "Partition", "max_gpus", "integer|null", "maximum GPUs of a job" },
    { "PartitionList", "partitions", "Partition[]", "all partitions, in the order of the configuration" },
    { "Forecast", "job", "integer", "the job" },
    { "Forecast", "told_at", "string", "when it was made, soon after the submission" },
    { "Forecast", "expected", "string", "start if jobs end when expected and none is submitted" },
    { "Forecast", "from", "string", "a tenth of the starts was expected before this" },
    { "Forecast", "until", "string", "a tenth of the starts was expected after this" },
    { "Forecast", "started_at", "string|null", "when it started" },
    { "Forecast", "result", "string", "within, earlier or later, or waiting" },
    { "ForecastRange", "wait_from_s", "integer|null", "forecast waits from this on; null: all" },
    { "ForecastRange", "wait_until_s", "integer|null", "and below this" },
    { "ForecastRange", "started", "integer", "number of these jobs that have started" },
    { "ForecastRange", "within", "integer", "of these: within the interval" },
    { "ForecastRange", "earlier", "integer", "before it" },
    { "ForecastRange", "later", "integer", "after it" },
    { "ForecastRange", "waiting", "integer", "jobs that have not started" },
    { "ForecastRange", "factor_from", "number|null", "a tenth waits less than this times the forecast" },
    { "ForecastRange", "factor_median", "number|null", "half of the jobs wait less than this times it" },
    { "ForecastRange", "factor_until", "number|null", "a tenth waits more than this times the forecast" },
    { "ForecastList", "ranges", "ForecastRange[]", "by length of the forecast wait; the last covers all" },
    { "ForecastList", "forecasts", "Forecast[]", "the last thousand, newest first" },
    { "ReservationList", "reservations", "object[]", "current and planned reservations" },
    { "Account", "user", "string|null", "the user, or null for a group" },
    { "Account", "uid", "integer|null", "its number" },
    { "Account", "group", "string|null", "the group, or null" },
    { "Account", "department", "string|null", "the department, or that of the group or user" },
    { "Account", "running", "integer", "running jobs" },
    { "Account", "queued", "integer", "waiting jobs" },
    { "Account", "gpus", "number", "GPUs held" },
    { "Account", "gpu_seconds", "number", "decayed usage" },
    { "Account", "charged_seconds", "number", "the same by dominant resource, which orders the queue" },
    { "Account", "share", "number|null", "fraction of the cluster while all accounts with jobs compete" },
    { "Account", "factor", "number", "weight in the queue" },
    { "Account", "limits", "object", "running, gpus, gpu_seconds; null: none" },
    { "AccountList", "users", "Account[]", "users and groups" },
    { "TokenList", "tokens", "object[]", "valid tokens, without secrets" },
    { "Cluster", "role", "string", "only, leader or standby" },
    { "Cluster", "leader", "string|null", "name and address of the leader" },
    { "Cluster", "entry", "integer", "last entry of the log" },
    { "Cluster", "age_ms", "integer|null", "age of a standby's data" },
    { "Cluster", "trouble", "string|null", "why it does not follow or write" },
    { "Cluster", "lease_ms", "integer|null", "silence after which another controller replaces the leader" },
    { "Cluster", "lease_left_ms", "integer|null",
        "time for which this leader is certain to be the only one" },
    { "Cluster", "controllers", "Controller[]", "all controllers, as they report themselves" },
    { "Cluster", "etcd", "EtcdMember[]", "the endpoints of etcd" },
    { "Controller", "name", "string|null", "its name" },
    { "Controller", "role", "string", "leader or standby" },
    { "Controller", "api", "string|null", "address for clients" },
    { "Controller", "nodes", "string|null", "address for nodes" },
    { "Controller", "version", "string|null", "version of mgpu" },
    { "Controller", "entry", "integer", "last entry of the log that it has, some seconds old" },
    { "Controller", "trouble", "string|null", "why it does not follow or write" },
    { "EtcdMember", "url", "string|null", "the endpoint" },
    { "EtcdMember", "up", "boolean", "it answers" },
    { "EtcdMember", "used_bytes", "integer|null", "size of its database" },
    { "EtcdMember", "trouble", "string|null", "its problem in words" },
    { "Caller", "user", "string", "your user name" },
    { "Caller", "uid", "integer", "your number" },
    { "Caller", "role", "string", "your role" },
    { "Caller", "by", "string", "means of identification" },
    { "Caller", "scopes", "string[]", "scopes of your token", true },
    { "Caller", "expires_at", "string|null", "end of the token or session" },
    { "Caller", "page", "string|null", "version of the web page" },
    { "Setting", "key", "string", "its name" },
    { "Setting", "value", "string|null", "effective value" },
    { "Setting", "origin", "string", "where it is set" },
    { "Setting", "live", "boolean", "a reload is enough to change it" },
    { "Setting", "help", "string|null", "its purpose" },
    { "Settings", "settings", "Setting[]", "all settings" },
    { "Settings", "files", "string[]", "files that were read" },
    { "Settings", "warnings", "string[]", "entries without effect" },
    { "Version", "version", "string", "version of mgpud" },
    { "Version", "instance", "string", "identity of this mgpud and its store" },
    { "Version", "epoch", "integer", "number of its start" },
    { "Version", "store_full", "boolean", "the disk is nearly full" },
    { "Version", "store_lacks_inodes", "boolean", "inodes rather than bytes are missing" },
    { "Version", "page_trouble", "string|null", "why the web page is not available although it is enabled" },
    { "Version", "store_check", "object|null", "the last check of the whole store" },
    { "Version", "longest_turn_us", "integer", "longest turn of the event loop in the last ten minutes" },
    { "Version", "longest_step", "string|null", "the longest part of that turn: a route, a message" },
    { "Version", "longest_step_us", "integer", "its share of the turn" },
    { "Version", "longest_stall_ms", "integer", "longest delay of the end of a turn" },
    { "Limit", "name", "string", "its name" },
    { "Limit", "value", "integer", "the maximum accepted" },
    { "Limit", "unit", "string", "its unit" },
    { "Limit", "meaning", "string", "the limited quantity" },
    { "LimitList", "limits", "Limit[]", "all hard limits" },
    { "StepList", "steps", "object[]", "the steps of a job" },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* "string", "string|null", or the name of a schema. */
static json_t *write_single(const char *type, size_t length)
{
    const char *bar = memchr(type, '|', length);
    if (type[0] >= 'A' && type[0] <= 'Z') {
        _cleanup_free_ char *reference = xasprintf("#/components/schemas/%.*s", (int)length, type);
        return json_pack("{s:s}", "$ref", reference);
    }
    if (bar == NULL)
        return json_pack("{s:s#}", "type", type, (int)length);
    return json_pack("{s:[s#,s]}", "type", type, (int)(bar - type), "null");
}

json_t *answers_write_type(const char *type)
{
    size_t length = strlen(type);
    bool is_array = length > 2 && strcmp(type + length - 2, "[]") == 0;
    json_t *single = write_single(type, is_array ? length - 2 : length);
    return is_array ? json_pack("{s:s,s:o}", "type", "array", "items", single) : single;
}

static void add_member(json_t *schema, const char *name, const char *type, const char *help, bool is_optional)
{
    json_t *value = answers_write_type(type);
    (void)json_object_set_new(value, "description", json_string(help));
    (void)json_object_set_new(json_object_get(schema, "properties"), name, value);
    if (!is_optional)
        (void)json_array_append_new(json_object_get(schema, "required"), json_string(name));
}

json_t *answers_write_schemas(void)
{
    json_t *schemas = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        const struct json_table *table = row->table;
        json_t *schema = json_object_get(schemas, row->schema);
        if (schema == NULL) {
            schema = json_pack("{s:s,s:{s:{s:s}},s:[]}", "type", "object", "properties", "schema", "type",
                "string", "required");
            (void)json_object_set_new(schemas, row->schema, schema);
        }
        if (table == NULL)
            add_member(schema, row->name, row->type, row->help, row->is_optional);
        for (size_t k = 0; table != NULL && k < table->count; k++)
            add_member(schema, table->members[k].name, table->members[k].type, table->members[k].help,
                table->members[k].is_optional);
    }
    return schemas;
}
