/* SPDX-License-Identifier: MIT */
/*
 * srun and run_server: GPUs for a command that is executed in place of srun itself, so it has the same
 * terminal, directory, environment and signals, and its exit status is srun's. The GPUs are released when the
 * process ends (POST /acquire).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/options/talk.h"
#include "cli/verbs/verbs.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"
#include "compat/personalities/srun_server.h"
#include "job/ask.h"

#define PORT_VARIABLE "GPUSCHED_PORT"
#define NO_COMMAND    126 // as in a shell
#define NOT_FOUND     127

/* --- srun --- */

struct srun_options {
    int64_t gpus;
};

static int set_gpus(void *call, const char *value, struct error *err)
{
    struct srun_options *options = ((struct call *)call)->options;
    return parse_integer(value, "-n", 1, ASK_GPUS_MAX, &options->gpus, err);
}

static const struct option_row srun_rows[] = {
    { 'n', "num-gpus", "N", "number of GPUs (1)", set_gpus },
    { 0 },
};

static int ask(
    struct call *call, const char *path, const char *body, struct http_client **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    const struct http_request request = {
        .method = "POST", .path = path, .body = body, .body_length = strlen(body)
    };
    int r = srun_server_connect(call, &http, err);
    if (r == 0)
        r = http_client_request(http, &request, -1, err);
    *ret = take_ptr(http);
    return r;
}

/* A restarted server still has the request. */
static int ask_patiently(struct call *call, const char *body, struct http_client **ret, struct error *err)
{
    int64_t lost_ms = 0;
    int delay_ms = 0;
    int r = ask(call, "/acquire", body, ret, err);
    while (r < 0 && client_is_loss(r)) {
        bool was_there = r != -EHOSTDOWN;
        if (was_there)
            lost_ms = clock_boot_ms();
        if (lost_ms == 0 || clock_boot_ms() - lost_ms > CLIENT_PATIENT_MS)
            return r;
        client_report_absence(&call->client, lost_ms);
        client_back_off(&delay_ms);
        http_client_free(take_ptr(*ret));
        r = ask(call, "/acquire?return=1", body, ret, err);
    }
    return r;
}

/* "0,1", "MIG-...", or the id of a job: the server may belong to another user. */
static bool is_name(const char *text)
{
    static const char known[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,-/:._";
    return text != NULL && text[strspn(text, known)] == '\0';
}

/* Waits without a timeout. Ctrl-C ends this process, which closes the connection and cancels the request. */
static int acquire(struct call *call, int64_t gpus, json_t **ret, struct error *err)
{
    _cleanup_(http_client_freep) struct http_client *http = NULL;
    _cleanup_free_ char *body = xasprintf("{\"pid\": %d, \"num_gpus\": %d}", (int)getpid(), (int)gpus);
    int r = ask_patiently(call, body, &http, err);
    if (r < 0)
        return r;
    const struct http_answer *answer = http_client_answer(http);
    if (answer->status != 200)
        r = client_problem(answer, err);
    if (r == -EPERM)
        return error_hint(err, "a server started by root serves all users: sudo run_server");
    if (r < 0)
        return r;
    *ret = json_loadb((const char *)answer->body.bytes, answer->body.length, 0, NULL);
    if (is_name(field_text(*ret, "gpus")) && is_name(field_text(*ret, "job_id")))
        return 0;
    return error_set(err, -EPROTO, "the server's answer contains no GPUs");
}

static int srun(struct call *call, int argc, char **argv, struct error *err)
{
    const struct srun_options *options = call->options;
    _cleanup_json_ json_t *grant = NULL;
    int64_t gpus = options->gpus > 0 ? options->gpus : 1;
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no command given");
        return error_hint(err, "for example: srun -n 1 python train.py");
    }
    if (!call->is_quiet)
        talk_line("requesting %d GPU(s)...", (int)gpus);
    int r = acquire(call, gpus, &grant, err);
    if (r < 0)
        return r;
    if (!call->is_quiet)
        talk_line("acquired GPU(s) %s (job=%s)", field_text(grant, "gpus"), field_text(grant, "job_id"));
    if (setenv("CUDA_VISIBLE_DEVICES", field_text(grant, "gpus"), 1) < 0 ||
        setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) < 0)
        return error_set_errno(err, -errno, "cannot set the environment");
    (void)execvp(argv[0], argv);
    int failure = errno;
    (void)error_set_errno(err, -failure, "cannot run %.200s", argv[0]);
    talk_error(NULL, err);
    return failure == ENOENT ? NOT_FOUND : NO_COMMAND;
}

static const struct command srun_command = {
    .name = "srun",
    .usage = "[-n N] COMMAND [ARGUMENT...]",
    .help = "Wait for GPUs, then execute the command with them",
    .detail = "The server is the one in " SRUN_URL_VARIABLE
              ", or the one on this machine. The GPUs are released when the\nprocess ends.",
    .tables = { srun_rows },
    .options_size = sizeof(struct srun_options),
    .stops_at_operand = true,
    .run = srun,
};

/* --- run_server --- */

struct server_options {
    const char *port;
    bool is_detached;
    bool is_private;
};

static int set_port(void *call, const char *value, struct error *err)
{
    int64_t port;
    ((struct server_options *)((struct call *)call)->options)->port = value;
    return parse_integer(value, "--port", 1, 65535, &port, err);
}

static const struct option_row server_rows[] = {
    { 0, "port", "PORT", "port to listen on (" PORT_VARIABLE ", else " SRUN_PORT ")", set_port },
    { 0, "detach", NULL, "return once it is ready, and leave it running",
        OPTION_INNER(flag, struct server_options, is_detached) },
    { 0, "private", NULL, "without root: give GPUs to srun of this user only",
        OPTION_INNER(flag, struct server_options, is_private) },
    { 0 },
};

static const struct wording server_wording[] = {
    { "--listen 127.0.0.1:PORT) or none (--listen none", "--port PORT" },
    { "--listen", "--port" },
    { "mgpu run ...", "srun ..." },
    { 0 },
};

static int run_server(struct call *call, int argc, char **argv, struct error *err)
{
    const struct server_options *options = call->options;
    const char *from_environment = getenv(PORT_VARIABLE), *port = options->port;
    _cleanup_strings_ struct strings words = { 0 };
    int64_t number;
    if (port == NULL && from_environment != NULL && from_environment[0] != '\0') {
        port = from_environment;
        int r = parse_integer(port, PORT_VARIABLE, 1, 65535, &number, err);
        if (r < 0)
            return r;
    }
    strings_add(&words, "mgpud");
    strings_add(&words, "--policy=fifo");
    strings_add(&words, "--need-listen"); // its clients know no other connection
    strings_take(&words, xasprintf("--listen=127.0.0.1:%s", port != NULL ? port : SRUN_PORT));
    if (options->is_detached)
        strings_add(&words, "--detach");
    bool has_guests = geteuid() != 0 && !options->is_private;
    if (has_guests)
        strings_add(&words, "--adopt-any-user");
    compat_complete_server(call, "run_server", has_guests ? COMPAT_SERVES_GUESTS : COMPAT_SERVES_USER,
        server_wording, &words, argc, argv);
    return compat_execute(&words, err);
}

static const struct command server_command = {
    .name = "run_server",
    .usage = "[--detach] [--port PORT] [--private] [-- OPTION OF mgpud...]",
    .help = "Run mgpud with the policy first come, first served",
    .tables = { server_rows },
    .options_size = sizeof(struct server_options),
    .stops_at_operand = true,
    .run = run_server,
};

const struct wording srun_words[] = {
    { "mgpu run -g 1", "srun -n 1" },
    { "give its GPUs with their node: -G node1:0,1", "srun serves one machine: use mgpu run -g 1, or a "
                                                     "server without other nodes: run_server -- --state-dir "
                                                     "DIR --run-dir DIR" },
    { "-g", "-n" },
    { "mgpu gpus", "tui" },
    COMPAT_WORDS,
    { 0 },
};

const struct personality personality_srun = {
    .name = "srun",
    .command = &srun_command,
    .server = "run_server",
    .words = srun_words,
};

const struct personality personality_run_server = {
    .name = "run_server",
    .command = &server_command,
};
