/* SPDX-License-Identifier: MIT */
/*
 * tui: the dashboard of the server used by srun. To users of a server without root, which does not run their
 * jobs, mgpud shows only numbers; for them the dashboard is a list.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/follow/watch.h"
#include "cli/options/list.h"
#include "cli/top/verb.h"
#include "cli/verbs/verbs.h"
#include "compat/personalities/personality.h"
#include "compat/personalities/srun_server.h"

#define INTERVAL_MS 1000
#define ANSWER_MS   10000

static int get(struct call *call, const char *path, json_t **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    const struct http_request request = { .method = "GET", .path = path };
    int r = srun_server_connect(call, &http, err);
    if (r == 0)
        r = http_client_request(http, &request, ANSWER_MS, err);
    if (r < 0)
        return r;
    const struct http_answer *answer = http_client_answer(http);
    if (answer->status != 200)
        return client_problem(answer, err);
    *ret = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    return json_is_object(*ret) ? 0 : error_set(err, -EPROTO, "the answer to GET %s is not JSON", path);
}

static bool is_guest(struct call *call)
{
    struct error refusal = { 0 };
    _cleanup_json_ json_t *nodes = NULL;
    return get(call, API_PATH "/nodes", &nodes, &refusal) == -EPERM;
}

static const struct list_column columns[] = {
    { "number", "ID", "its number", "number", true, 0, NULL },
    { "status", "STATE", "queued or running", "status", false, 0, NULL },
    { "num_gpus", "GPUS", "how many GPUs", "num_gpus", true, 0, NULL },
    { "gpus", "GPU_IDS", "their numbers", "gpus", false, 0, NULL },
    { 0 },
};

static const struct list_kind kind = {
    .member = "jobs", .columns = columns, .normal = "number,status,num_gpus,gpus"
};

static int print_numbers(void *arg, FILE *out, struct error *err)
{
    struct call *call = arg;
    struct screen screen;
    _cleanup_json_ json_t *status = NULL, *jobs = NULL;
    int r = get(call, "/status", &status, err);
    if (r == 0)
        r = get(call, "/jobs", &jobs, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    (void)fprintf(out,
        "%" PRId64 " GPUs, %" PRId64 " allocated; jobs: %" PRId64 " running, %" PRId64 " queued\n\n",
        field_integer(status, "gpus_total", 0), field_integer(status, "gpus_allocated", 0),
        field_integer(status, "jobs_running", 0), field_integer(status, "jobs_queued", 0));
    r = list_print(call, &kind, &screen, jobs, out, err);
    if (screen.is_tty)
        (void)fputs("\nThe server belongs to another user and shows only numbers. q quits\n", out);
    return r;
}

static int tui(struct call *call, int argc, char **argv, struct error *err)
{
    const char *url = getenv(SRUN_URL_VARIABLE);
    if (is_guest(call))
        return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
                   ? watch_run(call, INTERVAL_MS, print_numbers, call, err)
                   : print_numbers(call, stdout, err);
    if (url != NULL && url[0] != '\0')
        call->client.asked_path = url;
    return command_top.run(call, argc, argv, err);
}

static const struct command tui_command = {
    .name = "tui",
    .usage = "[OPTIONS] [PLACE|JOB]",
    .help = "Watch GPUs, jobs and the server on the whole screen",
    .detail = "q quits. The server is the one in " SRUN_URL_VARIABLE ", or the one on this machine.",
    .tables = { top_rows },
    .options_size = sizeof(struct top_options),
    .run = tui,
};

const struct personality personality_tui = {
    .name = "tui",
    .command = &tui_command,
    .server = "run_server",
    .words = srun_words,
};
