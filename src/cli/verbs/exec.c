/* SPDX-License-Identifier: MIT */
/* mgpu exec: another process in a running job, with its GPUs, limits and environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "cli/api/exit_code.h"
#include "cli/api/programs.h"
#include "cli/follow/session.h"
#include "cli/follow/terminal_options.h"
#include "cli/options/selector.h"
#include "cli/submit/submit.h"
#include "cli/verbs/verbs.h"

#define TASKS_MAX 65536

struct exec_options {
    struct terminal_options terminal;
    bool is_tty, is_never_tty, has_no_input;
    const char *directory;
    struct strings env;
    bool is_step, is_overlapping;
    const char *tasks, *cpus, *gpus; // of the step; NULL: not given
};

static struct exec_options *options_of(void *target)
{
    return ((struct call *)target)->options;
}

static int set_directory(void *target, const char *value, struct error *err)
{
    if (value[0] != '/')
        return error_set(err, -EINVAL, "-C: '%.60s' is not an absolute path", value);
    options_of(target)->directory = value;
    return 0;
}

static int set_env(void *target, const char *value, struct error *err)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value)
        return error_set(err, -EINVAL, "-e: '%.60s' is not NAME=VALUE", value);
    strings_add(&options_of(target)->env, value);
    return 0;
}

static int set_count(const char **target, const char *name, const char *value, struct error *err)
{
    int64_t count = 0;
    int r = parse_integer(value, name, 1, TASKS_MAX, &count, err);
    if (r == 0)
        *target = value;
    return r;
}

static int set_tasks(void *target, const char *value, struct error *err)
{
    return set_count(&options_of(target)->tasks, "-n", value, err);
}

static int set_cpus(void *target, const char *value, struct error *err)
{
    return set_count(&options_of(target)->cpus, "-c", value, err);
}

static int set_gpus(void *target, const char *value, struct error *err)
{
    return set_count(&options_of(target)->gpus, "--gpus-per-task", value, err);
}

static const struct option_row rows[] = {
    { 0, "rank", "N", "for a job on several nodes: rank N, from 0 (0)", TERMINAL_RANK(struct exec_options) },
    { 'T', "tty", NULL, "run on a terminal (default if this is one)",
        OPTION_INNER(flag, struct exec_options, is_tty) },
    { 0, "no-tty", NULL, "do not run on a terminal", OPTION_INNER(flag, struct exec_options, is_never_tty) },
    { 0, "no-input", NULL, "do not pass standard input to the process",
        OPTION_INNER(flag, struct exec_options, has_no_input) },
    { 'C', "chdir", "DIR", "run in this directory instead of the job's", set_directory },
    { 'e', "env", "NAME=VALUE", "set a variable; can be repeated", set_env },
    { 0, "step", NULL, "run tasks with a share of the job, as srun does",
        OPTION_INNER(flag, struct exec_options, is_step) },
    { 'n', "tasks", "N", "with --step: number of tasks (1)", set_tasks },
    { 'c', "cpus-per-task", "N", "with --step: CPUs of each task", set_cpus },
    { 0, "gpus-per-task", "N", "with --step: GPUs of each task", set_gpus },
    { 0, "overlap", NULL, "with --step: do not wait for other steps",
        OPTION_INNER(flag, struct exec_options, is_overlapping) },
    { 0, "detach-keys", "KEYS", "keys that end the process: ctrl-p,ctrl-q, or none (Ctrl-] d)",
        TERMINAL_KEYS(struct exec_options) },
    { 0 },
};

static void clear(void *arg)
{
    struct exec_options *options = arg;
    strings_clear(&options->env);
}

static int add_words(json_t *body, const char *key, int count, char *const *words, struct error *err)
{
    json_t *array = json_array();
    (void)json_object_set_new(body, key, array);
    for (int i = 0; i < count; i++) {
        json_t *word = json_string(words[i]);
        if (word == NULL)
            return error_set(err, -EINVAL, "word %d of the command is not UTF-8 text", i + 1);
        (void)json_array_append_new(array, word);
    }
    return 0;
}

static void add_env(json_t *body, const struct exec_options *options, bool is_tty)
{
    json_t *env = json_object();
    const char *term = getenv("TERM");
    (void)json_object_set_new(body, "env", env);
    if (is_tty && term != NULL)
        (void)json_object_set_new(env, "TERM", json_string(term));
    for (size_t i = 0; i < options->env.count; i++) {
        const char *entry = options->env.items[i], *equals = strchr(entry, '=');
        _cleanup_free_ char *name = xstrndup(entry, (size_t)(equals - entry));
        (void)json_object_set_new(env, name, json_string(equals + 1));
    }
}

static char shell[] = "/bin/sh", shell_text[] = "-c";

static int make_body(
    const struct exec_options *options, bool is_tty, int argc, char **argv, json_t **ret, struct error *err)
{
    unsigned rows_here, columns_here;
    _cleanup_json_ json_t *body = json_object();
    char *by_shell[] = { shell, shell_text, argv[0] };
    bool is_text = submit_is_shell_text(argc, argv);
    int r =
        is_text ? add_words(body, "command", 3, by_shell, err) : add_words(body, "command", argc, argv, err);
    if (r < 0)
        return r;
    add_env(body, options, is_tty);
    if (options->directory != NULL)
        (void)json_object_set_new(body, "cwd", json_string(options->directory));
    (void)json_object_set_new(body, "tty", json_boolean(is_tty));
    if (is_tty && screen_size(&rows_here, &columns_here)) {
        (void)json_object_set_new(body, "rows", json_integer(rows_here));
        (void)json_object_set_new(body, "columns", json_integer(columns_here));
    }
    *ret = take_ptr(body);
    return 0;
}

/* --- steps --- */

static void add_option(struct strings *words, const char *name, const char *value)
{
    if (value != NULL)
        strings_take(words, xasprintf("--%s=%s", name, value));
}

/* srun does all of it: this process executes srun. */
static int run_step(struct call *call, const char *job, int argc, char **argv, struct error *err)
{
    const struct exec_options *options = call->options;
    _cleanup_strings_ struct strings words = { 0 };
    strings_take(&words, program_find("mgpu-slurm"));
    strings_add(&words, "srun");
    add_option(&words, "jobid", job);
    add_option(&words, "ntasks", options->tasks != NULL ? options->tasks : "1");
    add_option(&words, "cpus-per-task", options->cpus);
    add_option(&words, "gpus-per-task", options->gpus);
    add_option(&words, "chdir", options->directory);
    if (options->is_overlapping)
        strings_add(&words, "--overlap");
    if (options->is_tty)
        strings_add(&words, "--pty");
    if (options->has_no_input)
        strings_add(&words, "--input=none");
    strings_add(&words, "--");
    for (int i = 0; i < argc; i++)
        strings_add(&words, argv[i]);
    for (size_t i = 0; i < options->env.count; i++)
        (void)putenv(options->env.items[i]);
    int r = client_export(&call->client);
    if (r < 0)
        return error_set_errno(err, r, "cannot pass the address of mgpud on");
    (void)execvp(words.items[0], words.items);
    return error_set_errno(err, -errno, "cannot start %.200s", words.items[0]);
}

static int check_step(const struct exec_options *options, struct error *err)
{
    bool has_share = options->tasks != NULL || options->cpus != NULL || options->gpus != NULL;
    if (!options->is_step && (has_share || options->is_overlapping))
        return error_set(err, -EINVAL, "-n, -c, --gpus-per-task and --overlap need --step");
    if (options->is_step && options->terminal.rank != 0)
        return error_set(err, -EINVAL, "--rank and --step exclude each other: a step has tasks on all nodes");
    return 0;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    const struct exec_options *options = call->options;
    _cleanup_strings_ struct strings jobs = { 0 };
    _cleanup_json_ json_t *body = NULL;
    bool is_marked = argc > 1 && strcmp(argv[1], "--") == 0;
    if (is_marked) {
        argv[1] = argv[0];
        argv++;
        argc--;
    } else if (argc > 1 && argv[1][0] == '-') {
        (void)error_set(err, -EINVAL, "%.60s follows the job, where the command begins", argv[1]);
        return error_hint(err, "options come first: mgpu exec %.60s ... %.60s -- COMMAND", argv[1], argv[0]);
    }
    if (argc < 2) {
        (void)error_set(err, -EINVAL, argc == 0 ? "no job and command given" : "no command given");
        return error_hint(err, "for example: mgpu exec 42 -- nvidia-smi");
    }
    int r = check_step(options, err);
    if (r == 0)
        r = selector_resolve(call, 1, argv, &jobs, err);
    if (r == 0 && jobs.count != 1)
        r = error_set(err, -EINVAL, "'%.60s' matches %zu jobs; give one", argv[0], jobs.count);
    if (r == 0 && options->is_step)
        return run_step(call, jobs.items[0], argc - 1, argv + 1, err);
    bool is_tty =
        options->is_tty || (!options->is_never_tty && !options->has_no_input && session_is_on_terminal());
    if (r == 0 && options->is_tty && options->has_no_input)
        r = error_set(err, -EINVAL, "-T and --no-input exclude each other: keys are standard input");
    if (r == 0)
        r = make_body(options, is_tty, argc - 1, argv + 1, &body, err);
    if (r < 0)
        return r;
    struct session_options session = {
        .job = jobs.items[0],
        .rank = options->terminal.rank,
        .exec = body,
        .leaver = is_tty ? LEAVER_EXEC_TERMINAL : LEAVER_EXEC,
        .is_tty = is_tty,
        .is_input_shut = options->has_no_input,
    };
    int status = -1;
    uint64_t position = 0;
    r = detach_keys_parse(&session.keys, options->terminal.detach_keys, err);
    if (r == 0)
        r = session_run(call, &session, &status, &position, err);
    if (r < 0)
        return r;
    return r == SESSION_DETACHED ? EXIT_OK : status < 0 || status > 255 ? EXIT_SELF : status;
}

const struct command command_exec = {
    .name = "exec",
    .usage = "[OPTIONS] JOB [--] COMMAND [ARGUMENT...]",
    .help = "Run another process in a running job, with its GPUs, limits and environment",
    .detail = "The process ends with the job at the latest, or when this end disconnects.\n"
              "Exit status: that of the command, 128+N if signal N killed it, 126 or 127 if it could not be\n"
              "executed; 6 if the job is not running.",
    .tables = { rows },
    .options_size = sizeof(struct exec_options),
    .stops_at_operand = true,
    .run = run,
    .clear = clear,
};
