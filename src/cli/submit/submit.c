/* SPDX-License-Identifier: MIT */
/*
 * The request has a random key. If the answer to a submit is lost (mgpud died, or could not determine whether
 * its commit is durable), it is sent again with the same key, which mgpud recognises: it can neither be lost
 * silently nor become two jobs.
 */
#include "cli/submit/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/environment.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/options/ask.h"
#include "cli/options/talk.h"
#include "cli/show/job_columns.h"
#include "cli/show/why_text.h"
#include "cli/submit/gpu_peak.h"
#include "cli/submit/stray_options.h"
#include "cli/submit/submit_check.h"
#include "cli/term/standard.h"

#define KEY_BYTES        16
#define SHELL_CHARACTERS " \t\n|&;<>()$`\\\"'*?[]#~{}!"

static int add_text(json_t *request, const char *key, const char *what, const char *value, struct error *err)
{
    if (value == NULL)
        return 0;
    json_t *text = json_string(value);
    if (text == NULL)
        return error_set(err, -EINVAL, "%s: the value is not UTF-8 text", what);
    return json_object_set_new(request, key, text);
}

bool submit_is_shell_text(int argc, char *const *argv)
{
    return argc == 1 && strpbrk(argv[0], SHELL_CHARACTERS) != NULL && access(argv[0], F_OK) != 0;
}

int submit_words(int argc, char *const *argv, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *words = json_array();
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);
        if (word == NULL)
            return error_set(err, -EINVAL, "word %d of the command is not UTF-8 text", i + 1);
        (void)json_array_append_new(words, word);
    }
    *ret = take_ptr(words);
    return 0;
}

int submit_command(int argc, char **argv, json_t **ret, struct error *err)
{
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no command given");
        return error_hint(err, "for example: mgpu run -g 1 -- python train.py");
    }
    if (argc == 1 && argv[0][strspn(argv[0], " \t\r\n")] == '\0')
        return error_set(err, -EINVAL, "the command is blank");
    if (!submit_is_shell_text(argc, argv))
        return submit_words(argc, argv, ret, err);
    *ret = json_string(argv[0]);
    return *ret == NULL ? error_set(err, -EINVAL, "the command is not UTF-8 text") : 0;
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
        return add_text(request, "cwd", "--chdir", directory, err);
    /* $PWD keeps the symbolic links that the user followed, such as those of an automounter. */
    const char *logical = getenv("PWD");
    bool is_usable = logical != NULL && logical[0] == '/' && is_same_directory(logical, ".");
    _cleanup_free_ char *physical = is_usable ? NULL : getcwd(NULL, 0);
    const char *here = is_usable ? logical : physical;
    if (here == NULL) {
        (void)error_set_errno(err, -errno, "cannot determine the current directory");
        return error_hint(
            err, "it may have been removed: cd to another one, or name one for the job: -C DIR");
    }
    _cleanup_json_ json_t *text = json_string(here);
    if (text == NULL) {
        (void)error_set(err, -EINVAL, "the name of the current directory is not UTF-8 text: %.200s", here);
        return error_hint(err, "submit from another directory, or name one for the job: -C DIR");
    }
    _cleanup_free_ char *joined = directory == NULL ? xstrdup(here) : xasprintf("%s/%s", here, directory);
    return add_text(request, "cwd", "--chdir", joined, err);
}

int submit_renew_key(json_t *request, struct error *err)
{
    uint8_t bytes[KEY_BYTES];
    char key[2 * KEY_BYTES + 1] = "";
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set_errno(err, -errno, "cannot get random bytes");
    for (size_t i = 0; i < KEY_BYTES; i++)
        (void)snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    return json_object_set_new(request, "submit_key", json_string(key));
}

/* Its size is this terminal's until a viewer attaches. */
static void add_terminal(json_t *request)
{
    unsigned rows, columns;
    (void)json_object_set_new(request, "tty", json_true());
    if (!screen_size(&rows, &columns))
        return;
    (void)json_object_set_new(request, "tty_rows", json_integer(rows));
    (void)json_object_set_new(request, "tty_columns", json_integer(columns));
}

static int add_options(json_t *request, const struct submit_options *options, struct error *err)
{
    _cleanup_free_ char *setup = setup_text_make(&options->setup);
    const struct {
        const char *key, *option, *value;
    } texts[] = {
        { "setup", "--setup", setup },
        { "cwd_fallback", "--chdir-fallback", options->fallback },
        { "output", "--output", options->output },
        { "error", "--error", options->error },
        { "input", "--input", options->input },
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int r = add_text(request, texts[i].key, texts[i].option, texts[i].value, err);
        if (r < 0)
            return r;
    }
    int r = image_add(&options->image, request, err);
    if (r < 0)
        return r;
    if (options->ask != NULL)
        (void)json_object_update(request, options->ask);
    if (options->is_tty)
        add_terminal(request);
    if (options->is_truncated)
        (void)json_object_set_new(request, "truncate", json_true());
    if (options->is_held)
        (void)json_object_set_new(request, "hold", json_true());
    return ask_resolve(request, err);
}

int submit_build(const struct submit_options *options, json_t *command, json_t **ret, unsigned *ret_left_out,
    struct error *err)
{
    _cleanup_json_ json_t *request = json_object();
    json_t *env = NULL;
    (void)json_object_set(request, "command", command);
    int r = add_options(request, options, err);
    if (r == 0)
        r = add_directory(request, options->directory, err);
    if (r == 0)
        r = submit_renew_key(request, err);
    if (r == 0)
        r = environment_make(
            options->export, environ, options->env_files, &options->env, &env, ret_left_out, err);
    if (r < 0)
        return r;
    (void)json_object_set_new(request, "env", env);
    mode_t mask = umask(0);
    (void)umask(mask);
    (void)json_object_set_new(request, "umask", json_integer(mask));
    *ret = take_ptr(request);
    return 0;
}

/* Joins all --after to one value. */
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

/* True if both go to the same file, pipe or terminal. */
static bool are_streams_one(void)
{
    struct stat out, error;
    return fstat(STDOUT_FILENO, &out) < 0 || fstat(STDERR_FILENO, &error) < 0 ||
           (out.st_dev == error.st_dev && out.st_ino == error.st_ino);
}

/* If standard output and standard error of this program are different files, those of a displayed job are
 * kept separate. In one file, they keep their order. */
static void choose_log(const struct call *call, json_t *request)
{
    const struct submit_options *options = call->options;
    bool has_files = options->output != NULL || options->error != NULL;
    if (call->is_shown && !options->is_tty && !has_files && !are_streams_one())
        (void)json_object_set_new(request, "split_log", json_true());
}

int submit_request(
    struct call *call, json_t *command, json_t **ret, unsigned *ret_left_out, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    const struct submit_options *options = call->options;
    call->client.is_dry = options->is_dry;
    int r = submit_build(options, command, &request, ret_left_out, err);
    if (r == 0)
        r = add_after(call, request, err);
    if (r == 0)
        r = gpu_peak_settle(call, command, request, err);
    if (r < 0)
        return r;
    choose_log(call, request);
    *ret = take_ptr(request);
    return 0;
}

uint64_t submit_output_size(const struct submit_options *options)
{
    struct stat st;
    if (options->output == NULL || strchr(options->output, '%') != NULL)
        return 0;
    bool is_below = options->output[0] != '/' && options->directory != NULL;
    _cleanup_free_ char *path =
        xasprintf("%s%s%s", is_below ? options->directory : "", is_below ? "/" : "", options->output);
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

void submit_print_left_out(const struct call *call, unsigned left_out)
{
    if (left_out > 0 && !call->is_quiet)
        talk_line("%u environment variable%s not UTF-8 text and omitted", left_out,
            left_out == 1 ? " is" : "s are");
}

void submit_print_notes(const struct call *call, unsigned left_out)
{
    const struct submit_options *options = call->options;
    submit_print_left_out(call, left_out);
    if (options->is_mem_named && !call->is_quiet)
        talk_line("--mem is memory on each GPU, which can then be shared (-m); host memory is -M");
}

/* Reported once, not for each of many jobs. */
static void print_own_priority(struct call *call, const json_t *job)
{
    if (call->is_own_priority_shown || call->is_quiet || !json_is_true(json_object_get(job, "own_priority")))
        return;
    call->is_own_priority_shown = true;
    talk_line("priority %" PRId64
              " orders your own jobs: your jobs with a lower priority wait for it, other users' jobs do not",
        field_integer(job, "priority", 0));
}

int submit_send(struct call *call, const json_t *request, json_t **ret, struct error *err)
{
    call->client.header = call->is_json ? NULL : "Prefer: return=minimal";
    int r = call->is_followed ? client_hold_interrupts(&call->client, err) : 0;
    if (r == 0)
        r = client_call(&call->client, "POST", API_PATH "/jobs", request, ret, err);
    call->client.header = NULL;
    if (r == -EAGAIN || r == -EINTR || r == -ETIMEDOUT) {
        (void)error_wrap(err, "the job may or may not have been accepted");
        return error_hint(err, "check with mgpu ps");
    }
    if (r < 0)
        return r;
    if (json_object_get(request, "split_log") != NULL) // a short answer omits it
        (void)json_object_set(*ret, "split_log", json_object_get(request, "split_log"));
    standard_note_submitted(field_integer(*ret, "id", 0));
    print_own_priority(call, *ret);
    return 0;
}

/* A request with a number of GPUs uses that; one without uses those of the process. */
static int build_adoption(struct call *call, uint32_t pid, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = json_object();
    int r = add_options(request, call->options, err);
    if (r == 0)
        r = submit_renew_key(request, err);
    if (r < 0)
        return r;
    bool has_gpus = json_object_get(request, "gpus") != NULL || json_object_get(request, "gpu_ids") != NULL;
    if (!has_gpus)
        (void)json_object_set_new(request, "gpus", json_integer(0));
    (void)json_object_set_new(request, "adopted_pid", json_integer(pid));
    *ret = take_ptr(request);
    return 0;
}

int submit_adoption(struct call *call, uint32_t pid, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    int r = build_adoption(call, pid, &request, err);
    return r < 0 ? r : submit_send(call, request, ret, err);
}

int submit_job(struct call *call, int argc, char **argv, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *command = NULL, *request = NULL;
    unsigned left_out = 0;
    const struct submit_options *options = call->options;
    int r = submit_command(argc, argv, &command, err);
    if (r == 0)
        r = submit_request(call, command, &request, &left_out, err);
    if (r < 0)
        return r;
    stray_options_warn(call, argc, argv);
    submit_check(call, command);
    submit_print_notes(call, left_out);
    return options->is_dry ? submit_dry(call, request, err) : submit_send(call, request, ret, err);
}

int submit_dry(struct call *call, const json_t *request, struct error *err)
{
    _cleanup_json_ json_t *why = NULL;
    struct screen screen;
    int r = client_call(&call->client, "POST", API_PATH "/jobs?dry_run=1", request, &why, err);
    if (r < 0)
        return r;
    if (call->is_json) {
        show_json_page(why, stdout);
        return EXIT_OK;
    }
    screen_open(&screen, STDOUT_FILENO, call->color);
    struct view view = { .screen = &screen, .times = call->times, .now_ms = clock_wall_ms() };
    why_print(&view, NULL, why, stdout);
    return EXIT_OK;
}

/* "queued, position 3, starts about 14:05 (at the latest 15:40)", as far as known. */
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
        (void)fprintf(stderr, "  held; mgpu release %" PRId64 " starts it\n", field_integer(job, "id", 0));
}

/* The answer to a submit arrives before the scheduler has considered the job; a moment later it has. */
static void show_place(struct call *call, int64_t id)
{
    _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%" PRId64, id);
    _cleanup_json_ json_t *job = NULL;
    if (client_get(&call->client, path, &job, NULL) == 0 && field_is(job, "state", "queued"))
        print_place(call, job);
}

void submit_print(struct call *call, const json_t *job)
{
    if (call->is_json) {
        show_json_page(job, stdout);
        return;
    }
    int64_t id = field_integer(job, "id", 0);
    (void)printf("%" PRId64 "\n", id);
    if (call->is_quiet || isatty(STDERR_FILENO) != 1)
        return;
    (void)fflush(stdout);
    show_place(call, id);
    struct screen screen;
    screen_open(&screen, STDERR_FILENO, call->color);
    const char *dot = screen_dot(&screen);
    _cleanup_free_ char *next =
        xasprintf("  mgpu logs -f %" PRId64 " %s mgpu why %" PRId64 " %s mgpu cancel %" PRId64 "\n", id, dot,
            id, dot, id);
    _cleanup_free_ char *own = talk_in_own_words(next);
    (void)fputs(own, stderr);
}
