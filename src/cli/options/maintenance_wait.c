/* SPDX-License-Identifier: MIT */
/* Waits job by job: after the end of each, the remaining ones are queried. A requeued job is not running
 * there either. */
#include "cli/options/maintenance_wait.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/options/talk.h"
#include "wire/limits.h"

#define RELEASE_LOOK_MS 100
#define RELEASE_MOST_MS 90000 // a driver may open its GPUs first, for a minute each

#define TIMEOUT_S 10 // of one request; then it is asked again

/* The id of a job that is there, 0: none is; or a negative errno. */
typedef int find_fn(struct call *call, const void *where, int64_t *ret_job, struct error *err);

static bool is_named(const json_t *names, const json_t *gpu)
{
    size_t index = 0;
    const json_t *name = NULL;
    const char *node = field_text(gpu, "node");
    _cleanup_free_ char *number = xasprintf("%" PRId64, field_integer(gpu, "index", -1));
    _cleanup_free_ char *full = xasprintf("%s:%s", node != NULL ? node : "", number);
    json_array_foreach(names, index, name)
    {
        const char *text = json_string_value(name);
        if (text != NULL && (strcmp(text, number) == 0 || strcmp(text, full) == 0))
            return true;
    }
    return false;
}

static int find_on_gpus(struct call *call, const void *where, int64_t *ret_job, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    const json_t *gpu = NULL;
    int r = client_get(&call->client, API_PATH "/gpus", &answer, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(answer, "gpus"), index, gpu)
    {
        const json_t *job = json_array_get(json_object_get(gpu, "jobs"), 0);
        if (job != NULL && is_named(where, gpu)) {
            *ret_job = field_integer(job, "id", 0);
            return 0;
        }
    }
    *ret_job = 0;
    return 0;
}

static bool is_on(const json_t *job, const char *node)
{
    size_t index = 0;
    const json_t *grant = NULL;
    json_array_foreach(json_object_get(job, "granted"), index, grant)
    {
        if (field_is(grant, "node", node))
            return true;
    }
    return field_is(job, "node", node);
}

static int find_on_node(struct call *call, const void *where, int64_t *ret_job, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *path =
        xasprintf(API_PATH "/jobs?state=starting,running,stopping&limit=%d", LIMIT_LIST_JOBS);
    size_t index = 0;
    const json_t *job = NULL;
    int r = client_get(&call->client, path, &answer, err);
    if (r < 0)
        return r;
    *ret_job = 0;
    json_array_foreach(json_object_get(answer, "jobs"), index, job)
    {
        if (is_on(job, where))
            *ret_job = field_integer(job, "id", 0);
    }
    return 0;
}

/* Each job once; interrupting the wait undoes nothing. */
static void report_wait(const struct call *call, int64_t job, int64_t *told)
{
    if (job == *told || call->is_quiet || isatty(STDERR_FILENO) != 1)
        return;
    bool is_first = *told == 0;
    *told = job;
    talk_line("waiting for the end of job %" PRId64 "%s", job,
        is_first ? "; no new jobs start there. Ctrl-C ends the wait alone" : "");
}

static int wait_until_none(struct call *call, find_fn *find, const void *where, struct error *err)
{
    int64_t job = 0, told = 0;
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    int r = find(call, where, &job, err);
    while (r == 0 && job != 0) {
        report_wait(call, job, &told);
        _cleanup_free_ char *path =
            xasprintf(API_PATH "/jobs/%" PRId64 "/wait?states=done,queued&timeout=%d", job, TIMEOUT_S);
        r = client_get(&call->client, path, NULL, err);
        if (r == 0 || r == -ETIME)
            r = find(call, where, &job, err);
    }
    return r;
}

int maintenance_wait_gpus(struct call *call, const json_t *names, struct error *err)
{
    return wait_until_none(call, find_on_gpus, names, err);
}

/* 1 when all of them are, 0 when one is not yet. */
static int check_released(struct call *call, const json_t *names, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    const json_t *gpu = NULL;
    bool is_done = true;
    int r = client_get(&call->client, API_PATH "/gpus", &answer, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(answer, "gpus"), index, gpu)
    {
        if (!is_named(names, gpu) || field_is(gpu, "state", "released"))
            continue;
        is_done = false;
        if (!field_is(gpu, "state", "node_down"))
            continue;
        _cleanup_free_ char *node = field_shown(gpu, "node");
        (void)error_set(
            err, -EHOSTDOWN, "node %s is not connected: the GPUs it has open are not known", node);
        return error_hint(err, "its GPUs are released once it connects: see mgpu gpus");
    }
    return is_done;
}

int maintenance_wait_released(struct call *call, const json_t *names, struct error *err)
{
    const struct timespec pause_time = { .tv_nsec = RELEASE_LOOK_MS * 1000000L };
    int64_t until_ms = clock_boot_ms() + RELEASE_MOST_MS;
    int r = 0;
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    while ((r = check_released(call, names, err)) == 0 && clock_boot_ms() < until_ms)
        (void)nanosleep(&pause_time, NULL);
    if (r != 0)
        return r < 0 ? r : 0;
    (void)error_set(
        err, -ETIMEDOUT, "mgpu still has one of these GPUs open after %d s", RELEASE_MOST_MS / 1000);
    return error_hint(err,
        "the driver may hang in the node's process mgpu-gpus, or its mgpu-agent is older than this version");
}

int maintenance_wait_node(struct call *call, const char *node, struct error *err)
{
    return wait_until_none(call, find_on_node, node, err);
}
