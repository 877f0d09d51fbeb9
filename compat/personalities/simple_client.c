/* SPDX-License-Identifier: MIT */
/*
 * mgpu_simple_client: submit, queue, cancel and monitor, for a master at a host and a port. Its four timeouts
 * end this program's session, never the job.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/follow/follow.h"
#include "cli/options/selector.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"
#include "compat/personalities/simple_place.h"
#include "compat/personalities/simple_queue.h"
#include "job/ask.h"

#define RULE             "=================================================="
#define SECONDS_MAX      (INT64_C(366) * 24 * 3600)
#define TIMEOUTS_MAX     1000000
#define SESSION_MS       INT64_C(7200000)
#define CONNECTION_MS    30000
#define SILENCE_MS       INT64_C(300000)
#define TIMEOUTS_DEFAULT 30

struct session_options {
    struct timeouts timeouts;
    int connection_ms;
};

/* Options of submit, and of monitor, which ignores most of them. */
struct simple_options {
    struct submit_options submit; // first: compat_set
    struct session_options session;
    bool is_interactive;
};

/* --- time-outs --- */

static struct session_options *session_of(void *call)
{
    return &((struct simple_options *)((struct call *)call)->options)->session;
}

static int set_seconds(const char *value, const char *what, int64_t *ret_ms, struct error *err)
{
    int64_t seconds = 0;
    int r = parse_integer(value, what, 1, SECONDS_MAX, &seconds, err);
    if (r == 0)
        *ret_ms = seconds * 1000;
    return r;
}

static int set_session(void *call, const char *value, struct error *err)
{
    return set_seconds(value, "--session-timeout", &session_of(call)->timeouts.session_ms, err);
}

static int set_connection(void *call, const char *value, struct error *err)
{
    int64_t ms = 0;
    int r = set_seconds(value, "--connection-timeout", &ms, err);
    if (r == 0)
        session_of(call)->connection_ms = ms > INT32_MAX ? INT32_MAX : (int)ms;
    return r;
}

static int set_silence(void *call, const char *value, struct error *err)
{
    return set_seconds(value, "--max-wait-time", &session_of(call)->timeouts.silence_ms, err);
}

static int set_timeouts(void *call, const char *value, struct error *err)
{
    return parse_integer(
        value, "--max-consecutive-timeouts", 1, TIMEOUTS_MAX, &session_of(call)->timeouts.silent_turns, err);
}

static const struct option_row session_rows[] = {
    { 0, "session-timeout", "S", "maximum seconds of the session (7200)", set_session },
    { 0, "connection-timeout", "S", "maximum seconds to connect (30)", set_connection },
    { 0, "max-wait-time", "S", "maximum seconds without output (300)", set_silence },
    { 0, "max-consecutive-timeouts", "N", "the same, as N consecutive waits of 10 seconds (30)",
        set_timeouts },
    { 0 },
};

static struct session_options *open_session(struct call *call)
{
    struct session_options *session = session_of(call);
    struct timeouts *timeouts = &session->timeouts;
    timeouts->session_ms = timeouts->session_ms > 0 ? timeouts->session_ms : SESSION_MS;
    timeouts->silence_ms = timeouts->silence_ms > 0 ? timeouts->silence_ms : SILENCE_MS;
    timeouts->silent_turns = timeouts->silent_turns > 0 ? timeouts->silent_turns : TIMEOUTS_DEFAULT;
    call->client.connect_ms = session->connection_ms > 0 ? session->connection_ms : CONNECTION_MS;
    return session;
}

/* Shows the job until it or the session ends; returns the exit status. */
static int watch(struct call *call, const json_t *job, enum leaver leaver, struct error *err)
{
    struct timeouts *timeouts = &session_of(call)->timeouts;
    const struct follow_options options = { .leaver = leaver, .timeouts = timeouts };
    timeouts_begin(timeouts);
    int r = follow_job(call, job, &options, err);
    if (r == -EPERM) // the output belongs to another user
        return r;
    if (r < 0)
        return error_hint(
            err, "the job continues: mgpu_simple_client monitor %.16s", field_text(job, "alias"));
    return r;
}

/* --- submit --- */

static int set_gpus(void *call, const char *value, struct error *err)
{
    int64_t gpus = 0;
    int r = parse_integer(value, "--gpus", 1, ASK_GPUS_MAX, &gpus, err);
    return r < 0 ? r : compat_set(call, "gpus", "--gpus", value, err);
}

static const struct option_row simple_submit_rows[] = {
    { 0, "gpus", "N", "number of GPUs (1)", set_gpus },
    { 0, "node-gpu-ids", "SPEC", "exactly these GPUs: \"node001:0,1;node002:0\"", COMPAT_OPTION("gpu-ids") },
    { 0, "interactive", NULL, "show the output", OPTION_INNER(flag, struct simple_options, is_interactive) },
    { 0 },
};

/* Refuses two different numbers; native messages would name other options. */
static int check_count(const json_t *ask, struct error *err)
{
    const json_t *gpus = json_object_get(ask, "gpus");
    const char *ids = field_text(ask, "gpu_ids");
    struct ask_gpu *named = NULL;
    size_t count = 0;
    int r = ids != NULL ? parse_gpu_ids(ids, &named, &count, err) : 0;
    ask_gpus_free(named, count);
    if (r < 0 || ids == NULL || !json_is_integer(gpus) || json_integer_value(gpus) == (json_int_t)count)
        return r;
    (void)error_set(err, -EINVAL, "--node-gpu-ids names %zu GPU%s, but --gpus requests %" JSON_INTEGER_FORMAT,
        count, count == 1 ? "" : "s", json_integer_value(gpus));
    return error_hint(err, "omit --gpus: --node-gpu-ids implies it");
}

static int make_request(struct call *call, const char *text, json_t **ret, struct error *err)
{
    const struct simple_options *options = call->options;
    _cleanup_json_ json_t *command = json_string(text);
    unsigned left_out = 0;
    if (command == NULL)
        return error_set(err, -EINVAL, "the command is not UTF-8 text");
    int r = check_count(options->submit.ask, err);
    if (r == 0)
        r = submit_request(call, command, ret, &left_out, err);
    if (r == 0)
        submit_print_left_out(call, left_out);
    return r;
}

static int show_session(struct call *call, const json_t *job, struct error *err)
{
    (void)puts("Starting interactive session...\n" RULE);
    (void)fflush(stdout);
    return watch(call, job, LEAVER_SIMPLE_INTERACTIVE, err);
}

static int check_command(int argc, char **argv, struct error *err)
{
    if (argc == 1 && argv[0][0] != '\0')
        return 0;
    if (argc > 1)
        (void)error_set(err, -EINVAL, "the command must be one string, not %d words", argc);
    else
        (void)error_set(err, -EINVAL, "no command given");
    return error_hint(err, "mgpu_simple_client submit --gpus 1 \"python train.py --epochs 3\"");
}

static int submit(struct call *call, int argc, char **argv, struct error *err)
{
    const struct simple_options *options = call->options;
    _cleanup_json_ json_t *request = NULL, *job = NULL;
    (void)open_session(call);
    call->is_followed = call->is_shown = options->is_interactive;
    int r = check_command(argc, argv, err);
    if (r == 0)
        r = make_request(call, argv[0], &request, err);
    if (r == 0)
        r = submit_send(call, request, &job, err);
    if (r < 0)
        return r;
    if (field_text(job, "alias") == NULL)
        return error_set(err, -EBADMSG, "the answer of mgpud contains no job");
    if (call->is_json && !options->is_interactive)
        submit_print(call, job);
    else
        (void)printf("Job submission: {'status': 'ok', 'job_id': '%s', 'message': 'Job submitted'}\n",
            field_text(job, "alias"));
    if (options->is_interactive)
        return show_session(call, job, err);
    (void)fflush(stdout);
    if (!call->is_json)
        compat_print_log(
            call, (long long)field_integer(job, "id", 0), " on its node", "mgpu_simple_client monitor");
    return EXIT_OK;
}

static const struct command simple_submit = {
    .name = "submit",
    .usage = "[OPTIONS] \"COMMAND\"",
    .help = "Queue a shell command, or run it in this session",
    .option_hint = "quote the whole command: submit --gpus 1 \"python train.py --epochs 3\"",
    .detail =
        "The job runs in this directory, which must have the same path on the node. Without "
        "--interactive it runs in the background: the output of job N is in " COMPAT_LOG " on its node, "
        "and monitor shows it. The timeouts end this session (exit status 124), not the job.",
    .tables = { simple_submit_rows, session_rows },
    .options_size = sizeof(struct simple_options),
    .run = submit,
    .clear = submit_options_clear,
};

/* --- queue, cancel, monitor --- */

static const struct command simple_queue = {
    .name = "queue",
    .usage = "",
    .help = "Show the jobs and all nodes",
    .detail =
        "Of the jobs that have ended within the last hour, the newest 10. monitor shows the output of a "
        "job, which is in " COMPAT_LOG " on its node.",
    .takes_nothing = true,
    .run = simple_queue_run,
};

static int monitor(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_strings_ struct strings ids = { 0 };
    _cleanup_json_ json_t *job = NULL;
    (void)open_session(call);
    if (argc != 1)
        return error_set(err, -EINVAL, "give one job as shown by `queue`");
    int r = selector_resolve(call, argc, argv, &ids, err);
    if (r == 0 && ids.count != 1)
        r = error_set(err, -EINVAL, "'%.60s' is not a single job", argv[0]);
    if (r < 0)
        return r;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", ids.items[0]);
    r = client_get(&call->client, path, &job, err);
    return r < 0 ? r : watch(call, job, LEAVER_SIMPLE_MONITOR, err);
}

static const struct command simple_monitor = {
    .name = "monitor",
    .usage = "[OPTIONS] JOB",
    .help = "Show the output of a job from its beginning to its end",
    .detail = "Ctrl-C leaves it running.",
    .tables = { session_rows },
    .options_size = sizeof(struct simple_options),
    .takes_jobs = true,
    .run = monitor,
};

static const struct personality_verb verbs[] = {
    { "submit", &simple_submit },
    { "queue", &simple_queue },
    { "cancel", &command_cancel },
    { "monitor", &simple_monitor },
    { 0 },
};

static const struct wording hint_words[] = {
    { "mgpu run -g 1 -- python train.py", "mgpu_simple_client submit --gpus 1 \"python train.py\"" },
    { "mgpu ps -a", "mgpu_simple_client queue" },
    { "mgpu ps", "mgpu_simple_client queue" },
    { "mgpu cancel", "mgpu_simple_client cancel" },
    { "mgpu logs -f", "mgpu_simple_client monitor" },
    { "-g", "--gpus" },
    { "-G", "--node-gpu-ids" },
    { "mgpu gpus", "mgpu_simple_client queue" },
    COMPAT_WORDS,
    { 0 },
};

const struct personality personality_simple_client = {
    .name = "mgpu_simple_client",
    .verbs = verbs,
    .server = "mgpu_simple_master",
    .words = hint_words,
    .first_rows = simple_place_rows,
    .prepare = simple_place_find,
};
