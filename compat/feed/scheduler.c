/* SPDX-License-Identifier: MIT */
/* scheduler: a file whose lines become jobs. This file has the verbs other than start and status. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "compat/feed/feed.h"
#include "compat/personalities/compat_common.h"
#include "compat/personalities/personality.h"

#define JOBS_FILE "jobs.txt"

/* --- add --- */

struct add_options {
    const char *conda, *arguments, *gpus, *path;
    int64_t priority;
};

static struct add_options *options_of(void *call)
{
    return ((struct call *)call)->options;
}

static int set_conda(void *call, const char *value, struct error *err)
{
    options_of(call)->conda = value;
    return 0;
}

static int set_arguments(void *call, const char *value, struct error *err)
{
    options_of(call)->arguments = value;
    return 0;
}

static int set_priority(void *call, const char *value, struct error *err)
{
    return parse_integer(
        value, "--priority", -FEED_PRIORITY_MAX, FEED_PRIORITY_MAX, &options_of(call)->priority, err);
}

static int set_gpus(void *call, const char *value, struct error *err)
{
    options_of(call)->gpus = value;
    return 0;
}

static const struct option_row add_rows[] = {
    { 0, "conda", "ENV", "conda environment to activate", set_conda },
    { 0, "args", "TEXT", "arguments, split as a shell would", set_arguments },
    { 0, "priority", "N", "lowest runs first", set_priority, "0" },
    { 0, "gpus", "LIST", "only these GPUs: 0,1 or 0-3", set_gpus },
    { 0, "output-file", "FILE", "where to add the line; - prints it",
        OPTION_INNER(text, struct add_options, path), .preset = JOBS_FILE },
    { 0 },
};

/* True if the last line of the file has no line end. */
static bool is_open_ended(int fd)
{
    struct stat status;
    char last = '\n';
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    return pread(fd, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

/* One write at the end, so that whoever else adds a line at the same time does not mix with it. */
static int append_line(const char *path, const char *line, struct error *err)
{
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot open %.200s", path);
    _cleanup_free_ char *text = xasprintf("%s%s\n", is_open_ended(fd) ? "\n" : "", line);
    int r = write_all(fd, text, strlen(text));
    return r < 0 ? error_set_errno(err, r, "cannot write to %.200s", path) : 0;
}

static int add(struct call *call, int argc, char **argv, struct error *err)
{
    const struct add_options *options = call->options;
    _cleanup_free_ char *text = NULL;
    _cleanup_feed_line_ struct feed_line line = { .priority = options->priority };
    if (argc != 1)
        return error_set(
            err, -EINVAL, argc == 0 ? "no script given" : "more than one script; arguments go into --args");
    line.script = xstrdup(argv[0]);
    line.conda = xstrdup(options->conda);
    line.arguments = xstrdup(options->arguments);
    line.gpus = xstrdup(options->gpus);
    const char *path = options->path;
    int r = feed_line_format(&line, &text, err);
    if (r < 0)
        return r;
    if (strcmp(path, "-") == 0) {
        (void)puts(text);
        return EXIT_OK;
    }
    r = append_line(path, text, err);
    if (r < 0)
        return r;
    if (!call->is_quiet)
        (void)printf("added to %s: %s\n", path, text);
    return EXIT_OK;
}

static const struct command add_command = {
    .name = "add",
    .usage = "[OPTIONS] SCRIPT",
    .help = "Add a line to the jobs file",
    .tables = { add_rows },
    .options_size = sizeof(struct add_options),
    .run = add,
};

/* --- pause and resume --- */

static bool is_called(const json_t *gpu, const char *name)
{
    _cleanup_free_ char *index = field_shown(gpu, "index");
    _cleanup_free_ char *with_node = xasprintf("%s:%s", field_text(gpu, "node"), index);
    return strcmp(index, name) == 0 || strcmp(with_node, name) == 0;
}

/* Rejects an unknown GPU and lists the existing ones. */
static int check_gpu(struct call *call, const char *name, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    json_t *gpu = NULL;
    int r = client_get(&call->client, API_PATH "/gpus", &answer, err);
    if (r < 0)
        return r;
    const json_t *gpus = json_object_get(answer, "gpus");
    json_array_foreach(gpus, index, gpu) if (is_called(gpu, name)) return 0;
    size_t count = json_array_size(gpus);
    if (count == 0)
        return error_set(err, -ENOENT, "there is no GPU '%.60s': there are no GPUs", name);
    return error_set(err, -ENOENT, "there is no GPU '%.60s': valid numbers are 0 to %lld", name,
        (long long)field_integer(json_array_get(gpus, count - 1), "index", 0));
}

static int set_use(struct call *call, bool is_pause, int argc, char **argv, struct error *err)
{
    if (argc != 1)
        return error_set(err, -EINVAL, argc == 0 ? "no GPU given" : "give one GPU at a time");
    int r = check_gpu(call, argv[0], err);
    if (r < 0)
        return r;
    _cleanup_json_ json_t *body = json_pack("{s:[s]}", "gpus", argv[0]);
    if (is_pause)
        (void)json_object_set_new(body, "reason", json_string(FEED_REASON));
    r = client_call(
        &call->client, "POST", is_pause ? API_PATH "/gpus/pause" : API_PATH "/gpus/resume", body, NULL, err);
    if (r == -EPERM)
        return error_hint(err,
            "a pause affects all users: use sudo scheduler %s %s, or run your own scheduler; allowed_gpus of "
            "a line keeps your job off a GPU",
            is_pause ? "pause" : "resume", argv[0]);
    if (r < 0)
        return r;
    if (!call->is_quiet)
        (void)printf(
            is_pause ? "GPU %s is paused: no new job starts there\n" : "GPU %s is in use again\n", argv[0]);
    return EXIT_OK;
}

static int pause_gpu(struct call *call, int argc, char **argv, struct error *err)
{
    return set_use(call, true, argc, argv, err);
}

static int resume_gpu(struct call *call, int argc, char **argv, struct error *err)
{
    return set_use(call, false, argc, argv, err);
}

static const struct command pause_command = {
    .name = "pause",
    .usage = "GPU",
    .help = "Start no new jobs on a GPU; running jobs are not affected",
    .run = pause_gpu,
};

static const struct command resume_command = {
    .name = "resume",
    .usage = "GPU",
    .help = "Resume a GPU",
    .run = resume_gpu,
};

/* --- screens --- */

/* Its session, as the job names it; or how to reach its terminal. False for a job without either. */
static bool print_session(const json_t *job)
{
    const char *mode = field_text(json_object_get(job, "env"), FEED_MODE_VARIABLE);
    _cleanup_buffer_ struct buffer gpus = { 0 };
    long long id = (long long)field_integer(job, "id", 0);
    size_t index = 0;
    json_t *grant = NULL;
    if (mode == NULL)
        return false;
    json_array_foreach(json_object_get(job, "granted"), index, grant)
        buffer_printf(&gpus, "%s%lld", index > 0 ? "," : "", (long long)field_integer(grant, "index", 0));
    _cleanup_free_ char *name = text_escape(field_text(job, "name"), 80);
    if (json_is_true(json_object_get(job, "tty")))
        (void)printf("job %lld (%s) on GPU %s: mgpu attach %lld\n", id, name, buffer_text(&gpus), id);
    else
        (void)printf("gpujob_%s_%s_%lld (%s): screen -r gpujob_%s_%s_%lld\n", buffer_text(&gpus), mode, id,
            name, buffer_text(&gpus), mode, id);
    return true;
}

static int screens(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    json_t *job = NULL;
    size_t index = 0, count = 0;
    int r = client_get(&call->client, API_PATH "/jobs?state=running", &answer, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(answer, "jobs"), index, job)
    {
        _cleanup_json_ json_t *whole = NULL;
        _cleanup_free_ char *path = xasprintf(API_PATH "/jobs/%lld", (long long)field_integer(job, "id", 0));
        if (field_integer(job, "uid", -1) != (int64_t)geteuid())
            continue;
        r = client_get(&call->client, path, &whole, err);
        if (r < 0 && r != -ENOENT)
            return r;
        count += r == 0 && print_session(whole);
    }
    if (count == 0 && !call->is_quiet)
        (void)puts("no session is active");
    return EXIT_OK;
}

static const struct command screens_command = {
    .name = "screens",
    .usage = "",
    .help = "List the sessions of running jobs, and how to attach to them",
    .detail = "Ctrl-A d detaches from a screen session; the job continues.",
    .takes_nothing = true,
    .run = screens,
};

static const struct personality_verb verbs[] = {
    { "start", &feed_start_command },
    { "add", &add_command },
    { "status", &feed_status_command },
    { "pause", &pause_command },
    { "resume", &resume_command },
    { "screens", &screens_command },
    { 0 },
};

static const struct wording hint_words[] = {
    { "mgpu gpus", "scheduler status" },
    COMPAT_WORDS,
    { 0 },
};

const struct personality personality_scheduler = {
    .name = "scheduler",
    .verbs = verbs,
    .server = "scheduler start",
    .words = hint_words,
};
