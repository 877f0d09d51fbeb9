/* SPDX-License-Identifier: MIT */
/*
 * Texts come from the fields of squeue and sacct. Members that have no meaning here are omitted rather than
 * invented; programs that read --json look members up by name.
 */
#include "compat/slurm/json_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/time_text.h"
#include "compat/slurm/fields.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/partitions.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/state.h"

#define SECOND_MS 1000
#define MINUTE_S  60
#define MIB_SHIFT 20

static void set_text(json_t *object, const char *key, const char *text)
{
    bool is_none = text == NULL || strcmp(text, "(null)") == 0 || strcmp(text, "N/A") == 0;
    (void)json_object_set_new(object, key, json_string(is_none ? "" : text));
}

static void set_field(json_t *object, const char *key, slurm_text_fn *text, const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *value = text(job, now_ms);
    set_text(object, key, value);
}

static void set_number(
    json_t *object, const char *key, slurm_text_fn *text, const json_t *job, int64_t now_ms)
{
    _cleanup_free_ char *value = text(job, now_ms);
    (void)json_object_set_new(object, key, json_integer(strtoll(value, NULL, 10)));
}

/* Seconds since 1970; 0: unknown. */
static json_t *moment(const json_t *job, const char *key)
{
    const char *text = field_text(job, key);
    return json_integer(text != NULL ? time_parse(text) / SECOND_MS : 0);
}

/* --- squeue --- */

static const struct {
    const char *key;
    slurm_text_fn *text;
} texts[] = {
    { "account", slurm_text_account },
    { "batch_host", slurm_text_batch_host },
    { "cluster", slurm_text_cluster },
    { "command", slurm_text_command },
    { "comment", slurm_text_comment },
    { "dependency", slurm_text_dependency },
    { "job_state", slurm_text_state },
    { "name", slurm_text_name },
    { "nodes", slurm_text_nodes },
    { "partition", slurm_text_partition },
    { "qos", slurm_text_qos },
    { "standard_output", slurm_text_output },
    { "state_reason", slurm_text_reason },
    { "tres_per_node", slurm_text_gres },
    { "tres_req_str", slurm_text_tres },
    { "user_name", slurm_text_user },
};

static const struct {
    const char *key;
    slurm_text_fn *text;
} numbers[] = {
    { "cpus", slurm_text_cpus },
    { "job_id", slurm_text_raw_id },
    { "node_count", slurm_text_node_count },
    { "priority", slurm_text_priority },
    { "restart_cnt", slurm_text_restarts },
    { "tasks", slurm_text_tasks },
    { "user_id", slurm_text_uid },
};

static const char *const times[][2] = { { "submit_time", "submitted_at" }, { "start_time", "started_at" },
    { "end_time", "ended_at" }, { "eligible_time", "begin" }, { "suspend_time", "suspended_at" },
    { "deadline", "deadline" } };

/* For a waiting job, when it is expected to start; a parked job is suspended in Slurm's terms. */
static void set_times(json_t *object, const json_t *job)
{
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        (void)json_object_set_new(object, times[i][0], moment(job, times[i][1]));
    if (field_text(job, "started_at") == NULL)
        (void)json_object_set_new(object, "start_time", moment(job, "eta"));
    if (!field_is_known(job, "suspended_at"))
        (void)json_object_set_new(object, "suspend_time", moment(job, "parked_at"));
}

static void set_array(json_t *object, const json_t *job)
{
    bool is_element = field_is_known(job, "array_job"), is_array = field_is_known(job, "array_left");
    (void)json_object_set_new(object, "array_job_id",
        json_integer(is_element ? field_integer(job, "array_job", 0)
                     : is_array ? field_integer(job, "id", 0)
                                : 0));
    (void)json_object_set_new(object, "array_task_id",
        is_element ? json_integer(field_integer(job, "array_index", 0)) : json_null());
    set_text(object, "array_task_string", field_text(job, "array_left"));
}

json_t *slurm_json_job(const json_t *job, int64_t now_ms)
{
    json_t *object = json_object();
    int code = 0, number = 0;
    double limit = field_number(job, "time_limit", 0), memory = field_number(job, "memory", 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        set_field(object, texts[i].key, texts[i].text, job, now_ms);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        set_number(object, numbers[i].key, numbers[i].text, job, now_ms);
    set_times(object, job);
    set_array(object, job);
    slurm_exit_of(job, &code, &number);
    (void)json_object_set_new(object, "exit_code", json_integer(code << 8 | number));
    (void)json_object_set_new(
        object, "time_limit", limit > 0 ? json_integer((json_int_t)limit / MINUTE_S) : json_null());
    (void)json_object_set_new(
        object, "memory_per_node", memory > 0 ? json_integer((json_int_t)memory >> MIB_SHIFT) : json_null());
    (void)json_object_set_new(object, "batch_flag",
        json_boolean(
            slurm_job_note(job, "kind") != NULL && strcmp(slurm_job_note(job, "kind"), "sbatch") == 0));
    (void)json_object_set_new(
        object, "requeue", json_boolean(json_is_true(json_object_get(job, "requeue_on_node_lost"))));
    (void)json_object_set_new(object, "hold", json_boolean(field_is_known(job, "hold")));
    return object;
}

/* --- sacct --- */

static json_t *write_exit(const json_t *job)
{
    int code = 0, number = 0;
    slurm_exit_of(job, &code, &number);
    json_t *object = json_object(), *killed = json_object();
    set_text(object, "status", number != 0 ? "SIGNALED" : code != 0 ? "ERROR" : "SUCCESS");
    (void)json_object_set_new(object, "return_code", json_integer(code));
    if (number != 0) {
        (void)json_object_set_new(killed, "signal_id", json_integer(number));
        (void)json_object_set(object, "signal", killed);
    }
    json_decref(killed);
    return object;
}

static json_t *write_time(const json_t *job)
{
    json_t *object = json_object();
    double limit = field_number(job, "time_limit", 0);
    (void)json_object_set_new(
        object, "elapsed", json_integer((json_int_t)field_number(job, "run_seconds", 0)));
    (void)json_object_set_new(object, "start", moment(job, "started_at"));
    (void)json_object_set_new(object, "end", moment(job, "ended_at"));
    (void)json_object_set_new(object, "submission", moment(job, "submitted_at"));
    (void)json_object_set_new(
        object, "limit", limit > 0 ? json_integer((json_int_t)limit / MINUTE_S) : json_null());
    return object;
}

static json_t *write_step(const json_t *step, int64_t now_ms)
{
    json_t *object = json_object(), *name = json_object(), *nodes = json_object(), *tasks = json_object();
    set_field(name, "id", slurm_text_job_id, step, now_ms);
    set_field(name, "name", slurm_text_name, step, now_ms);
    set_number(nodes, "count", slurm_text_node_count, step, now_ms);
    set_field(nodes, "range", slurm_text_nodes, step, now_ms);
    set_number(tasks, "count", slurm_text_step_tasks, step, now_ms);
    (void)json_object_set_new(object, "step", name);
    (void)json_object_set_new(object, "nodes", nodes);
    (void)json_object_set_new(object, "tasks", tasks);
    (void)json_object_set_new(object, "exit_code", write_exit(step));
    (void)json_object_set_new(object, "time", write_time(step));
    set_field(object, "state", slurm_text_state, step, now_ms);
    return object;
}

json_t *slurm_json_account(const json_t *job, const json_t *steps, int64_t now_ms)
{
    static const struct {
        const char *key;
        slurm_text_fn *text;
    } rows[] = { { "account", slurm_text_account }, { "cluster", slurm_text_cluster },
        { "group", slurm_text_group }, { "name", slurm_text_name }, { "nodes", slurm_text_nodes },
        { "partition", slurm_text_partition }, { "qos", slurm_text_qos }, { "user", slurm_text_user } };
    json_t *object = json_object(), *state = json_object(), *list = json_array(), *array = json_object(),
           *step = NULL;
    size_t index = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        set_field(object, rows[i].key, rows[i].text, job, now_ms);
    set_number(object, "job_id", slurm_text_raw_id, job, now_ms);
    set_number(object, "allocation_nodes", slurm_text_node_count, job, now_ms);
    set_number(object, "priority", slurm_text_priority, job, now_ms);
    (void)json_object_set_new(array, "job_id", json_integer(field_integer(job, "array_job", 0)));
    (void)json_object_set_new(array, "task_id",
        field_is_known(job, "array_job") ? json_integer(field_integer(job, "array_index", 0)) : json_null());
    set_field(state, "current", slurm_text_state, job, now_ms);
    set_field(state, "reason", slurm_text_reason, job, now_ms);
    json_array_foreach(steps, index, step)(void) json_array_append_new(list, write_step(step, now_ms));
    (void)json_object_set_new(object, "array", array);
    (void)json_object_set_new(object, "state", state);
    (void)json_object_set_new(object, "exit_code", write_exit(job));
    (void)json_object_set_new(object, "time", write_time(job));
    (void)json_object_set_new(object, "steps", list);
    return object;
}

/* --- sinfo --- */

json_t *slurm_json_node(const json_t *node, const json_t *partitions)
{
    json_t *object = json_object(), *names = json_array(), *partition = NULL;
    size_t index = 0;
    const char *name = field_text(node, "name"), *state = slurm_node_state(node);
    bool is_drained = strncmp(state, "drain", 5) == 0;
    _cleanup_free_ char *gres = slurm_node_gres(node);
    _cleanup_free_ char *used = slurm_node_gres_used(node, false);
    _cleanup_free_ char *tres = slurm_node_tres(node, false), *tres_used = slurm_node_tres(node, true);
    int64_t cpus = field_integer(node, "cpus", 0), cpus_used = field_integer(node, SLURM_NODE_CPUS, 0);
    json_array_foreach(partitions, index, partition) if (slurm_partition_has(partition, name))(void)
        json_array_append(names, json_object_get(partition, "name"));
    set_text(object, "name", name);
    set_text(object, "hostname", name);
    set_text(object, "address", name);
    set_text(object, "state",
        !is_drained                               ? state
        : field_integer(node, "gpus_used", 0) > 0 ? "mixed"
                                                  : "idle");
    (void)json_object_set_new(object, "state_flags", is_drained ? json_pack("[s]", "DRAIN") : json_array());
    set_text(object, "reason", field_text(node, "reason"));
    set_text(object, "gres", gres != NULL ? gres : "");
    set_text(object, "gres_used", used != NULL ? used : "");
    set_text(object, "tres", tres);
    set_text(object, "tres_used", tres_used);
    (void)json_object_set_new(object, "cpus", json_integer(cpus));
    (void)json_object_set_new(object, "alloc_cpus", json_integer(cpus_used));
    (void)json_object_set_new(object, "idle_cpus", json_integer(cpus - cpus_used));
    (void)json_object_set_new(
        object, "alloc_memory", json_integer(field_integer(node, SLURM_NODE_MEMORY, 0) >> MIB_SHIFT));
    (void)json_object_set_new(
        object, "real_memory", json_integer(field_integer(node, "memory_bytes", 0) >> MIB_SHIFT));
    (void)json_object_set_new(object, "partitions", names);
    return object;
}

/* --- the whole --- */

json_t *slurm_json_meta(bool is_account)
{
    return json_pack("{s:{s:s, s:s}, s:{s:{s:i, s:i, s:i}, s:s}}", "plugin", "type",
        is_account ? "openapi/dbv0.0.38" : "openapi/v0.0.38", "name",
        is_account ? "Slurm OpenAPI DB v0.0.38" : "Slurm OpenAPI v0.0.38", "Slurm", "version", "major", 22,
        "micro", 8, "minor", 5, "release", SLURM_VERSION);
}

void slurm_json_print(const char *member, json_t *list, bool is_account)
{
    json_t *page = json_object();
    (void)json_object_set_new(page, "meta", slurm_json_meta(is_account));
    (void)json_object_set_new(page, "errors", json_array());
    (void)json_object_set_new(page, member, list);
    (void)json_dumpf(page, stdout, JSON_INDENT(2));
    (void)putchar('\n');
    json_decref(page);
}

int slurm_json_print_jobs(const json_t *jobs)
{
    json_t *list = json_array(), *job = NULL;
    size_t index = 0;
    int64_t now_ms = clock_wall_ms();
    json_array_foreach(jobs, index, job)(void) json_array_append_new(list, slurm_json_job(job, now_ms));
    slurm_json_print("jobs", list, false);
    return 0;
}
