/* SPDX-License-Identifier: MIT */
/*
 * One row for each member of an object, those of one object together. tests/system/test_openapi.py compares
 * them with what mgpud answers.
 */
#include "controller/api/answers.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"

struct member {
    const char *schema, *name, *type, *help;
    bool is_optional; // it is not always there
};

static const struct member members[] = {
    { "Problem", "type", "string", "\"about:blank\"" },
    { "Problem", "title", "string", "the status in words" },
    { "Problem", "status", "integer", "the HTTP status" },
    { "Problem", "code", "string", "what is wrong, for programs" },
    { "Problem", "detail", "string", "what is wrong, in a sentence" },
    { "Problem", "hint", "string", "what to do about it", true },
    { "JobList", "jobs", "Job[]", "the jobs" },
    { "JobList", "next", "integer|null", "`after` of the next page; null: it was the last, or no page" },
    { "JobList", "omitted", "object|null", "with `top`: how many jobs of each state were left out" },
    { "JobDetails", "argv", "string[]", "the command; this and the next for its owner", true },
    { "JobDetails", "cwd", "string|null", "directory in which it runs", true },
    { "JobDetails", "cwd_fallback", "string|null", "directory if there is no such one", true },
    { "JobDetails", "setup", "string|null", "shell command that runs first", true },
    { "JobDetails", "output", "string|null", "output file as requested", true },
    { "JobDetails", "error", "string|null", "file for standard error as requested", true },
    { "JobDetails", "input", "string|null", "file for standard input", true },
    { "JobDetails", "env", "object", "its environment", true },
    { "JobDetails", "tty", "boolean", "it has a terminal", true },
    { "JobDetails", "image", "string|null", "container image", true },
    { "JobDetails", "image_mounts", "string[]", "additional mounts", true },
    { "JobDetails", "image_runtime", "string|null", "podman or apptainer", true },
    { "JobDetails", "script", "string|null", "the submitted script, if asked for", true },
    { "JobDetails", "notify", "string[]", "whom it notifies", true },
    { "JobDetails", "notify_on", "string|null", "of what", true },
    { "JobDetails", "notices", "object[]", "notifications, waiting and sent", true },
    { "JobDetails", "events", "object[]", "its history", true },
    { "JobAhead", "id", "integer", "job that is placed ahead or runs" },
    { "JobAhead", "user", "string", "its owner" },
    { "JobAhead", "name", "string", "its name" },
    { "JobAhead", "gpus", "number", "GPUs it has or requests" },
    { "JobAhead", "gpu_share", "number|null", "part of a shared GPU" },
    { "JobAhead", "array_job", "integer|null", "array it is an element of" },
    { "JobAhead", "array_index", "integer|null", "its index there" },
    { "JobAhead", "eta", "string|null", "expected start, of a waiting one" },
    { "JobAhead", "ends", "string|null", "expected end, of a running one" },
    { "Reason", "code", "string", "what blocks it, for programs" },
    { "Reason", "text", "string", "what blocks it, in words" },
    { "Reason", "jobs", "integer[]", "jobs that block it" },
    { "Reason", "gpus", "object[]", "GPUs that block it: node, index" },
    { "Reason", "until", "string|null", "when this ends, if known" },
    { "Why", "job", "integer|null", "the job; null for a dry run" },
    { "Why", "state", "string", "its state" },
    { "Why", "starts_now", "boolean", "nothing blocks it" },
    { "Why", "reasons", "Reason[]", "everything that blocks it" },
    { "Why", "position", "integer|null", "place in the queue" },
    { "Why", "eta", "string|null", "expected start" },
    { "Why", "eta_basis", "string|null", "what the expected start rests on" },
    { "Why", "eta_from", "string|null", "a tenth of such jobs starts before this" },
    { "Why", "eta_until", "string|null", "a tenth of such jobs starts after this" },
    { "Why", "eta_latest", "string|null", "latest start" },
    { "Why", "eta_latest_basis", "string|null", "what the latest start rests on" },
    { "Why", "overtaken_until", "string|null", "no job submitted later is placed ahead of it" },
    { "Why", "ahead", "JobAhead[]", "jobs ahead of it" },
    { "Why", "change", "object|null", "what would start it now: text, edit" },
    { "Why", "external", "object[]", "external processes in its way" },
    { "GpuJob", "id", "integer", "the job" },
    { "GpuJob", "user", "string", "its owner" },
    { "GpuJob", "name", "string", "its name" },
    { "GpuJob", "adopted_pid", "integer|null", "process it reserves the GPU for" },
    { "Gpu", "node", "string", "its node" },
    { "Gpu", "index", "integer", "its number there" },
    { "Gpu", "uuid", "string", "its identity" },
    { "Gpu", "model", "string", "its model" },
    { "Gpu", "pci", "string|null", "its PCI address" },
    { "Gpu", "mig", "object|null", "of a MIG instance: profile, parent, gpu_instance, compute_instance" },
    { "Gpu", "memory_bytes", "integer", "its memory" },
    { "Gpu", "memory_used_bytes", "integer|null", "memory in use" },
    { "Gpu", "utilization", "number|null", "from 0 to 1" },
    { "Gpu", "temperature_c", "integer|null", "degrees Celsius" },
    { "Gpu", "power_w", "number|null", "watts" },
    { "Gpu", "power_limit_w", "number|null", "watts" },
    { "Gpu", "energy_joules", "number|null", "since the driver was loaded" },
    { "Gpu", "sm_clock_mhz", "integer|null", "clock of its processors" },
    { "Gpu", "memory_clock_mhz", "integer|null", "clock of its memory" },
    { "Gpu", "ecc_corrected", "integer|null", "corrected memory errors" },
    { "Gpu", "ecc_uncorrected", "integer|null", "uncorrected memory errors" },
    { "Gpu", "xid", "integer|null", "last error reported by the driver" },
    { "Gpu", "xid_at", "string|null", "when" },
    { "Gpu", "trouble", "string|null", "what is wrong with it" },
    { "Gpu", "processes", "object[]", "processes on it" },
    { "Gpu", "policy", "string", "how external processes are treated" },
    { "Gpu", "state", "string", "free, used, shared, external, paused, failed and others" },
    { "Gpu", "reason", "string|null", "why it takes no job" },
    { "Gpu", "unreachable_since", "string|null", "its node has not been heard from since" },
    { "Gpu", "fault", "string|null", "the fault that took it out of service" },
    { "Gpu", "until", "string|null", "end of a pause" },
    { "Gpu", "numa", "integer|null", "its NUMA node" },
    { "Gpu", "pcie_switch", "integer|null", "its PCIe switch" },
    { "Gpu", "links", "integer[]", "GPUs with a direct link to it" },
    { "Gpu", "tests", "GpuTest[]", "the last tests that its node made by itself, newest first" },
    { "Gpu", "test_result", "string|null", "passed, slow or failed" },
    { "Gpu", "test_text", "string|null", "what the last test showed" },
    { "GpuTest", "at", "string", "when" },
    { "GpuTest", "error", "string|null", "why there are no figures" },
    { "GpuTest", "to_gpu_gb_per_s", "number", "copies to the GPU", true },
    { "GpuTest", "from_gpu_gb_per_s", "number", "copies from the GPU", true },
    { "GpuTest", "on_gpu_gb_per_s", "number", "copies on the GPU", true },
    { "GpuTest", "multiply_gflop_per_s", "number", "products of matrices", true },
    { "GpuTest", "wrong", "integer", "wrong words and products", true },
    { "Gpu", "idle_s", "number|null", "allocated, and unused for so long" },
    { "Gpu", "wasted", "boolean", "it is idle longer than the warning" },
    { "Gpu", "jobs", "GpuJob[]", "jobs on it" },
    { "GpuList", "gpus", "Gpu[]", "the GPUs of all nodes" },
    { "GpuList", "next", "integer|null", "`after` of the next page; null: it was the last" },
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
    { "History", "by", "string", "what was summed over; with `by`", true },
    { "History", "since", "string|null", "with `by`", true },
    { "History", "until", "string|null", "with `by`", true },
    { "History", "sums", "object[]", "with `by`: jobs, GPU-seconds and waits of each", true },
    { "Feature", "name", "string", "what is provided" },
    { "Feature", "on", "boolean", "it is" },
    { "Feature", "text", "string", "how, or why not" },
    { "Feature", "fix", "string|null", "how to enable it" },
    { "Node", "name", "string", "its name" },
    { "Node", "up", "boolean", "it is connected" },
    { "Node", "state", "string", "up, drained, unreachable and others" },
    { "Node", "unreachable_since", "string|null", "not heard from since" },
    { "Node", "stopping", "integer", "jobs that are being ended" },
    { "Node", "reason", "string|null", "of the drain" },
    { "Node", "until", "string|null", "end of the drain" },
    { "Node", "cpus", "integer", "CPUs" },
    { "Node", "memory_bytes", "integer", "memory" },
    { "Node", "gpu_backend", "string", "what reads its GPUs" },
    { "Node", "gpus", "integer", "its GPUs" },
    { "Node", "gpu_instances", "object", "how many of these are MIG instances, by profile" },
    { "Node", "gpus_drained", "integer", "those that take no job" },
    { "Node", "version", "string", "of its agent" },
    { "Node", "features", "Feature[]", "what it provides" },
    { "Node", "nics", "Nic[]", "network interfaces that belong to PCI devices" },
    { "Node", "shares", "string[]", "kinds of --share that work there" },
    { "Nic", "name", "string", "eth0" },
    { "Nic", "rdma", "string|null", "mlx5_0" },
    { "Nic", "numa", "integer|null", "its NUMA node" },
    { "Nic", "pcie_switch", "integer|null", "its PCIe switch, numbered like those of GPUs" },
    { "Nic", "speed_mbit", "integer|null", "megabits per second" },
    { "Nic", "up", "boolean", "it has a carrier" },
    { "Node", "remote", "boolean", "it is another machine" },
    { "Node", "address", "string|null", "where it connects from" },
    { "Node", "since", "string|null", "of its state" },
    { "Node", "joined_at", "string|null", "when it joined" },
    { "NodeList", "nodes", "Node[]", "the nodes" },
    { "NodeList", "next", "integer|null", "`after` of the next page; null: it was the last" },
    { "Partition", "name", "string", "its name" },
    { "Partition", "default", "boolean", "that of jobs that name none" },
    { "Partition", "nodes", "string[]", "known nodes in it" },
    { "Partition", "node_list", "string|null", "as configured; null: all nodes" },
    { "Partition", "users", "string|null", "who may use it; null: everybody" },
    { "Partition", "may_use", "boolean", "you may" },
    { "Partition", "max_time", "number|null", "longest time limit, in seconds" },
    { "Partition", "default_time", "number|null", "time limit of jobs that request none" },
    { "Partition", "priority", "integer", "added to that of its jobs" },
    { "Partition", "max_gpus", "integer|null", "most GPUs of a job" },
    { "PartitionList", "partitions", "Partition[]", "in the order of the configuration" },
    { "Forecast", "job", "integer", "the job" },
    { "Forecast", "told_at", "string", "when it was made, soon after the submission" },
    { "Forecast", "expected", "string", "start if jobs end when expected and none is submitted" },
    { "Forecast", "from", "string", "a tenth of the starts was expected before this" },
    { "Forecast", "until", "string", "a tenth of the starts was expected after this" },
    { "Forecast", "started_at", "string|null", "when it started" },
    { "Forecast", "result", "string", "within, earlier or later, or waiting" },
    { "ForecastRange", "wait_from_s", "integer|null", "forecast waits from this on; null: all" },
    { "ForecastRange", "wait_until_s", "integer|null", "and below this" },
    { "ForecastRange", "started", "integer", "of their jobs have started" },
    { "ForecastRange", "within", "integer", "of these: within the interval" },
    { "ForecastRange", "earlier", "integer", "before it" },
    { "ForecastRange", "later", "integer", "after it" },
    { "ForecastRange", "waiting", "integer", "jobs that have not started" },
    { "ForecastRange", "factor_from", "number|null", "a tenth waits less than this times the forecast" },
    { "ForecastRange", "factor_median", "number|null", "half of them does" },
    { "ForecastRange", "factor_until", "number|null", "a tenth waits more than this times the forecast" },
    { "ForecastList", "ranges", "ForecastRange[]", "by length of the forecast wait; the last is of all" },
    { "ForecastList", "forecasts", "Forecast[]", "the last thousand, newest first" },
    { "ReservationList", "reservations", "object[]", "reservations that are or will be" },
    { "Account", "user", "string|null", "the user, or null for a group" },
    { "Account", "uid", "integer|null", "its number" },
    { "Account", "group", "string|null", "the group, or null for another" },
    { "Account", "department", "string|null", "the department, or that of the group or user" },
    { "Account", "running", "integer", "jobs that run" },
    { "Account", "queued", "integer", "jobs that wait" },
    { "Account", "gpus", "number", "GPUs held" },
    { "Account", "gpu_seconds", "number", "decayed usage" },
    { "Account", "charged_seconds", "number", "the same by dominant resource, which orders the queue" },
    { "Account", "share", "number|null", "of the cluster, while all with jobs want it" },
    { "Account", "factor", "number", "weight in the queue" },
    { "Account", "limits", "object", "running, gpus, gpu_seconds; null: none" },
    { "AccountList", "users", "Account[]", "users and groups" },
    { "TokenList", "tokens", "object[]", "valid tokens, without secrets" },
    { "Cluster", "role", "string", "only, leader or standby" },
    { "Cluster", "leader", "string|null", "name and address of the leader" },
    { "Cluster", "entry", "integer", "last entry of the log" },
    { "Cluster", "age_ms", "integer|null", "when a standby last had the whole log" },
    { "Cluster", "trouble", "string|null", "why it does not follow or write" },
    { "Cluster", "lease_ms", "integer|null", "after which another controller replaces a silent leader" },
    { "Cluster", "lease_left_ms", "integer|null", "how long this leader is certain to be the only one" },
    { "Cluster", "controllers", "Controller[]", "all controllers, as they report themselves" },
    { "Cluster", "etcd", "EtcdMember[]", "the endpoints of etcd" },
    { "Controller", "name", "string|null", "its name" },
    { "Controller", "role", "string", "leader or standby" },
    { "Controller", "api", "string|null", "where clients reach it" },
    { "Controller", "nodes", "string|null", "where nodes reach it" },
    { "Controller", "version", "string|null", "of mgpu" },
    { "Controller", "entry", "integer", "the last entry of the log that it has, some seconds old" },
    { "Controller", "trouble", "string|null", "why it does not follow or write" },
    { "EtcdMember", "url", "string|null", "the endpoint" },
    { "EtcdMember", "up", "boolean", "it answers" },
    { "EtcdMember", "used_bytes", "integer|null", "size of its database" },
    { "EtcdMember", "trouble", "string|null", "what is wrong with it" },
    { "Caller", "user", "string", "who you are" },
    { "Caller", "uid", "integer", "your number" },
    { "Caller", "role", "string", "your role" },
    { "Caller", "by", "string", "what identified you" },
    { "Caller", "scopes", "string[]", "what your token permits", true },
    { "Caller", "expires_at", "string|null", "end of the token or session" },
    { "Caller", "page", "string|null", "address of the web page" },
    { "Setting", "key", "string", "its name" },
    { "Setting", "value", "string|null", "in force" },
    { "Setting", "origin", "string", "where it is set" },
    { "Setting", "live", "boolean", "a reload is enough to change it" },
    { "Setting", "help", "string|null", "what it is for" },
    { "Settings", "settings", "Setting[]", "all of them" },
    { "Settings", "files", "string[]", "files that were read" },
    { "Settings", "warnings", "string[]", "what is odd about them" },
    { "Version", "version", "string", "of mgpud" },
    { "Version", "instance", "string", "this mgpud and its store" },
    { "Version", "epoch", "integer", "counts its starts" },
    { "Version", "store_full", "boolean", "the disk is nearly full" },
    { "Version", "store_lacks_inodes", "boolean", "files are what is missing" },
    { "Version", "store_check", "object|null", "the last check of the whole store" },
    { "Version", "longest_turn_us", "integer", "of the event loop, in the last ten minutes" },
    { "Version", "longest_stall_ms", "integer", "the latest end of a turn" },
    { "Limit", "name", "string", "its name" },
    { "Limit", "value", "integer", "the most that is accepted" },
    { "Limit", "unit", "string", "its unit" },
    { "Limit", "meaning", "string", "what is limited" },
    { "LimitList", "limits", "Limit[]", "all hard limits" },
    { "StepList", "steps", "object[]", "the steps of a job" },
};

#define MEMBERS (sizeof(members) / sizeof(members[0]))

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

json_t *answers_write_schemas(void)
{
    json_t *schemas = json_object();
    for (size_t i = 0; i < MEMBERS; i++) {
        const struct member *member = &members[i];
        json_t *schema = json_object_get(schemas, member->schema);
        if (schema == NULL) {
            schema = json_pack("{s:s,s:{s:{s:s}},s:[]}", "type", "object", "properties", "schema", "type",
                "string", "required");
            (void)json_object_set_new(schemas, member->schema, schema);
        }
        json_t *value = answers_write_type(member->type);
        (void)json_object_set_new(value, "description", json_string(member->help));
        (void)json_object_set_new(json_object_get(schema, "properties"), member->name, value);
        if (!member->is_optional)
            (void)json_array_append_new(json_object_get(schema, "required"), json_string(member->name));
    }
    return schemas;
}
