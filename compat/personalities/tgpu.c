/* SPDX-License-Identifier: MIT */
/* tgpu: submit, list, status, cancel; four states and two statistics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/system_mgpud.h"
#include "cli/api/exit_code.h"
#include "cli/options/list.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"
#include "wire/http_client.h"

#define COMMAND_PREFIX "cmd="
#define STATISTICS     API_PATH "/history?by=user&since=7d"

/* --- submit --- */

static int start_server(struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    int status = 0;
    strings_add(&words, "mgpud");
    strings_add(&words, "--detach");
    strings_add(&words, "--listen=none");
    talk_line("no server runs on this machine: starting yours (mgpud --detach), which keeps running");
    pid_t pid = fork();
    if (pid < 0)
        return error_set_errno(err, -errno, "cannot start mgpud");
    if (pid == 0) {
        struct error own = { 0 };
        (void)compat_execute(&words, &own);
        talk_error("submit", &own);
        _exit(EXIT_UNREACHABLE);
    }
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set_errno(err, -errno, "cannot wait for mgpud");
    return status == 0 ? 0 : error_set(err, -EHOSTDOWN, "mgpud did not start: its message is above");
}

/*
 * The original's commands start no server, so a user's first submit does, unless a server was named or this
 * machine has one for all users. Root must decide: its server would be for all users.
 */
static int ensure_server(struct call *call, struct error *err)
{
    struct client *client = &call->client;
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    if (geteuid() == 0 || client->asked_path != NULL || client->host != NULL || system_mgpud_trace() != NULL)
        return 0;
    client->is_impatient = true; // an unreachable one is not waited for
    int r = client_connect(client, &http, NULL);
    client->is_impatient = false;
    return r == -EHOSTDOWN ? start_server(err) : 0; // other failures are reported by the submit
}

/* cmd="python train.py" is text for a shell. */
static int submit(struct call *call, int argc, char **argv, struct error *err)
{
    size_t prefix = strlen(COMMAND_PREFIX);
    int r = argc > 0 ? ensure_server(call, err) : 0;
    if (r < 0)
        return r;
    if (argc == 1 && strncmp(argv[0], COMMAND_PREFIX, prefix) == 0)
        argv[0] += prefix;
    return command_submit.run(call, argc, argv, err);
}

static const struct command tgpu_submit = {
    .name = "submit",
    .usage = "[--gpus N] [--priority N] [OPTIONS] [--] cmd=\"COMMAND\"|COMMAND [ARGUMENT...]|SPEC.yaml",
    .help = "Queue a command, or the job of a file, and print its number",
    .detail = "A file has the keys command, num_gpus and priority, and other options by their names.\n"
              "The output of job N is in " COMPAT_LOG "; mgpu logs N shows it.",
    .makes_jobs = true,
    .tables = { submit_rows },
    .options_size = sizeof(struct submit_options),
    .stops_at_operand = true,
    .run = submit,
    .clear = submit_options_clear,
};

/* --- list --- */

/* queued, running, finished, failed; and cancelled, which is none of these. */
static const char *state_word(const json_t *job)
{
    static const struct {
        const char *state, *word;
    } words[] = { { "queued", "queued" }, { "starting", "running" }, { "running", "running" },
        { "stopping", "running" }, { "done", "finished" }, { "failed", "failed" },
        { "cancelled", "cancelled" } };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (field_is(job, "state", words[i].state))
            return words[i].word;
    return "?";
}

static char *render_state(const struct view *view, const json_t *job, enum color *color)
{
    return xstrdup(state_word(job));
}

#define SHELL "/bin/sh -c '"

/* The value that was typed after cmd=, from the command line that started the shell: one word in single
 * quotes, each quote in it written as '\\''. A line that was cut has no end. */
static char *render_command(const struct view *view, const json_t *job, enum color *color)
{
    char *shown = field_shown(job, "command"), *out = shown;
    size_t length = strlen(shown), prefix = strlen(SHELL);
    if (strncmp(shown, SHELL, prefix) != 0)
        return shown;
    if (length > prefix && shown[length - 1] == '\'')
        shown[length - 1] = '\0';
    for (const char *p = shown + prefix; *p != '\0'; p++) {
        *out++ = *p;
        if (strncmp(p, "'\\''", 4) == 0)
            p += 3;
    }
    *out = '\0';
    return shown;
}

static const struct list_column list_columns[] = {
    { "id", "ID", "its number", "id", true, 0, NULL },
    { "user", "USER", "its owner", "user", false, 0, NULL },
    { "state", "STATE", "queued, running, finished, failed or cancelled", NULL, false, 0, render_state },
    { "gpus", "GPUS", "GPUs requested", "gpus", true, 0, NULL },
    { "priority", "PRIORITY", "priority, higher runs first", "priority", true, 0, NULL },
    { "exit", "EXIT", "its exit status", "exit_code", true, 0, NULL },
    { "command", "COMMAND", "its command line", "command", false, 1, render_command },
    { 0 },
};

static const struct list_kind list_kind = {
    .member = "jobs",
    .columns = list_columns,
    .normal = "id,user,state,gpus,priority,exit,command",
    .wide = "id,user,state,gpus,priority,exit,command",
};

static int list(struct call *call, int argc, char **argv, struct error *err)
{
    return list_run(call, &list_kind, API_PATH "/jobs?all=1", err);
}

static const struct command tgpu_list = {
    .name = "list",
    .usage = "[OPTIONS]",
    .help = "List all jobs, including ended ones",
    .detail = "The output of job N (column ID) is in " COMPAT_LOG " of its owner; mgpu logs N shows it.",
    .tables = { call_list_rows },
    .takes_nothing = true,
    .list = &list_kind,
    .run = list,
};

/* --- status --- */

static void print_counts(const json_t *jobs)
{
    static const char *const words[] = { "queued", "running", "finished", "failed", "cancelled" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t index = 0, count = 0;
        json_t *job = NULL;
        json_array_foreach(jobs, index, job) count += strcmp(state_word(job), words[i]) == 0;
        (void)printf("%s%zu %s", i == 0 ? "jobs:        " : ", ", count, words[i]);
    }
    (void)putchar('\n');
}

/* For known jobs: from the submission to the first start. */
static void print_waits(const json_t *jobs)
{
    size_t index = 0, count = 0;
    double sum = 0, most = 0;
    char mean_text[32], most_text[32];
    json_t *job = NULL;
    json_array_foreach(jobs, index, job)
    {
        if (!field_is_known(job, "started_at") || !field_is_known(job, "wait_seconds"))
            continue;
        double wait = field_number(job, "wait_seconds", 0);
        sum += wait, count++;
        most = wait > most ? wait : most;
    }
    if (count == 0) {
        (void)puts("wait time:   no job has started yet");
        return;
    }
    format_duration((int64_t)(sum * 1000 / (double)count), mean_text, sizeof(mean_text));
    format_duration((int64_t)(most * 1000), most_text, sizeof(most_text));
    (void)printf("wait time:   %s on average, %s at most, of %zu job%s\n", mean_text, most_text, count,
        count == 1 ? "" : "s");
}

/* The number of GPUs that jobs have, and the used fraction of those they had in the last week. */
static void print_use(const json_t *gpus, const json_t *sums)
{
    size_t index = 0, count = 0, taken = 0;
    double used = 0, measured = 0;
    json_t *row = NULL;
    json_array_foreach(gpus, index, row)
    {
        count++;
        taken += json_array_size(json_object_get(row, "jobs")) > 0;
    }
    (void)printf("GPUs:        %zu of %zu in use\n", taken, count);
    json_array_foreach(sums, index, row)
    {
        used += field_number(row, "gpu_seconds_used", 0);
        measured += field_number(row, "gpu_seconds_measured", 0);
    }
    if (measured > 0)
        (void)printf(
            "utilization: %.0f %% of the GPU time of jobs of the last 7 days\n", used / measured * 100);
    else
        (void)puts("utilization: no data for the last 7 days");
}

static int print_statistics(struct call *call, struct error *err)
{
    _cleanup_json_ json_t *jobs = NULL, *gpus = NULL, *sums = NULL;
    int r = client_get(&call->client, API_PATH "/jobs?all=1", &jobs, err);
    if (r == 0)
        r = client_get(&call->client, API_PATH "/gpus", &gpus, err);
    if (r == 0)
        r = client_get(&call->client, STATISTICS, &sums, err);
    if (r < 0)
        return r;
    print_counts(json_object_get(jobs, "jobs"));
    print_waits(json_object_get(jobs, "jobs"));
    print_use(json_object_get(gpus, "gpus"), json_object_get(sums, "sums"));
    return EXIT_OK;
}

static int status(struct call *call, int argc, char **argv, struct error *err)
{
    if (argc == 0)
        return print_statistics(call, err);
    return compat_run(call, &command_show, argc, argv);
}

static const struct command tgpu_status = {
    .name = "status",
    .usage = "[JOB...]",
    .help = "Show all details of a job; without one, waiting times and utilization",
    .takes_jobs = true,
    .run = status,
};

static const struct personality_verb verbs[] = {
    { "submit", &tgpu_submit },
    { "list", &tgpu_list },
    { "status", &tgpu_status },
    { "cancel", &command_cancel },
    { 0 },
};

static const struct wording hint_words[] = {
    { "mgpu run -g 1", "tgpu submit --gpus 1" },
    { "mgpu submit", "tgpu submit" },
    { "mgpu ps -a", "tgpu list" },
    { "mgpu ps", "tgpu list" },
    { "mgpu cancel", "tgpu cancel" },
    { "mgpu show", "tgpu status" },
    { "-g", "--gpus" },
    COMPAT_WORDS,
    { 0 },
};

const struct personality personality_tgpu = {
    .name = "tgpu",
    .verbs = verbs,
    .words = hint_words,
};
