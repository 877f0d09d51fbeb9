/* SPDX-License-Identifier: MIT */
/*
 * The request carries a random key. A submission whose answer is lost (mgpud died, or it could not tell
 * whether its commit is durable) is sent again with the same key, which mgpud recognises: it can neither be
 * lost silently nor become two jobs.
 */
#include "cli/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/ask.h"
#include "cli/exit_code.h"
#include "cli/field.h"
#include "cli/job_columns.h"
#include "cli/talk.h"
#include "cli/why_text.h"

#define KEY_BYTES         16
#define SUBMIT_PATIENT_MS 15000
#define SHELL_CHARACTERS  " \t\n|&;<>()$`\\\"'*?[]#~{}!"

static struct submit_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set(void *target, const char *key, const char *option, const char *value, struct error *err)
{
    struct submit_options *options = options_of(target);
    if (options->ask == NULL)
        options->ask = json_object();
    return ask_set(options->ask, NULL, key, option, value, err);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    return set(target, "gpus", "-g", value, err);
}

static int set_gpu_ids(void *target, const char *value, struct error *err)
{
    return set(target, "gpu_ids", "-G", value, err);
}

static int set_gpu_allow(void *target, const char *value, struct error *err)
{
    return set(target, "gpu_allow", "--gpu-allow", value, err);
}

static int set_gpu_mem(void *target, const char *value, struct error *err)
{
    return set(target, "gpu_mem", "-m", value, err);
}

static int set_cpus(void *target, const char *value, struct error *err)
{
    return set(target, "cpus", "-c", value, err);
}

static int set_memory(void *target, const char *value, struct error *err)
{
    return set(target, "memory", "-M", value, err);
}

static int set_nodes(void *target, const char *value, struct error *err)
{
    return set(target, "nodes", "-N", value, err);
}

static int set_gpus_per_node(void *target, const char *value, struct error *err)
{
    return set(target, "gpus_per_node", "--gpus-per-node", value, err);
}

static int set_time_limit(void *target, const char *value, struct error *err)
{
    return set(target, "time_limit", "-t", value, err);
}

static int set_priority(void *target, const char *value, struct error *err)
{
    return set(target, "priority", "-p", value, err);
}

static int set_begin(void *target, const char *value, struct error *err)
{
    return set(target, "begin", "--begin", value, err);
}

static int set_deadline(void *target, const char *value, struct error *err)
{
    return set(target, "deadline", "--deadline", value, err);
}

static int set_array(void *target, const char *value, struct error *err)
{
    return set(target, "array", "--array", value, err);
}

static int set_name(void *target, const char *value, struct error *err)
{
    return set(target, "name", "-J", value, err);
}

static int set_cancel_if_never(void *target, const char *value, struct error *err)
{
    (void)value;
    return set(target, "cancel_if_never", "--cancel-if-never", "yes", err);
}

static int set_preemptible(void *target, const char *value, struct error *err)
{
    (void)value;
    return set(target, "preemptible", "--preemptible", "yes", err);
}

static int set_idle_timeout(void *target, const char *value, struct error *err)
{
    return set(target, "idle_timeout", "--idle-timeout", value, err);
}

static int set_idle_ok(void *target, const char *value, struct error *err)
{
    (void)value;
    return set(target, "idle_ok", "--idle-ok", "yes", err);
}

static int set_grace(void *target, const char *value, struct error *err)
{
    return set(target, "grace", "--grace", value, err);
}

static int set_signal(void *target, const char *value, struct error *err)
{
    return set(target, "warn_signal", "--signal", value, err);
}

static int set_on_timeout(void *target, const char *value, struct error *err)
{
    bool is_requeue = strcmp(value, "requeue") == 0;
    if (!is_requeue && strcmp(value, "kill") != 0)
        return error_set(err, -EINVAL, "--on-timeout: '%.60s' is neither kill nor requeue", value);
    return set(target, "requeue_on_timeout", "--on-timeout", is_requeue ? "yes" : "no", err);
}

static int set_max_requeues(void *target, const char *value, struct error *err)
{
    return set(target, "max_requeues", "--max-requeues", value, err);
}

static int set_retry(void *target, const char *value, struct error *err)
{
    return set(target, "retry", "--retry", value, err);
}

static int set_retry_on(void *target, const char *value, struct error *err)
{
    return set(target, "retry_on", "--retry-on", value, err);
}

/* Names become numbers when mgpud can be asked. */
static int set_after(void *target, const char *value, struct error *err)
{
    (void)err;
    strings_add(&options_of(target)->after, value);
    return 0;
}

static int set_hold(void *target, const char *value, struct error *err)
{
    (void)value, (void)err;
    options_of(target)->is_held = true;
    return 0;
}

static int set_dry(void *target, const char *value, struct error *err)
{
    (void)value, (void)err;
    options_of(target)->is_dry = true;
    return 0;
}

static int set_directory(void *target, const char *value, struct error *err)
{
    (void)err;
    options_of(target)->directory = value;
    return 0;
}

static int set_env(void *target, const char *value, struct error *err)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value) {
        (void)error_set(err, -EINVAL, "-e: '%.60s' is not NAME=VALUE", value);
        return error_hint(err, "your own environment is passed on anyway");
    }
    _cleanup_free_ char *name = xstrndup(value, (size_t)(equals - value));
    strings_set_env(&options_of(target)->env, name, equals + 1);
    return 0;
}

static int set_setup(void *target, const char *value, struct error *err)
{
    (void)err;
    options_of(target)->setup = value;
    return 0;
}

static int set_output(void *target, const char *value, struct error *err)
{
    (void)err;
    options_of(target)->output = value;
    return 0;
}

/* srun counts tasks with it, and one of the schedulers before us counted GPUs: a guess would be wrong often.
 */
static int refuse_n(void *target, const char *value, struct error *err)
{
    (void)target;
    return error_set(err, -EINVAL, "-n is not an option here; for %.20s GPUs use -g %.20s", value, value);
}

const struct option_row submit_rows[] = {
    { 'g', "gpus", "N|0.5|N:TYPE", "GPUs: a number, 0 for none, a part of one, or of a model: 2:h200 (1)",
        set_gpus },
    { 'G', "gpu-ids", "LIST", "exactly these GPUs, in this order: 0,2-3 or gpu1:0,1;gpu2:0", set_gpu_ids },
    { 0, "node-gpu-ids", "LIST", NULL, set_gpu_ids },
    { 0, "gpu-allow", "LIST", "only GPUs with these numbers: 0-3,5", set_gpu_allow },
    { 'm', "gpu-mem", "SIZE", "memory needed on each GPU, which may then be shared: 8G; bare = MiB",
        set_gpu_mem },
    { 0, "mem", "SIZE", NULL, set_gpu_mem },
    { 'c', "cpus", "N", "CPUs needed on each node: 8, 2.5", set_cpus },
    { 'M', "ram", "SIZE", "host memory needed on each node: 64G; bare = MiB", set_memory },
    { 'N', "nodes", "N", "exactly so many nodes (as few as possible)", set_nodes },
    { 0, "gpus-per-node", "N", "GPUs on each node", set_gpus_per_node },
    { 't', "time", "TIME", "how long it may run: 90m, 4h, 2-00:00:00; bare = seconds", set_time_limit },
    { 0, "time-limit", "TIME", NULL, set_time_limit },
    { 0, "signal", "SIGNAL[@TIME]", "warn it before its time is up: USR1@60 (60s)", set_signal },
    { 0, "grace", "TIME", "between SIGTERM and SIGKILL when it is ended (10s)", set_grace },
    { 0, "on-timeout", "kill|requeue", "when its time is up: end it, or queue it again (kill)",
        set_on_timeout },
    { 0, "max-requeues", "N", "so often at most (10)", set_max_requeues },
    { 0, "retry", "N", "try it again when its start, its node or a GPU failed", set_retry },
    { 0, "retry-on", "LIST", "and after these exit codes: 75,137", set_retry_on },
    { 'p', "priority", "N", "higher runs first (0)", set_priority },
    { 'b', "begin", "TIME", "not before: 18:00, 'Fri 18:00', +2h, '2026-11-22 14:00'", set_begin },
    { 0, "deadline", "TIME", "give it up when it has not started by then", set_deadline },
    { 'a', "array", "LIST", "many jobs of one command: 0-99, 0-99:2, at most 8 at a time: 0-99%8",
        set_array },
    { 'A', "after", "JOB[:ok|any|fail]", "start when that job has ended so (ok); may be repeated",
        set_after },
    { 0, "cancel-if-never", NULL, "give it up when what it waits for can never come true",
        set_cancel_if_never },
    { 0, "hold", NULL, "do not start it before: mgpu release JOB", set_hold },
    { 0, "preemptible", NULL, "use what is idle, and give way to other jobs", set_preemptible },
    { 0, "idle-timeout", "TIME", "end it when it has not used its GPUs for so long: 30m", set_idle_timeout },
    { 0, "idle-ok", NULL, "it may leave its GPUs unused: no mark, no end", set_idle_ok },
    { 0, "dry-run", NULL, "say where and when it would start; submit nothing", set_dry },
    { 'J', "name", "NAME", "name in lists", set_name },
    { 'C', "chdir", "DIR", "run there instead of here", set_directory },
    { 'e', "env", "NAME=VALUE", "set a variable; may be repeated", set_env },
    { 'E', "setup", "COMMAND", "shell command to run before, in the same environment", set_setup },
    { 0, "env-setup-cmd", "COMMAND", NULL, set_setup },
    { 'o', "output", "FILE", "file for the output; %j is the job id, %n its name", set_output },
    { 'n', "n", "N", NULL, refuse_n },
    { 0 },
};

const struct option_row lease_rows[] = {
    { 'g', "gpus", "N|0.5", "how many GPUs (those that the process is on)", set_gpus },
    { 'G', "gpu-ids", "LIST", "exactly these GPUs: 0,2-3 or gpu1:0,1", set_gpu_ids },
    { 'm', "gpu-mem", "SIZE", "memory it uses on each GPU, which others may then share: 8G", set_gpu_mem },
    { 'c', "cpus", "N", "CPUs to count as used: 8, 2.5", set_cpus },
    { 'M', "ram", "SIZE", "host memory to count as used: 64G; bare = MiB", set_memory },
    { 't', "time", "TIME", "let go of it after so long: 90m, 4h; bare = seconds", set_time_limit },
    { 'p', "priority", "N", "while it waits: higher comes first (0)", set_priority },
    { 0, "deadline", "TIME", "give it up when it has not begun by then", set_deadline },
    { 'J', "name", "NAME", "name in lists (that of its program)", set_name },
    { 0 },
};

void submit_options_clear(void *arg)
{
    struct submit_options *options = arg;
    json_release(&options->ask);
    strings_clear(&options->after);
    strings_clear(&options->env);
}

static int add_text(json_t *request, const char *key, const char *value, struct error *err)
{
    if (value == NULL)
        return 0;
    json_t *text = json_string(value);
    if (text == NULL)
        return error_set(err, -EINVAL, "the value of '%s' is not UTF-8 text", key);
    return json_object_set_new(request, key, text);
}

/* One word with blanks or shell characters is meant for a shell, unless a file is called so. */
static bool is_shell_text(int argc, char **argv)
{
    return argc == 1 && strpbrk(argv[0], SHELL_CHARACTERS) != NULL && access(argv[0], F_OK) != 0;
}

static int add_command(json_t *request, int argc, char **argv, struct error *err)
{
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no command given");
        return error_hint(err, "for example: mgpu run -g 1 -- python train.py");
    }
    if (is_shell_text(argc, argv))
        return add_text(request, "command", argv[0], err);
    json_t *words = json_array();
    (void)json_object_set_new(request, "command", words);
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);
        if (word == NULL)
            return error_set(err, -EINVAL, "word %d of the command is not UTF-8 text", i + 1);
        (void)json_array_append_new(words, word);
    }
    return 0;
}

/* An entry whose bytes are no UTF-8 cannot be said in JSON. */
static unsigned add_env(json_t *env, char *const *entries)
{
    unsigned left_out = 0;
    for (; entries != NULL && *entries != NULL; entries++) {
        const char *equals = strchr(*entries, '=');
        if (equals == NULL || equals == *entries)
            continue;
        _cleanup_free_ char *name = xstrndup(*entries, (size_t)(equals - *entries));
        json_t *value = json_string(equals + 1);
        if (value == NULL || json_object_set_new(env, name, value) < 0)
            left_out++;
    }
    return left_out;
}

static bool is_same_directory(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static int add_directory(json_t *request, const char *directory, struct error *err)
{
    if (directory != NULL && directory[0] == '/')
        return add_text(request, "cwd", directory, err);
    /* $PWD keeps the symbolic links that the user went through, such as an automounter's. */
    const char *logical = getenv("PWD");
    bool is_usable = logical != NULL && logical[0] == '/' && is_same_directory(logical, ".");
    _cleanup_free_ char *physical = is_usable ? NULL : getcwd(NULL, 0);
    const char *here = is_usable ? logical : physical;
    if (here == NULL)
        return error_set_errno(err, -errno, "cannot tell the current directory");
    _cleanup_free_ char *joined = directory == NULL ? xstrdup(here) : xasprintf("%s/%s", here, directory);
    return add_text(request, "cwd", joined, err);
}

int submit_add_key(json_t *request, struct error *err)
{
    uint8_t bytes[KEY_BYTES];
    char key[2 * KEY_BYTES + 1] = "";
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set_errno(err, -errno, "cannot get random bytes");
    for (size_t i = 0; i < KEY_BYTES; i++)
        (void)snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    return json_object_set_new(request, "submit_key", json_string(key));
}

static int add_options(json_t *request, const struct submit_options *options, struct error *err)
{
    const struct {
        const char *key, *value;
    } texts[] = {
        { "setup", options->setup },
        { "output", options->output },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int r = add_text(request, texts[i].key, texts[i].value, err);
        if (r < 0)
            return r;
    }
    if (options->ask != NULL)
        (void)json_object_update(request, options->ask);
    if (options->is_held)
        (void)json_object_set_new(request, "hold", json_true());
    return ask_settle(request, err);
}

int submit_build(const struct submit_options *options, int argc, char **argv, json_t **ret,
    unsigned *ret_left_out, struct error *err)
{
    _cleanup_json_ json_t *request = json_object();
    int r = add_command(request, argc, argv, err);
    if (r < 0)
        return r;
    r = add_options(request, options, err);
    if (r < 0)
        return r;
    r = add_directory(request, options->directory, err);
    if (r < 0)
        return r;
    r = submit_add_key(request, err);
    if (r < 0)
        return r;
    json_t *env = json_object();
    (void)json_object_set_new(request, "env", env);
    *ret_left_out = add_env(env, environ) + add_env(env, options->env.items);
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)json_object_set_new(request, "umask", json_integer(mask));
    *ret = take_ptr(request);
    return 0;
}

/* All --after as one value. */
static int add_after(struct call *call, json_t *request, struct error *err)
{
    const struct submit_options *options = call->options;
    _cleanup_buffer_ struct buffer all = { 0 };
    for (size_t i = 0; i < options->after.count; i++)
        buffer_printf(&all, "%s%s", i > 0 ? "," : "", options->after.items[i]);
    if (options->after.count == 0)
        return 0;
    return ask_set(request, &call->client, "after", "--after", buffer_text(&all), err);
}

static int build(struct call *call, int argc, char **argv, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    unsigned left_out = 0;
    int r = submit_build(call->options, argc, argv, &request, &left_out, err);
    if (r == 0)
        r = add_after(call, request, err);
    if (r < 0)
        return r;
    if (left_out > 0 && !call->is_quiet)
        talk_line("%u variables of your environment are not UTF-8 text and were left out", left_out);
    *ret = take_ptr(request);
    return 0;
}

/* A request that says how many GPUs means it; one that does not means those that the process is on. */
static int build_lease(struct call *call, uint32_t pid, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = json_object();
    int r = add_options(request, call->options, err);
    if (r == 0)
        r = submit_add_key(request, err);
    if (r < 0)
        return r;
    bool has_gpus = json_object_get(request, "gpus") != NULL || json_object_get(request, "gpu_ids") != NULL;
    if (!has_gpus)
        (void)json_object_set_new(request, "gpus", json_integer(0));
    (void)json_object_set_new(request, "lease_pid", json_integer(pid));
    *ret = take_ptr(request);
    return 0;
}

static int send(struct call *call, const json_t *request, json_t **ret, struct error *err)
{
    call->client.patience_ms = SUBMIT_PATIENT_MS;
    int r = client_call(&call->client, "POST", API_PATH "/jobs", request, ret, err);
    if (r == -EAGAIN) {
        (void)error_wrap(err, "it is not known whether the job was accepted");
        return error_hint(err, "mgpu ps shows whether it is there");
    }
    return r;
}

int submit_lease(struct call *call, uint32_t pid, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    int r = build_lease(call, pid, &request, err);
    return r < 0 ? r : send(call, request, ret, err);
}

int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    int r = build(call, argc, argv, &request, err);
    if (r < 0)
        return r;
    return send(call, request, ret, err);
}

int submit_dry(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *request = NULL, *why = NULL;
    struct screen screen;
    int r = build(call, argc, argv, &request, err);
    if (r < 0)
        return r;
    r = client_call(&call->client, "POST", API_PATH "/jobs?dry_run=1", request, &why, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        (void)json_dumpf(why, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
        (void)fputc('\n', stdout);
        return EXIT_OK;
    }
    screen_open(&screen, STDOUT_FILENO, call->color);
    struct view view = { .screen = &screen, .times = call->times, .now_ms = clock_wall_ms() };
    why_print(&view, NULL, why, stdout);
    return EXIT_OK;
}

/* "queued, position 3, starts about 14:05 (at the latest 15:40)", as far as it is known. */
static void print_place(const struct call *call, const json_t *job)
{
    char eta[64], latest[64];
    int64_t position = field_integer(job, "position", 0), now_ms = clock_wall_ms();
    int64_t eta_ms = time_parse(field_text(job, "eta"));
    int64_t latest_ms = time_parse(field_text(job, "eta_latest"));
    time_format_short(eta_ms, now_ms, call->times, eta, sizeof(eta));
    time_format_short(latest_ms, now_ms, call->times, latest, sizeof(latest));
    if (position > 0)
        (void)fprintf(stderr, "  queued, position %" PRId64 "%s%s%s%s%s\n", position,
            eta_ms > 0 ? ", starts about " : "", eta_ms > 0 ? eta : "",
            latest_ms > 0 ? " (at the latest " : "", latest_ms > 0 ? latest : "", latest_ms > 0 ? ")" : "");
    else if (job_is_held(job))
        (void)fprintf(
            stderr, "  held; mgpu release %" PRId64 " lets it start\n", field_integer(job, "id", 0));
}

void submit_print(const struct call *call, const json_t *job)
{
    if (call->is_json) {
        (void)json_dumpf(job, stdout, JSON_INDENT(2));
        (void)fputc('\n', stdout);
        return;
    }
    int64_t id = field_integer(job, "id", 0);
    (void)printf("%" PRId64 "\n", id);
    if (call->is_quiet || isatty(STDERR_FILENO) != 1)
        return;
    (void)fflush(stdout);
    print_place(call, job);
    (void)fprintf(
        stderr, "  mgpu logs -f %" PRId64 " · mgpu why %" PRId64 " · mgpu cancel %" PRId64 "\n", id, id, id);
}
