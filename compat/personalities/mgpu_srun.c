/* SPDX-License-Identifier: MIT */
/*
 * mgpu_scheduler_server, mgpu_srun, mgpu_queue and mgpu_cancel: GPUs selected by number, GPU memory in MiB,
 * and a time limit after which a job is requeued to the end of the queue. Jobs run in the user's home
 * directory, in the background.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/follow/run_job.h"
#include "cli/options/list.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/show/why_brief.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"
#include "job/spec.h"
#include "wire/http_client.h"

#define OLD_SOCKET "/tmp/mgpu_scheduler.sock"

struct srun_options {
    struct submit_options submit; // first: compat_set
    bool is_interactive;
};

/* Makes `source venv/bin/activate` work in every shell: on Debian sh is dash, which does not have
 * `source`. */
static int set_setup(void *call, const char *value, struct error *err)
{
    _cleanup_free_ char *text =
        xasprintf("command -v source >/dev/null || source() { . \"$@\"; }\n%s", value);
    return compat_set(call, "setup", "--env-setup-cmd", call_keep(call, text), err);
}

static const struct option_row srun_rows[] = {
    { 0, "gpu-ids", "LIST", "exactly these GPUs, in this order: 0,2,3", COMPAT_OPTION("gpu-ids") },
    { 0, "mem", "MIB", "memory needed on each GPU, which can then be shared", COMPAT_OPTION("gpu-mem") },
    { 0, "time-limit", "SECONDS", "stop the job after this time and requeue it at the end",
        COMPAT_OPTION("time") },
    { 0, "priority", "N", "priority, higher runs first (0)", COMPAT_OPTION("priority") },
    { 0, "env-setup-cmd", "COMMAND", "shell command to run first, in the same shell", set_setup },
    { 0, "interactive", NULL, "show the output of every attempt; Ctrl-C leaves the job queued or running",
        OPTION_INNER(flag, struct srun_options, is_interactive) },
    { 0 },
};

/* In milliseconds; 0: there is none. */
static int find_longest(struct call *call, int64_t *ret_ms, struct error *err)
{
    _cleanup_free_ char *value = NULL;
    *ret_ms = 0;
    int r = compat_find_setting(call, "max-time", &value, err);
    if (r == 0 && value != NULL && parse_duration(value, "max-time", ret_ms, NULL) < 0)
        *ret_ms = 0;
    return r;
}

/* The smaller one of the job's and the server's limit applies. */
static int bound_time_limit(struct call *call, struct error *err)
{
    json_t *ask = ((struct srun_options *)call->options)->submit.ask;
    const json_t *limit = json_object_get(ask, "time_limit");
    int64_t longest_ms = 0;
    char text[32];
    if (!json_is_number(limit))
        return 0;
    int r = find_longest(call, &longest_ms, err);
    if (r < 0 || longest_ms == 0 || json_number_value(limit) * 1000 <= (double)longest_ms)
        return r;
    format_duration(longest_ms, text, sizeof(text));
    talk_line("--time-limit exceeds that of the server (--max-job-time): the job gets %s", text);
    return json_object_set_new(ask, "time_limit", json_real((double)longest_ms / 1000)) < 0 ? -ENOMEM : 0;
}

static int srun(struct call *call, int argc, char **argv, struct error *err)
{
    struct terminal_options terminal = { .leaver = LEAVER_MGPU_SRUN_INTERACTIVE };
    struct srun_options *options = call->options;
    _cleanup_json_ json_t *job = NULL;
    call->is_followed = call->is_shown = options->is_interactive;
    terminal.is_input_sent = options->is_interactive && input_is_there(INPUT_NO_TERMINAL);
    if (terminal.is_input_sent)
        options->submit.input = SPEC_INPUT_SENT;
    int r = compat_go_home(call, err);
    if (r == 0)
        r = compat_set(call, "on-timeout", "--time-limit", "requeue", err);
    if (r == 0)
        r = bound_time_limit(call, err);
    if (r == 0)
        r = submit_job(call, argc, argv, &job, err);
    if (r < 0)
        return r;
    if (options->is_interactive)
        return run_job(call, job, false, &terminal, err);
    if (call->is_json)
        submit_print(call, job);
    else {
        long long number = (long long)field_integer(job, "id", 0);
        (void)printf("Job %s submitted (number %lld)\n", field_text(job, "alias"), number);
        (void)fflush(stdout);
        compat_print_log(call, number, "", "mgpu logs");
    }
    return EXIT_OK;
}

static const struct command srun_command = {
    .name = "mgpu_srun",
    .usage = "[OPTIONS] -- COMMAND [ARGUMENT...]",
    .help = "Queue a command for exactly these GPUs",
    .detail = "The job runs in your home directory. Its GPUs are cuda:0, cuda:1 and so on in the order of "
              "--gpu-ids, independent of their numbers: give torchrun as many processes as GPUs.\n"
              "Without --interactive, the output of job N is in " COMPAT_LOG ".",
    .tables = { srun_rows },
    .options_size = sizeof(struct srun_options),
    .stops_at_operand = true,
    .run = srun,
    .clear = submit_options_clear,
};

static const struct list_kind queue_kind = {
    .member = "jobs",
    .columns = job_columns,
    .normal = "alias,id,user,where,gpu_ids,gpu_mib,state,waits,command",
};

static int queue(struct call *call, int argc, char **argv, struct error *err)
{
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    screen_open(&screen, STDOUT_FILENO, call->color);
    int r = client_get(&call->client, API_PATH "/jobs?state=queued,starting,running,stopping", &answer, err);
    if (r < 0)
        return r;
    why_brief_add(json_object_get(answer, "jobs"));
    return list_print(call, &queue_kind, &screen, answer, stdout, err);
}

static const struct command queue_command = {
    .name = "mgpu_queue",
    .usage = "[OPTIONS]",
    .help = "List waiting and running jobs of all users",
    .detail = "The output of job N (column ID) is in " COMPAT_LOG " of its owner.",
    .tables = { call_list_rows },
    .takes_nothing = true,
    .list = &queue_kind,
    .run = queue,
};

/* --- the server --- */

struct server_options {
    const char *max_time;
    const char *priorities; // "own" or "all"; NULL: as configured
};

static int set_max_job_time(void *call, const char *value, struct error *err)
{
    int64_t ms = 0;
    const char **max_time = &((struct server_options *)((struct call *)call)->options)->max_time;
    int r = strcmp(value, "none") == 0 ? 0 : parse_duration(value, "--max-job-time", &ms, err);
    *max_time = ms > 0 ? value : NULL; // 0 also means no limit
    return r;
}

static int set_priorities(void *call, const char *value, struct error *err)
{
    ((struct server_options *)((struct call *)call)->options)->priorities = value;
    if (strcmp(value, "own") == 0 || strcmp(value, "all") == 0)
        return 0;
    (void)error_set(err, -EINVAL, "--priorities: invalid value '%.40s'", value);
    return error_hint(err, "own: they order the jobs of the requesting user; all: the jobs of all users");
}

static const struct option_row server_rows[] = {
    { 0, "max-job-time", "SECONDS", "maximum time limit of a job (none)", set_max_job_time },
    { 0, "priorities", "own|all", "whose jobs a user's priority above 0 orders: its own, or all users'",
        set_priorities },
    { 0 },
};

static bool is_answered(const char *path)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    struct error err;
    return http_client_connect(path, &http, &err) == 0;
}

/* Where clients of the original search: a link to the socket of the mgpud that will be started. A link to a
 * server that answers is kept, as is anything that is not a link; root replaces stale links of other
 * users. */
static void link_socket(int argc, char **argv)
{
    _cleanup_free_ char *socket = compat_own_socket(argc, argv);
    struct stat there;
    bool is_link = lstat(OLD_SOCKET, &there) == 0 && S_ISLNK(there.st_mode);
    if (is_link && is_answered(OLD_SOCKET)) {
        talk_line(OLD_SOCKET " leads to a running server and is not replaced");
        return;
    }
    if (is_link && (there.st_uid == geteuid() || geteuid() == 0))
        (void)unlink(OLD_SOCKET);
    if (symlink(socket, OLD_SOCKET) < 0)
        talk_line("no link " OLD_SOCKET " to the socket: %s", strerror(errno));
}

static const struct wording server_wording[] = {
    { "--max-time", "--max-job-time" },
    { "mgpu run ...", "mgpu_srun ..." },
    { 0 },
};

static int serve(struct call *call, int argc, char **argv, struct error *err)
{
    const struct server_options *options = call->options;
    _cleanup_strings_ struct strings words = { 0 };
    strings_add(&words, "mgpud");
    strings_add(&words, "--foreign=fit-around"); // a job with --mem starts where enough memory is free
    if (options->max_time != NULL) {
        strings_take(&words, xasprintf("--max-time=%s", options->max_time));
        strings_take(&words, xasprintf("--default-time=%s", options->max_time));
    }
    if (options->priorities != NULL)
        strings_take(&words, xasprintf("--priorities=%s", options->priorities));
    compat_complete_server(
        call, "mgpu_scheduler_server", COMPAT_SERVES_USER, server_wording, &words, argc, argv);
    link_socket(argc, argv);
    return compat_execute(&words, err);
}

static const struct command server_command = {
    .name = "mgpu_scheduler_server",
    .usage = "[OPTIONS] [-- OPTION OF mgpud...]",
    .help = "Run mgpud in the foreground",
    .detail = "As root it serves all users; as a normal user, only yourself. A job that reaches its time "
              "limit, its own or this one, is requeued at the end.",
    .tables = { server_rows },
    .options_size = sizeof(struct server_options),
    .stops_at_operand = true,
    .run = serve,
};

static const struct wording hint_words[] = {
    { "mgpu run -g 1", "mgpu_srun --gpu-ids 0" },
    { "mgpu submit", "mgpu_srun --gpu-ids 0" },
    { "mgpu ps -a", "mgpu_queue" },
    { "mgpu cancel", "mgpu_cancel" },
    { "-G", "--gpu-ids" },
    { "-m", "--mem" },
    { "-t", "--time-limit" },
    COMPAT_WORDS,
    { 0 },
};

const struct personality personality_scheduler_server = {
    .name = "mgpu_scheduler_server",
    .command = &server_command,
};

const struct personality personality_mgpu_srun = {
    .name = "mgpu_srun",
    .command = &srun_command,
    .socket = OLD_SOCKET,
    .server = "mgpu_scheduler_server",
    .words = hint_words,
};

const struct personality personality_mgpu_queue = {
    .name = "mgpu_queue",
    .command = &queue_command,
    .socket = OLD_SOCKET,
    .server = "mgpu_scheduler_server",
    .words = hint_words,
};

const struct personality personality_mgpu_cancel = {
    .name = "mgpu_cancel",
    .command = &command_cancel,
    .socket = OLD_SOCKET,
    .server = "mgpu_scheduler_server",
    .words = hint_words,
};
