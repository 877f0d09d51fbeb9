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

#include "base/memory.h"
#include "base/parse.h"
#include "cli/field.h"
#include "cli/talk.h"
#include "job/spec.h"

#define KEY_BYTES         16
#define SUBMIT_PATIENT_MS 15000
#define SHELL_CHARACTERS  " \t\n|&;<>()$`\\\"'*?[]#~{}!"
#define GPU_ID_MAX        65535

static int set_gpus(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    int64_t count = 0;
    if (strpbrk(value, ",-") != NULL && value[0] != '-') {
        (void)error_set(err, -EINVAL, "-g: '%.60s' is a list, but -g takes a number of GPUs", value);
        return error_hint(err, "for exactly these GPUs: -G %.60s", value);
    }
    if (strchr(value, '.') != NULL) {
        (void)error_set(err, -EINVAL, "-g: '%.60s' is not a whole number of GPUs", value);
        return error_hint(err, "to share a GPU, say how much of its memory you need: -g 1 -m 8G");
    }
    int r = parse_integer(value, "-g", 0, SPEC_GPUS_MAX, &count, err);
    if (r < 0)
        return r;
    options->gpus = value;
    return 0;
}

static int set_gpu_ids(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    _cleanup_free_ uint32_t *ids = NULL;
    size_t count = 0;
    int r = parse_id_list(value, "-G", GPU_ID_MAX, &ids, &count, err);
    if (r < 0)
        return r;
    options->gpu_ids = value;
    return 0;
}

static int set_gpu_mem(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    uint64_t bytes = 0;
    int r = parse_size(value, "-m", &bytes, err);
    if (r < 0)
        return r;
    options->gpu_mem = value;
    return 0;
}

static int set_priority(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    int64_t priority = 0;
    int r = parse_integer(value, "-p", -SPEC_PRIORITY_MAX, SPEC_PRIORITY_MAX, &priority, err);
    if (r < 0)
        return r;
    options->priority = value;
    return 0;
}

static int set_name(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    (void)err;
    options->name = value;
    return 0;
}

static int set_directory(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    (void)err;
    options->directory = value;
    return 0;
}

static int set_env(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value) {
        (void)error_set(err, -EINVAL, "-e: '%.60s' is not NAME=VALUE", value);
        return error_hint(err, "your own environment is passed on anyway");
    }
    _cleanup_free_ char *name = xstrndup(value, (size_t)(equals - value));
    strings_set_env(&options->env, name, equals + 1);
    return 0;
}

static int set_setup(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    (void)err;
    options->setup = value;
    return 0;
}

static int set_output(void *target, const char *value, struct error *err)
{
    struct submit_options *options = ((struct call *)target)->options;
    (void)err;
    options->output = value;
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
    { 'g', "gpus", "N", "number of GPUs, 0 for none (1)", set_gpus },
    { 'G', "gpu-ids", "LIST", "exactly these GPUs, in this order: 0,2-3", set_gpu_ids },
    { 'm', "gpu-mem", "SIZE", "memory needed on each GPU, which may then be shared: 8G; bare = MiB",
        set_gpu_mem },
    { 0, "mem", "SIZE", NULL, set_gpu_mem },
    { 'p', "priority", "N", "higher runs first (0)", set_priority },
    { 'J', "name", "NAME", "name in lists", set_name },
    { 'C', "chdir", "DIR", "run there instead of here", set_directory },
    { 'e', "env", "NAME=VALUE", "set a variable; may be repeated", set_env },
    { 'E', "setup", "COMMAND", "shell command to run before, in the same environment", set_setup },
    { 0, "env-setup-cmd", "COMMAND", NULL, set_setup },
    { 'o', "output", "FILE", "file for the output; %j is the job id, %n its name", set_output },
    { 'n', "n", "N", NULL, refuse_n },
    { 0 },
};

void submit_options_clear(void *options)
{
    strings_clear(&((struct submit_options *)options)->env);
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

static int add_integer(json_t *request, const char *key, const char *value)
{
    /* Checked when it was read. */
    return value == NULL ? 0 : json_object_set_new(request, key, json_integer(strtol(value, NULL, 10)));
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

static int add_key(json_t *request, struct error *err)
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
        { "gpu_ids", options->gpu_ids },
        { "name", options->name },
        { "setup", options->setup },
        { "output", options->output },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int r = add_text(request, texts[i].key, texts[i].value, err);
        if (r < 0)
            return r;
    }
    uint64_t bytes = 0;
    if (options->gpu_mem != NULL && parse_size(options->gpu_mem, "-m", &bytes, err) == 0)
        (void)json_object_set_new(request, "gpu_mem", json_integer((json_int_t)bytes));
    (void)add_integer(request, "gpus", options->gpus);
    (void)add_integer(request, "priority", options->priority);
    return 0;
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
    r = add_key(request, err);
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

int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    unsigned left_out = 0;
    int r = submit_build(call->options, argc, argv, &request, &left_out, err);
    if (r < 0)
        return r;
    if (left_out > 0 && !call->is_quiet)
        talk_line("%u variables of your environment are not UTF-8 text and were left out", left_out);
    call->client.patience_ms = SUBMIT_PATIENT_MS;
    r = client_call(&call->client, "POST", API_PATH "/jobs", request, ret, err);
    if (r == -EAGAIN) {
        (void)error_wrap(err, "it is not known whether the job was accepted");
        return error_hint(err, "mgpu ps shows whether it is there");
    }
    return r;
}

void submit_print(const struct call *call, const json_t *job)
{
    if (call->is_json) {
        (void)json_dumpf(job, stdout, JSON_INDENT(2));
        (void)fputc('\n', stdout);
        return;
    }
    int64_t id = field_integer(job, "id", 0), position = field_integer(job, "position", 0);
    (void)printf("%" PRId64 "\n", id);
    if (call->is_quiet || isatty(STDERR_FILENO) != 1)
        return;
    (void)fflush(stdout);
    if (position > 0)
        (void)fprintf(stderr, "  queued, position %" PRId64 "\n", position);
    (void)fprintf(
        stderr, "  mgpu logs -f %" PRId64 " · mgpu show %" PRId64 " · mgpu cancel %" PRId64 "\n", id, id, id);
}
