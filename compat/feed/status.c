/* SPDX-License-Identifier: MIT */
/* scheduler status: each GPU with its allocated fraction, then the queue with reasons. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/options/list.h"
#include "compat/feed/feed.h"

#define PERCENT 100.0

static char *render_id(const struct view *view, const json_t *gpu, enum color *color)
{
    return field_is_known(gpu, "label") ? field_shown(gpu, "label") : field_shown(gpu, "index");
}

static char *render_state(const struct view *view, const json_t *gpu, enum color *color)
{
    double part = field_number(gpu, "allocation", 0);
    if (field_is(gpu, "state", "used") || field_is(gpu, "state", "shared"))
        return xasprintf("BUSY (%.0f%%)", part * PERCENT);
    if (field_is(gpu, "state", "free"))
        return xstrdup(json_is_true(json_object_get(gpu, "avoided")) ? "BUSY (others)" : "AVAILABLE");
    if (field_is(gpu, "state", "paused"))
        return xstrdup("PAUSED");
    char *state = field_shown(gpu, "state");
    for (char *p = state; *p != '\0'; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
    return state;
}

static char *render_allocation(const struct view *view, const json_t *gpu, enum color *color)
{
    return xasprintf("%.2f", field_number(gpu, "allocation", 0));
}

static char *render_memory(const struct view *view, const json_t *gpu, enum color *color)
{
    double used = field_number(gpu, "memory_used_bytes", -1), all = field_number(gpu, "memory_bytes", 0);
    return used >= 0 && all > 0 ? xasprintf("%.0f%%", used / all * PERCENT) : xstrdup("-");
}

static char *render_load(const struct view *view, const json_t *gpu, enum color *color)
{
    double load = field_number(gpu, "utilization", -1);
    return load >= 0 ? xasprintf("%.0f%%", load * PERCENT) : xstrdup("-");
}

static const struct list_column gpu_columns_[] = {
    { "id", "GPU", "its number", "index", true, 0, render_id },
    { "status", "STATUS", "AVAILABLE, BUSY, PAUSED, ...", NULL, false, 0, render_state },
    { "allocation", "ALLOCATION", "allocated part", "allocation", true, 0, render_allocation },
    { "memory", "MEMORY", "memory used", NULL, true, 0, render_memory },
    { "load", "LOAD", "utilization", NULL, true, 0, render_load },
    { 0 },
};

static const struct list_kind gpu_kind = {
    .member = "gpus",
    .columns = gpu_columns_,
    .normal = "id,status,allocation,memory,load",
    .wide = "id,status,allocation,memory,load",
};

static char *render_priority(const struct view *view, const json_t *job, enum color *color)
{
    return xasprintf("%lld", -(long long)field_integer(job, "priority", 0));
}

static char *render_need(const struct view *view, const json_t *job, enum color *color)
{
    double share = field_number(job, "gpu_share", 0);
    return xasprintf("%g", share > 0 ? share / 1000 : field_number(job, "gpus", 0));
}

static char *render_why(const struct view *view, const json_t *job, enum color *color)
{
    return field_shown(job, field_is_known(job, "reason_text") ? "reason_text" : "message");
}

static const struct list_column queue_columns[] = {
    { "id", "JOB", "its number", "id", true, 0, NULL },
    { "state", "STATE", "queued, running, failed, ...", "state", false, 0, NULL },
    { "priority", "PRIORITY", "lowest runs first", NULL, true, 0, render_priority },
    { "need", "GPUS", "GPUs needed", NULL, true, 0, render_need },
    { "name", "SCRIPT", "its command", "name", false, 2, NULL },
    { "why", "WHY", "why it waits, or why it failed", NULL, false, 1, render_why },
    { 0 },
};

static const struct list_kind queue_kind = {
    .member = "jobs",
    .columns = queue_columns,
    .normal = "id,state,priority,need,name,why",
    .wide = "id,state,priority,need,name,why",
};

static void add_allocations(json_t *gpus, const json_t *jobs)
{
    size_t index = 0;
    json_t *gpu = NULL;
    const char *node = field_text(json_array_get(gpus, 0), "node");
    bool is_only_node = true;
    json_array_foreach(gpus, index, gpu) is_only_node = is_only_node && field_is(gpu, "node", node);
    json_array_foreach(gpus, index, gpu)
    {
        (void)json_object_set_new(gpu, "allocation", json_real(feed_gpus_allocation(jobs, gpu)));
        if (!is_only_node)
            (void)json_object_set_new(gpu, "label",
                json_sprintf("%s:%d", field_text(gpu, "node"), (int)field_integer(gpu, "index", 0)));
    }
}

/* Of ended jobs, only failed ones are shown. */
static void leave_out_ended(json_t *jobs)
{
    for (size_t i = json_array_size(jobs); i > 0; i--) {
        const json_t *job = json_array_get(jobs, i - 1);
        if (field_is(job, "state", "done") || field_is(job, "state", "cancelled"))
            (void)json_array_remove(jobs, i - 1);
    }
}

/* Ended jobs no longer hold any GPUs. */
static json_t *pick_holders(const json_t *jobs)
{
    json_t *holders = json_array(), *job = NULL;
    size_t index = 0;
    json_array_foreach(
        jobs, index, job) if (field_is(job, "state", "starting") || field_is(job, "state", "running") ||
                              field_is(job, "state", "stopping"))(void) json_array_append(holders, job);
    return holders;
}

static void print_thresholds(const json_t *config)
{
    const char *memory = "?", *load = "?";
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(json_object_get(config, "settings"), index, row)
    {
        if (field_is(row, "key", "share-max-memory") && field_text(row, "value") != NULL)
            memory = field_text(row, "value");
        if (field_is(row, "key", "share-max-load") && field_text(row, "value") != NULL)
            load = field_text(row, "value");
    }
    (void)printf("\nA GPU above %s of its memory or %s of load gets no further job. See mgpu why JOB and "
                 "mgpu logs JOB for a job; for lines of the file: " FEED_LOG_FILE "\n",
        memory, load);
}

static int print_all(
    const struct call *call, json_t *gpus, json_t *jobs, const json_t *config, struct error *err)
{
    struct screen screen;
    size_t count = json_array_size(json_object_get(jobs, "jobs"));
    screen_open(&screen, STDOUT_FILENO, call->color);
    int r = list_print(call, &gpu_kind, &screen, gpus, stdout, err);
    if (r < 0)
        return r;
    (void)printf("\nQueue: %zu job%s\n", count, count == 1 ? "" : "s");
    if (count > 0)
        r = list_print(call, &queue_kind, &screen, jobs, stdout, err);
    if (r < 0)
        return r;
    print_thresholds(config);
    return EXIT_OK;
}

static int status(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *gpus = NULL, *jobs = NULL, *config = NULL, *holders = NULL;
    int r = client_get(&call->client, API_PATH "/gpus", &gpus, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/jobs", &jobs, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/config", &config, err);
    if (r < 0)
        return r;
    json_t *list = json_object_get(jobs, "jobs");
    holders = pick_holders(list);
    add_allocations(json_object_get(gpus, "gpus"), holders);
    leave_out_ended(list);
    if (!call->is_json)
        return print_all(call, gpus, jobs, config, err);
    _cleanup_json_ json_t *both =
        json_pack("{s:O, s:O}", "gpus", json_object_get(gpus, "gpus"), "jobs", list);
    show_json_page(both, stdout);
    return EXIT_OK;
}

const struct command feed_status_command = {
    .name = "status",
    .usage = "",
    .help = "Show the GPUs, the queue, and why jobs wait",
    .takes_nothing = true,
    .run = status,
};
