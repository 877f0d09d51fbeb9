/* SPDX-License-Identifier: MIT */
/*
 * mgpu notebook: Jupyter in a job, in the caller's browser.
 *
 *   submit ──> wait for its start ──> wait until Jupyter answers ──> print or open the address ──> forward
 *                                                            until Ctrl-C (the job ends, or is kept)
 *
 * Jupyter listens on a unix socket that only the job's user can open: on a TCP port of the node, every user
 * could try tokens. The socket's directory has an unpredictable name. The name and the token are variables of
 * the job, so that another mgpu notebook can find them (--connect).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/leaving.h"
#include "cli/api/leaving_signals.h"
#include "cli/options/ask.h"
#include "cli/options/talk.h"
#include "cli/ports/carry.h"
#include "cli/ports/forwarding.h"
#include "cli/ports/ports.h"
#include "cli/ports/running.h"
#include "cli/show/job_columns.h"
#include "cli/submit/submit.h"
#include "cli/term/browser.h"

#define FOLDER       "MGPU_NOTEBOOK" // variables of the job
#define TOKEN        "JUPYTER_TOKEN" // Jupyter reads it
#define RANDOM_BYTES 16
#define ANSWER_MS    30000
#define PATIENCE_MS  5000 // until a message says that Jupyter does not answer yet
#define ASK_AGAIN_MS 200
#define LEADING_FILE "mgpu-notebook.html"

struct notebook_options {
    struct submit_options submit;
    const char *connect;
    uint32_t port;
    bool is_kept, is_printed_only;
};

static const struct option_row rows[] = {
    { 0, "keep", NULL, "leave the job running when this command ends",
        OPTION_INNER(flag, struct notebook_options, is_kept) },
    { 0, "connect", "JOB", "connect to the notebook of a running job, and leave it running",
        OPTION_INNER(text, struct notebook_options, connect) },
    { 0, "port", "PORT", "local port (8888, or a free one if that is in use)",
        OPTION_INNER(count, struct notebook_options, port), OPTION_RANGE(1, UINT16_MAX) },
    { 0, "no-browser", NULL, "only print the address",
        OPTION_INNER(flag, struct notebook_options, is_printed_only) },
    { 0 },
};

/* Defaults unless specified otherwise: a forgotten notebook releases its GPUs. */
static const struct {
    const char *key, *option, *value;
} defaults[] = {
    { "name", "-J", "notebook" },
    { "time_limit", "-t", "8h" },
};

#define PORT_USUAL 8888U

/* Runs in the job. */
static const char server[] =
    "umask 077\n"
    "mkdir \"$MGPU_NOTEBOOK\" || exit 125\n"
    "trap 'rm -rf \"$MGPU_NOTEBOOK\"' EXIT\n"
    "trap 'exit 143' HUP INT TERM\n"
    "[ \"$(id -u)\" -ne 0 ] || set -- --allow-root \"$@\"\n"
    "for program in jupyter-lab jupyter-notebook; do\n"
    "    if command -v \"$program\" >/dev/null; then\n"
    "        \"$program\" --no-browser --sock=\"$MGPU_NOTEBOOK/jupyter.sock\" --sock-mode=0600 \"$@\"\n"
    "        exit\n"
    "    fi\n"
    "done\n"
    "echo 'mgpu notebook: there is no jupyter-lab or jupyter-notebook in PATH; choose an environment that "
    "has'\n"
    "echo 'one with --conda or --venv, or install it: pip install jupyterlab'\n"
    "exit 127\n";

static enum leaver leaver_of(const struct notebook_options *options)
{
    return options->connect != NULL || options->is_kept ? LEAVER_NOTEBOOK_KEPT : LEAVER_NOTEBOOK;
}

/* --- the job --- */

static int make_secret(char text[2 * RANDOM_BYTES + 1], struct error *err)
{
    uint8_t bytes[RANDOM_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set_errno(err, -errno, "cannot get random numbers");
    for (size_t i = 0; i < sizeof(bytes); i++)
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int add_variables(struct submit_options *options, struct error *err)
{
    char folder[2 * RANDOM_BYTES + 1], token[2 * RANDOM_BYTES + 1];
    int r = make_secret(folder, err);
    if (r == 0)
        r = make_secret(token, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *place = xasprintf(FOLDER "=/tmp/mgpu-notebook-%s", folder);
    _cleanup_free_ char *secret = xasprintf(TOKEN "=%s", token);
    strings_add(&options->env, place);
    strings_add(&options->env, secret);
    return 0;
}

static int set_defaults(struct submit_options *options, struct error *err)
{
    int r = 0;
    if (options->ask == NULL)
        options->ask = json_object();
    for (size_t i = 0; r == 0 && i < sizeof(defaults) / sizeof(defaults[0]); i++)
        if (json_object_get(options->ask, defaults[i].key) == NULL)
            r = ask_set(options->ask, NULL, defaults[i].key, defaults[i].option, defaults[i].value, err);
    if (r == 0 && json_object_get(options->ask, "array") != NULL)
        r = error_set(err, -EINVAL, "a notebook is one job, not an array");
    return r;
}

/* Submits and waits for the start. 0, a positive exit status or a negative errno; *ret is the job as in paths
 * of the API. */
static int start(struct call *call, int argc, char **argv, char **ret, struct error *err)
{
    static char shell[] = "/bin/sh", from_text[] = "-c", name[] = "mgpu-notebook";
    struct notebook_options *options = call->options;
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *text = xstrdup(server);
    _cleanup_free_ char **words = xcalloc((size_t)argc + 5, sizeof(*words));
    char *const first[] = { shell, from_text, text, name };
    memcpy(words, first, sizeof(first));
    memcpy(words + 4, argv, (size_t)argc * sizeof(*argv));
    int r = set_defaults(&options->submit, err);
    if (r == 0)
        r = add_variables(&options->submit, err);
    call->is_followed = true;
    if (r == 0)
        r = submit_job(call, argc + 4, words, &job, err);
    if (r < 0 || options->submit.is_dry)
        return r;
    *ret = xasprintf("%" PRId64, field_integer(job, "id", 0));
    return running_wait(call, job, leaver_of(options), err);
}

/* --- its Jupyter --- */

struct jupyter {
    char *job;
    struct target target;
    char *token;
};

static void jupyter_clear(struct jupyter *jupyter)
{
    free(jupyter->job);
    free(jupyter->token);
    target_clear(&jupyter->target);
}

/* The variables of the job contain the socket and the token. */
static int find(struct call *call, struct jupyter *jupyter, struct error *err)
{
    _cleanup_json_ json_t *job = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", jupyter->job);
    int r = client_get(&call->client, path, &job, err);
    if (r < 0)
        return r;
    const json_t *env = json_object_get(job, "env");
    const char *folder = field_text(env, FOLDER), *token = field_text(env, TOKEN);
    if (folder == NULL || token == NULL) {
        (void)error_set(err, -EINVAL, "job %s was not started by mgpu notebook", jupyter->job);
        return error_hint(err, "mgpu forward %s PORT forwards a port of any job", jupyter->job);
    }
    jupyter->target.remote.path = xasprintf("%s/jupyter.sock", folder);
    jupyter->token = xstrdup(token);
    return 0;
}

/* One request on its own connection. 0 if it was answered. */
static int ask_once(struct call *call, const struct jupyter *jupyter, int timeout_ms, struct error *err)
{
    const struct carry_to to = { .job = jupyter->job, .remote = &jupyter->target.remote };
    const struct http_request request = { .method = "GET", .path = "/api" };
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return error_set_errno(err, -errno, "cannot create a socket");
    pid_t pid = carry_start(call, &to, ends[1], true);
    _cleanup_(http_client_freep) struct http_client *http = http_client_adopt(ends[0]);
    int r = pid < 0 ? (int)pid : http_client_request(http, &request, timeout_ms, err);
    unsigned status = r < 0 ? 0 : http_client_answer(http)->status;
    http_client_free(take_ptr(http));
    if (pid > 0 && kill(pid, SIGTERM) == 0)
        (void)waitpid(pid, NULL, 0);
    return status == 200 ? 0 : r < 0 ? r : error_set(err, -EBADMSG, "Jupyter answered %u", status);
}

static bool has_ended(struct call *call, const char *job)
{
    _cleanup_json_ json_t *now = NULL;
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s", job);
    struct error ignored = { 0 };
    return client_get(&call->client, path, &now, &ignored) == 0 && job_is_done(now);
}

/* The signal that ended this command, or 0. Signals have been blocked since the job was submitted. */
static int take_signal(int wait_ms)
{
    const struct timespec wait = { .tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L };
    sigset_t set;
    leaving_signals(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    int signal = sigtimedwait(&set, NULL, &wait);
    return signal > 0 ? signal : 0;
}

static int leave(struct call *call, const struct jupyter *jupyter, int signal, struct error *err);

/* No event announces that a server in a job is listening, so it is polled. A positive exit status: the job
 * has ended, or the caller has interrupted. */
static int await_answer(struct call *call, const struct jupyter *jupyter, struct error *err)
{
    int64_t begin_ms = clock_boot_ms();
    bool is_printed = call->is_quiet;
    for (;;) {
        struct error now = { 0 };
        if (ask_once(call, jupyter, is_printed ? ANSWER_MS : PATIENCE_MS, &now) == 0)
            return 0;
        if (has_ended(call, jupyter->job)) {
            int r = running_report_end(call, jupyter->job, err);
            talk_line("the output of job %s: mgpu logs %s", jupyter->job, jupyter->job);
            return r != EXIT_OK ? r : EXIT_SELF;
        }
        if (!is_printed && clock_boot_ms() - begin_ms >= PATIENCE_MS) {
            talk_line("job %s runs; waiting until Jupyter answers", jupyter->job);
            is_printed = true;
        }
        int signal = take_signal(ASK_AGAIN_MS);
        if (signal != 0) {
            int r = leave(call, jupyter, signal, err);
            return r < 0 ? r : EXIT_SIGNAL_BASE + signal;
        }
    }
}

/* --- the local end --- */

static int open_local(const struct notebook_options *options, struct jupyter *jupyter,
    struct forwarding *forwarding, struct error *err)
{
    bool is_named = options->port != 0;
    jupyter->target.local.port = (uint16_t)(is_named ? options->port : PORT_USUAL);
    forwarding->job = jupyter->job;
    int r = forwarding_open(forwarding, &jupyter->target, 1, err);
    if (r != -EADDRINUSE || is_named)
        return r;
    forwarding_close(forwarding);
    *err = (struct error){ 0 };
    jupyter->target.local.port = 0;
    forwarding->job = jupyter->job;
    return forwarding_open(forwarding, &jupyter->target, 1, err);
}

static void present(struct call *call, const struct jupyter *jupyter)
{
    const struct notebook_options *options = call->options;
    uint16_t port = jupyter->target.local.port;
    _cleanup_free_ char *address = xasprintf("http://127.0.0.1:%u/?token=%s", port, jupyter->token);
    (void)printf("%s\n", address);
    (void)fflush(stdout);
    bool ends_job = leaving_effect(leaver_of(options), false, SIGINT) == LEAVE_ENDS;
    if (!call->is_quiet)
        talk_line("Jupyter runs in job %s; Ctrl-C ends this %s", jupyter->job,
            ends_job ? "and the job (--keep leaves it running)" : "command, and the job continues");
    if (browser_is_over_ssh() && !call->is_quiet)
        browser_print_tunnel(port);
    if (!options->is_printed_only && browser_is_here())
        browser_start(LEADING_FILE, address);
}

static int leave(struct call *call, const struct jupyter *jupyter, int signal, struct error *err)
{
    if (leaving_effect(leaver_of(call->options), false, signal) != LEAVE_ENDS) {
        if (!call->is_quiet)
            talk_line("job %s continues; mgpu notebook --connect %s connects again, mgpu cancel %s ends it",
                jupyter->job, jupyter->job, jupyter->job);
        return EXIT_OK;
    }
    _cleanup_json_ json_t *body = json_object();
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%s/cancel", jupyter->job);
    int r = client_call(&call->client, "POST", path, body, NULL, err);
    if (r == 0 && !call->is_quiet)
        talk_line("ending job %s", jupyter->job);
    return r < 0 ? r : EXIT_OK;
}

static int serve(struct call *call, struct jupyter *jupyter, struct error *err)
{
    _cleanup_(forwarding_close) struct forwarding forwarding = { 0 };
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    int r = find(call, jupyter, err);
    if (r == 0)
        r = await_answer(call, jupyter, err);
    if (r == 0)
        r = open_local(call->options, jupyter, &forwarding, err);
    if (r != 0)
        return r;
    present(call, jupyter);
    r = forwarding_run(call, &forwarding, err);
    if (r < 0)
        return r;
    return r == FORWARDING_JOB_ENDED ? running_report_end(call, jupyter->job, err)
                                     : leave(call, jupyter, forwarding.stop_signal, err);
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct notebook_options *options = call->options;
    _cleanup_(jupyter_clear) struct jupyter jupyter = { 0 };
    if (options->connect != NULL && argc > 0)
        return error_set(err, -EINVAL, "--connect starts nothing, so '%.60s' has no use", argv[0]);
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    char *word = options->connect != NULL ? call_keep(call, options->connect) : NULL;
    int r = word != NULL ? running_job(call, word, leaver_of(options), &jupyter.job, err)
                         : start(call, argc, argv, &jupyter.job, err);
    return r != 0 || options->submit.is_dry ? r : serve(call, &jupyter, err);
}

const struct command command_notebook = {
    .name = "notebook",
    .aliases = { "jupyter" },
    .usage = "[OPTIONS] [--] [JUPYTER-OPTION...]",
    .help = "Start Jupyter in a job and make it available in your browser",
    .detail =
        "Takes the options of submit: mgpu notebook -g 1 --venv ~/env. Ctrl-C ends Jupyter and its job, "
        "unless\n"
        "--keep is given; a lost terminal leaves both. The job is named notebook and ends after 8 hours "
        "unless -J and -t say otherwise.\n"
        "Exit status: 0 after Ctrl-C, otherwise that of the job.",
    .makes_jobs = true,
    .tables = { submit_rows, rows },
    .options_size = sizeof(struct notebook_options),
    .stops_at_operand = true,
    .is_job_status = true,
    .run = run,
    .clear = submit_options_clear,
};
