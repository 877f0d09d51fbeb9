/* SPDX-License-Identifier: MIT */
/* mgpu exec: another process in a running job, with its GPUs, limits and environment. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "cli/verbs/verbs.h"
#include "cli/api/exit_code.h"
#include "cli/term/field.h"
#include "cli/options/selector.h"
#include "cli/follow/session.h"
#include "cli/follow/terminal_options.h"

struct exec_options {
    struct terminal_options terminal;
    bool is_tty, is_never_tty;
    const char *directory;
    struct strings env;
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

static const struct option_row rows[] = {
    { 0, "rank", "N", "for a job on several nodes: rank N, from 0 (0)", TERMINAL_RANK(struct exec_options) },
    { 'T', "tty", NULL, "run on a terminal (default if this is one)",
        OPTION_INNER(flag, struct exec_options, is_tty) },
    { 0, "no-tty", NULL, "do not run on a terminal", OPTION_INNER(flag, struct exec_options, is_never_tty) },
    { 'C', "chdir", "DIR", "run in this directory instead of the job's", set_directory },
    { 'e', "env", "NAME=VALUE", "set a variable; can be repeated", set_env },
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

static int make_body(
    const struct exec_options *options, bool is_tty, int argc, char **argv, json_t **ret, struct error *err)
{
    unsigned rows_here, columns_here;
    _cleanup_json_ json_t *body = json_object();
    int r = add_words(body, "command", argc, argv, err);
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
    int r = selector_resolve(&call->client, 1, argv, &jobs, err);
    if (r == 0 && jobs.count != 1)
        r = error_set(err, -EINVAL, "'%.60s' matches %zu jobs; give one", argv[0], jobs.count);
    bool is_tty = options->is_tty || (!options->is_never_tty && session_is_on_terminal());
    if (r == 0)
        r = make_body(options, is_tty, argc - 1, argv + 1, &body, err);
    if (r < 0)
        return r;
    struct session_options session = {
        .path = jobs.items[0], .rank = options->terminal.rank, .exec = body, .is_tty = is_tty
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
