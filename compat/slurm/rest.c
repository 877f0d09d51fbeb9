/* SPDX-License-Identifier: MIT */
/*
 * Objects are those of squeue --json and sinfo --json. Jobs are submitted by sbatch and ended by scancel
 * (rest_submit.h), so that requests mean the same in both.
 */
#include "compat/slurm/rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/term/time_text.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/json_form.h"
#include "compat/slurm/nodes.h"
#include "compat/slurm/partitions.h"
#include "compat/slurm/rest_submit.h"
#include "compat/slurm/state.h"

#define PREFIX          "/slurm/v0.0.38/"
#define SLURM_ERROR     (-1)
#define INVALID_JOB     2017
#define INVALID_NODE    2018
#define SCRIPT_MISSING  2009
#define NO_ENVIRONMENT  9205
#define CONTROLLER_LOST 1800 // "Unable to contact slurm controller (connect failure)"
#define MINUTE_S        60

enum { OK = 200, BAD_REQUEST = 400, NOT_FOUND = 404, NOT_ALLOWED = 405, FAILED = 500 };

/* --- answers --- */

static json_t *page(void)
{
    json_t *body = json_object();
    (void)json_object_set_new(body, "meta", slurm_json_meta(false));
    (void)json_object_set_new(body, "errors", json_array());
    return body;
}

json_t *rest_error(int number, const char *error, const char *description)
{
    json_t *body = page();
    _cleanup_free_ char *shown = text_escape(description, sizeof(((struct error *)NULL)->message));
    (void)json_array_append_new(
        json_object_get(body, "errors"), json_pack("{s:s, s:i, s:s, s:s}", "description", shown,
                                             "error_number", number, "error", error, "source", "mgpu"));
    return body;
}

static int fail(json_t **ret, int status, int number, const char *error, const char *description)
{
    *ret = rest_error(number, error, description);
    return status;
}

static int fail_client(json_t **ret, const struct error *err)
{
    bool is_away = client_is_away(err);
    return fail(ret, FAILED, is_away ? CONTROLLER_LOST : SLURM_ERROR,
        is_away ? "Unable to contact slurm controller (connect failure)" : "Unspecified error", err->message);
}

/* --- reading --- */

static int ping(struct client *client, const char *name, json_t **ret)
{
    char host[256] = "";
    struct error err = { 0 };
    _cleanup_json_ json_t *version = NULL;
    bool is_up = client_get(client, API_PATH "/version", &version, &err) == 0;
    (void)gethostname(host, sizeof(host) - 1);
    *ret = page();
    (void)json_object_set_new(*ret, "pings",
        json_pack("[{s:s, s:s, s:i, s:s}]", "hostname", host, "ping", is_up ? "UP" : "DOWN", "status",
            is_up ? 0 : SLURM_ERROR, "mode", "primary"));
    return OK;
}

/* All jobs that squeue -t all lists, or one. */
static int jobs(struct client *client, const char *name, json_t **ret)
{
    _cleanup_slurm_ids_ struct slurm_ids ids = { 0 };
    _cleanup_json_ json_t *found = NULL;
    struct error err = { 0 };
    const struct slurm_query query = { .ids = &ids };
    json_t *list = json_array(), *job = NULL;
    int64_t now_ms = clock_wall_ms();
    size_t index = 0;
    bool is_valid = name == NULL || slurm_ids_parse(name, &ids, &err) == 0;
    int r = is_valid ? slurm_jobs_get(client, &query, &found, &err) : 0;
    json_array_foreach(found, index, job)
    {
        if (name != NULL || !slurm_job_is_old(job, now_ms))
            (void)json_array_append_new(list, slurm_json_job(job, now_ms));
    }
    if (r < 0 && (name == NULL || r != -ENOENT)) {
        json_decref(list);
        return fail_client(ret, &err);
    }
    if (name != NULL && json_array_size(list) == 0) {
        _cleanup_free_ char *sentence = xasprintf("Unable to find JobId=%.60s", name);
        json_decref(list);
        return fail(ret, FAILED, INVALID_JOB, "Invalid job id specified", sentence);
    }
    *ret = page();
    (void)json_object_set_new(*ret, "jobs", list);
    return OK;
}

static int nodes(struct client *client, const char *name, json_t **ret)
{
    _cleanup_json_ json_t *found = NULL, *partitions = NULL;
    struct error err = { 0 };
    json_t *list = json_array(), *node = NULL;
    size_t index = 0;
    int r = slurm_nodes_get(client, &found, &err);
    if (r == 0)
        r = slurm_partitions_get(client, &partitions, &err);
    json_array_foreach(found, index, node) if (name == NULL || field_is(node, "name", name))(void)
        json_array_append_new(list, slurm_json_node(node, partitions));
    *ret = page();
    (void)json_object_set_new(*ret, "nodes", list);
    if (r == 0 && (name == NULL || json_array_size(list) > 0))
        return OK;
    json_decref(*ret);
    return r < 0 ? fail_client(ret, &err)
                 : fail(ret, FAILED, INVALID_NODE, "Invalid node name specified", "there is no such node");
}

static json_t *minutes(const json_t *partition, const char *key)
{
    int64_t seconds = field_integer(partition, key, 0);
    return json_integer(seconds > 0 ? seconds / MINUTE_S : -1);
}

static json_t *write_partition(const json_t *partition)
{
    _cleanup_strings_ struct strings names = { 0 };
    size_t index = 0;
    json_t *name = NULL;
    json_array_foreach(json_object_get(partition, "nodes"), index, name)
        strings_add(&names, json_string_value(name));
    _cleanup_free_ char *list = hostlist_compress(&names);
    bool is_default = json_is_true(json_object_get(partition, "default"));
    const char *users = field_text(partition, "users");
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:s, s:I, s:o}", "name",
        field_text(partition, "name"), "nodes", list, "state", "UP", "flags",
        is_default ? json_pack("[s]", "default") : json_array(), "max_time_limit",
        minutes(partition, "max_time"), "default_time_limit", minutes(partition, "default_time"),
        "maximum_nodes_per_job", -1, "min nodes per job", 1, "allowed_groups", users != NULL ? users : "",
        "priority_tier", (json_int_t)field_integer(partition, "priority", 0), "total_nodes",
        json_integer((json_int_t)names.count));
}

static int partitions(struct client *client, const char *name, json_t **ret)
{
    _cleanup_json_ json_t *found = NULL;
    struct error err = { 0 };
    json_t *list = json_array(), *partition = NULL;
    size_t index = 0;
    int r = slurm_partitions_get(client, &found, &err);
    json_array_foreach(found, index, partition) if (name == NULL || field_is(partition, "name", name))(void)
        json_array_append_new(list, write_partition(partition));
    *ret = page();
    (void)json_object_set_new(*ret, "partitions", list);
    if (r == 0 && (name == NULL || json_array_size(list) > 0))
        return OK;
    json_decref(*ret);
    return r < 0 ? fail_client(ret, &err)
                 : fail(ret, FAILED, 2000, "Invalid partition name specified", "there is no such partition");
}

static int diag(struct client *client, const char *name, json_t **ret)
{
    static const char *const members[][2] = { { "jobs_pending", "PENDING" }, { "jobs_running", "RUNNING" },
        { "jobs_completed", "COMPLETED" }, { "jobs_canceled", "CANCELLED" }, { "jobs_failed", "FAILED" } };
    const struct slurm_query query = { .is_quick = true };
    _cleanup_json_ json_t *found = NULL;
    struct error err = { 0 };
    json_t *job = NULL, *counts = json_object();
    size_t index = 0;
    int r = slurm_jobs_get(client, &query, &found, &err);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_int_t count = 0;
        json_array_foreach(found, index, job) count += strcmp(slurm_state_of(job)->name, members[i][1]) == 0;
        (void)json_object_set_new(counts, members[i][0], json_integer(count));
    }
    (void)json_object_set_new(counts, "req_time", json_integer(clock_wall_ms() / 1000));
    *ret = page();
    (void)json_object_set_new(*ret, "statistics", counts);
    if (r == 0)
        return OK;
    json_decref(*ret);
    return fail_client(ret, &err);
}

/* There are none with a name: mgpu's reservations belong to users. */
static int reservations(struct client *client, const char *name, json_t **ret)
{
    *ret = page();
    (void)json_object_set_new(*ret, "reservations", json_array());
    return OK;
}

static int licenses(struct client *client, const char *name, json_t **ret)
{
    *ret = page();
    (void)json_object_set_new(*ret, "licenses", json_array());
    return OK;
}

/* --- changing --- */

/* Uses the error that a Slurm command printed, without the command's name. */
static int fail_command(json_t **ret, int number, const char *printed)
{
    const char *colon = strstr(printed, "error: ");
    _cleanup_free_ char *line = xstrdup(colon != NULL ? colon + strlen("error: ") : printed);
    line[strcspn(line, "\n")] = '\0';
    return fail(ret, FAILED, number, line, line);
}

static int submit(const struct rest_request *request, json_t **ret)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *body = json_loads(request->body, JSON_REJECT_DUPLICATES, NULL);
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_free_ char *out = NULL, *errors = NULL;
    const json_t *job = json_object_get(body, "job");
    const char *script = json_string_value(json_object_get(body, "script"));
    if (!json_is_object(body))
        return fail(
            ret, BAD_REQUEST, REST_FAIL_PARSING, "Failed parsing of the request", "the body is not JSON");
    if (job == NULL && json_array_size(json_object_get(body, "jobs")) == 1)
        job = json_array_get(json_object_get(body, "jobs"), 0);
    if (!json_is_object(job))
        return fail(ret, FAILED, REST_INVALID_JOBS, "Unexpected JSON structure of jobs",
            "one job is expected: there are no heterogeneous jobs");
    if (script == NULL)
        return fail(ret, FAILED, SCRIPT_MISSING, "Job script is missing", "\"script\" is missing");
    if (json_object_get(job, "environment") == NULL)
        return fail(ret, FAILED, NO_ENVIRONMENT, "environment must be set", "\"environment\" is missing");
    strings_add(&words, "sbatch");
    strings_add(&words, "--parsable");
    if (rest_options(job, &words, &err) < 0)
        return fail(ret, FAILED, REST_FAIL_PARSING, "Failed parsing of the request", err.message);
    if (rest_run(&words, script, job, &out, &errors) != 0)
        return fail_command(ret, SLURM_ERROR, errors != NULL ? errors : "");
    *ret = page();
    (void)json_object_set_new(*ret, "job_id", json_integer(strtoll(out, NULL, 10)));
    (void)json_object_set_new(*ret, "step_id", json_string("BATCH"));
    (void)json_object_set_new(*ret, "job_submit_user_msg", json_string(""));
    return OK;
}

/* The properties in the body, or in its member "job". */
static int change(struct client *client, const struct rest_request *request, const char *name, json_t **ret)
{
    struct error err = { 0 };
    _cleanup_json_ json_t *body = json_loads(request->body, JSON_REJECT_DUPLICATES, NULL);
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_free_ char *out = NULL, *errors = NULL;
    const json_t *inner = json_object_get(body, "job"), *properties = inner != NULL ? inner : body;
    if (!json_is_object(properties))
        return fail(
            ret, BAD_REQUEST, REST_FAIL_PARSING, "Failed parsing of the request", "the body is not JSON");
    if (jobs(client, name, ret) != OK)
        return FAILED;
    json_decref(*ret);
    strings_add(&words, "scontrol");
    strings_add(&words, "update");
    strings_take(&words, xasprintf("JobId=%s", name));
    if (rest_changes(properties, &words, &err) < 0)
        return fail(ret, FAILED, REST_FAIL_PARSING, "Failed parsing of the request", err.message);
    if (words.count == 3)
        return fail(
            ret, FAILED, REST_FAIL_PARSING, "Failed parsing of the request", "nothing is to be changed");
    if (rest_run(&words, "", NULL, &out, &errors) != 0)
        return fail_command(ret, SLURM_ERROR, errors != NULL ? errors : "");
    *ret = page();
    return OK;
}

/* "signal=TERM" in the query; without a signal the job is ended. */
static int end_job(struct client *client, const struct rest_request *request, const char *name, json_t **ret)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_free_ char *out = NULL, *errors = NULL;
    const char *signal = strncmp(request->query, "signal=", 7) == 0 ? request->query + 7 : NULL;
    if (jobs(client, name, ret) != OK) // scancel does not report unknown jobs
        return FAILED;
    json_decref(*ret);
    strings_add(&words, "scancel");
    if (signal != NULL)
        strings_take(&words, xasprintf("--signal=%.*s", (int)strcspn(signal, "&"), signal));
    strings_add(&words, "--");
    strings_add(&words, name);
    if (rest_run(&words, "", NULL, &out, &errors) != 0)
        return fail_command(ret, REST_INVALID_QUERY, errors != NULL ? errors : "");
    *ret = page();
    return OK;
}

/* --- routes --- */

static const struct {
    const char *word; // "jobs" for jobs and jobs/; followed by a name: "job/12"
    bool has_name;
    int (*get)(struct client *client, const char *name, json_t **ret);
} routes[] = {
    { "ping", false, ping },
    { "diag", false, diag },
    { "jobs", false, jobs },
    { "job/", true, jobs },
    { "nodes", false, nodes },
    { "node/", true, nodes },
    { "partitions", false, partitions },
    { "partition/", true, partitions },
    { "reservations", false, reservations },
    { "licenses", false, licenses },
};

static int answer(struct client *client, const struct rest_request *request, const char *path, json_t **ret)
{
    bool is_get = strcmp(request->method, "GET") == 0, is_delete = strcmp(request->method, "DELETE") == 0;
    if (strcmp(path, "job/submit") == 0)
        return strcmp(request->method, "POST") == 0
                   ? submit(request, ret)
                   : fail(ret, NOT_ALLOWED, REST_INVALID_QUERY, "Invalid query", "POST is required");
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        size_t length = strlen(routes[i].word);
        const char *name = path + length;
        if (strncmp(path, routes[i].word, length) != 0 ||
            (routes[i].has_name ? name[0] == '\0' || strchr(name, '/') != NULL
                                : name[0] != '\0' && strcmp(name, "/") != 0))
            continue;
        bool is_job = strcmp(routes[i].word, "job/") == 0;
        if (is_delete && is_job)
            return end_job(client, request, name, ret);
        if (is_job && strcmp(request->method, "POST") == 0)
            return change(client, request, name, ret);
        return is_get ? routes[i].get(client, routes[i].has_name ? name : NULL, ret)
                      : fail(ret, NOT_ALLOWED, REST_INVALID_QUERY, "Invalid query", "GET is required");
    }
    return fail(ret, NOT_FOUND, REST_INVALID_QUERY, "Invalid query", "there is no such path");
}

int rest_answer(const struct rest_request *request, json_t **ret)
{
    struct client client;
    if (strncmp(request->path, PREFIX, strlen(PREFIX)) != 0)
        return fail(ret, NOT_FOUND, REST_INVALID_QUERY, "Invalid query", "paths begin with " PREFIX);
    client_init(&client, NULL, NULL);
    int status = answer(&client, request, request->path + strlen(PREFIX), ret);
    client_clear(&client);
    return status;
}
