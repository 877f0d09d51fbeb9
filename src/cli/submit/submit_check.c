/* SPDX-License-Identifier: MIT */
#include "cli/submit/submit_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/options/talk.h"
#include "cli/submit/script.h"
#include "cli/submit/submit.h"
#include "cli/submit/submit_check_nodes.h"
#include "cli/submit/submit_check_setup.h"
#include "cli/term/time_text.h"
#include "cli/term/words.h"
#include "job/ask.h"
#include "job/spec.h"

#define SHOWN_MAX      200
#define BEGIN_SLACK_MS 1000 // "now" does not count as past
#define MIB            (INT64_C(1) << 20)
#define GPU_MEMORY_MIN (256 * MIB) // the context of a CUDA program alone takes about this much

static char *shown(const char *text)
{
    return text_escape(text, SHOWN_MAX);
}

/* The path as seen by the job, relative to its directory. */
static char *from_directory(const struct submit_options *options, const char *path)
{
    if (path[0] == '/' || options->directory == NULL)
        return xstrdup(path);
    return xasprintf("%s/%s", options->directory, path);
}

/* Warns about a directory that is missing or closed to this user. True if the job can use it. */
static bool check_folder(const char *path, int access_needed, const char *consequence, bool is_warned)
{
    struct stat st;
    _cleanup_free_ char *name = shown(path);
    bool is_there = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    bool is_closed = is_there ? access(path, access_needed) < 0 : errno == EACCES;
    if (is_there && !is_closed)
        return true;
    if (is_warned && is_closed)
        talk_line("warning: you have no access to %s; the job cannot %s it", name, consequence);
    else if (is_warned)
        talk_line(
            "warning: no such directory: %s; the job cannot %s it: mkdir -p %s", name, consequence, name);
    return false;
}

static bool check_directory(const struct submit_options *options)
{
    return options->directory == NULL ||
           check_folder(options->directory, X_OK, "start without", options->fallback == NULL);
}

/* "out/%j.log" -> "out", as seen by the job. The caller frees it. */
static char *output_folder(const struct submit_options *options)
{
    const char *slash = strrchr(options->output, '/');
    if (slash == NULL)
        return from_directory(options, ".");
    _cleanup_free_ char *parent =
        xstrndup(options->output, slash == options->output ? 1 : (size_t)(slash - options->output));
    return from_directory(options, parent);
}

/* A name with a placeholder is always a new file. */
static void check_output_folder(const struct submit_options *options, bool is_new)
{
    _cleanup_free_ char *path = output_folder(options), *name = shown(path);
    if (strchr(path, '%') != NULL || !check_folder(path, X_OK, "write its output without", true))
        return;
    if (is_new && access(path, W_OK) < 0)
        talk_line("warning: you may not create files in %s; the job cannot write its output there", name);
}

/* Shells replace it only at the beginning of a word, and not in option lines. */
static void check_tilde(const char *option, const char *path)
{
    _cleanup_free_ char *name = path != NULL ? shown(path) : NULL;
    if (path != NULL && path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
        talk_line(
            "warning: %s %s: ~ is not replaced here and names a directory of that name; write the whole path",
            option, name);
}

/* Slurm and others have more codes. */
static void check_codes(const char *option, const char *path)
{
    for (const char *p = path != NULL ? strchr(path, '%') : NULL; p != NULL; p = strchr(p, '%')) {
        p += 1 + strspn(p + 1, "0123456789");
        if (*p != '\0' && strchr(SPEC_FILE_CODES, *p) != NULL) {
            p++;
            continue;
        }
        _cleanup_free_ char *name = shown(path);
        talk_line("warning: %s %s: a %% that begins none of %%j %%n %%a %%A %%h %%r %%%% stays as it is",
            option, name);
        return;
    }
}

/* In a job, only mgpu's choice of GPUs and numbers is valid. */
static void check_variables(const struct submit_options *options)
{
    static const char *const set[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
        "MGPU_JOB_ID", "MGPU_GPUS", "MGPU_NUM_GPUS" };
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
        if (strings_get_env(&options->env, set[i]) != NULL)
            talk_line(
                "warning: -e %s has no effect: the job has that of its own GPUs; -G chooses them", set[i]);
}

/* A target of one word that is not an address is a command, but often a service was intended. */
static void check_notify(const struct submit_options *options)
{
    size_t i;
    const json_t *target;
    json_array_foreach(json_object_get(options->ask, "notify"), i, target)
    {
        const char *word = json_string_value(target);
        bool is_word = word != NULL && word[0] != '\0' && strpbrk(word, "/:@ \t;|&$'\"") == NULL;
        if (!is_word || strcmp(word, "mail") == 0 || script_find_in_path(word, "/", false))
            continue;
        _cleanup_free_ char *name = shown(word);
        talk_line(
            "warning: --notify %s: command not found in PATH; a target is mail, a URL or a command", name);
    }
}

static bool is_swept(const struct submit_options *options, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < options->sweeps.count; i++)
        if (strncmp(options->sweeps.items[i], name, length) == 0 && options->sweeps.items[i][length] == '=')
            return true;
    return false;
}

/* {seed} is replaced by a --sweep with that name; otherwise it is kept. */
static void check_placeholders(const struct submit_options *options, const char *option, const char *text)
{
    for (const char *p = text; p != NULL && (p = strchr(p, '{')) != NULL; p++) {
        _cleanup_free_ char *name = xstrndup(p + 1, strcspn(p + 1, "}"));
        if (p[1 + strlen(name)] != '}' || !words_is_variable(name) || is_swept(options, name))
            continue;
        _cleanup_free_ char *word = shown(name);
        talk_line("warning: {%s} in %s is not replaced: there is no --sweep %s=VALUES", word, option, word);
    }
}

/* Ranges in the forms of other programs. */
static void check_sweeps(const struct submit_options *options)
{
    for (size_t i = 0; i < options->sweeps.count; i++) {
        const char *values = strchr(options->sweeps.items[i], '=');
        int first, last, end = 0;
        if (values == NULL || sscanf(values, "=%9d..%9d%n", &first, &last, &end) < 2 || values[end] != '\0')
            continue;
        _cleanup_free_ char *word = shown(options->sweeps.items[i]);
        talk_line("warning: --sweep %s is one value; a range is %d-%d", word, first, last);
    }
}

static void check_output(const struct submit_options *options)
{
    struct stat st;
    if (options->output == NULL)
        return;
    _cleanup_free_ char *path = from_directory(options, options->output), *name = shown(path);
    bool is_new = strchr(options->output, '%') != NULL || stat(path, &st) < 0;
    check_output_folder(options, is_new);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        talk_line(
            "warning: %s is a symbolic link, which the output of a job does not follow; name the file itself",
            name);
        return;
    }
    if (is_new)
        return;
    if (S_ISDIR(st.st_mode))
        talk_line("warning: %s is a directory; the job cannot write its output to it", name);
    else if (access(path, W_OK) < 0)
        talk_line("warning: you may not write to %s; the job cannot write its output to it", name);
    else if (S_ISREG(st.st_mode) && st.st_size > 0)
        talk_line("%s exists; the output is appended to it", name);
}

static void check_input(const struct submit_options *options)
{
    struct stat st;
    if (options->input == NULL || strcmp(options->input, SPEC_INPUT_SENT) == 0 ||
        strchr(options->input, '%') != NULL)
        return;
    _cleanup_free_ char *path = from_directory(options, options->input), *name = shown(path);
    if (stat(path, &st) < 0 && errno == ENOENT)
        talk_line("warning: no such file: %s; the job cannot start without its input", name);
    else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        talk_line("warning: %s is a directory; the job cannot read its input from it", name);
    else if (access(path, R_OK) < 0 && errno == EACCES)
        talk_line("warning: you may not read %s; the job cannot start without its input", name);
}

/* Checks the container runtime, which the node searches for in its own PATH. */
static void check_image(const struct submit_options *options)
{
    if (options->image.name == NULL)
        return;
    if (options->image.runtime != NULL && !script_find_in_path(options->image.runtime, "/", false))
        talk_line("warning: --image-runtime %s: there is no %s here", options->image.runtime,
            options->image.runtime);
    else if (options->image.runtime == NULL && !script_find_in_path("podman", "/", false) &&
             !script_find_in_path("apptainer", "/", false))
        talk_line("warning: --image: there is neither podman nor apptainer here");
}

/* The kernel takes the carriage return after "#!/bin/sh" as part of the name. */
static bool has_foreign_line_ends(const char *path)
{
    char head[256];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);
    const char *end = n > 2 && memcmp(head, "#!", 2) == 0 ? memchr(head, '\n', (size_t)n) : NULL;
    return end != NULL && end[-1] == '\r';
}

/* Such a file is not executed as the script that it appears to be. */
static bool has_byte_order_mark(const char *path)
{
    char head[3];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);
    return n > 0 && (text_mark_length(head, (size_t)n) > 0 || text_mark_is_wide(head, (size_t)n));
}

/* The command that runs a file in a language that names no interpreter, or NULL. */
static char *interpreter_command(const char *path)
{
    static const struct {
        const char *suffix, *interpreter;
    } rows[] = { { ".py", "python3" }, { ".R", "Rscript" }, { ".jl", "julia" }, { ".pl", "perl" },
        { ".rb", "ruby" }, { ".js", "node" } };
    const char *dot = strrchr(path, '.'), *interpreter = NULL;
    char first[2] = "";
    for (size_t i = 0; dot != NULL && dot > path && dot[-1] != '/' && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(dot, rows[i].suffix) == 0)
            interpreter = rows[i].interpreter;
    if (interpreter == NULL)
        return NULL;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && read(fd, first, sizeof(first)) == (ssize_t)sizeof(first) && memcmp(first, "#!", 2) == 0)
        return NULL;
    _cleanup_free_ char *name = shown(path);
    return xasprintf("%s %s", interpreter, name);
}

void submit_check_interpreter(const struct call *call, const char *path)
{
    _cleanup_free_ char *command = call->is_quiet ? NULL : interpreter_command(path), *name = shown(path);
    if (command != NULL)
        talk_line("warning: %s names no interpreter; to run it: %s", name, command);
}

/* Its author expects them to have an effect. */
static void check_option_lines(const char *path)
{
    _cleanup_script_ struct script script = { 0 };
    _cleanup_free_ char *name = shown(path);
    if (script_open(&script, path) && script.has_options)
        talk_line(
            "warning: the #MGPU and #SBATCH lines of %s have no effect here; to use them: mgpu submit %s",
            name, name);
}

/* Checks a program that is given by its path. */
static void check_path(const struct submit_options *options, const char *word)
{
    _cleanup_free_ char *path = from_directory(options, word), *name = shown(path);
    struct stat st;
    bool is_file = stat(path, &st) == 0 && S_ISREG(st.st_mode);
    _cleanup_free_ char *by = is_file ? interpreter_command(path) : NULL;
    if (stat(path, &st) < 0 && errno == ENOENT)
        talk_line("warning: no such file: %s", name);
    else if (by != NULL)
        talk_line("warning: %s names no interpreter; to run it: %s", name, by);
    else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        talk_line("warning: %s is a directory", name);
    else if (stat(path, &st) == 0 && access(path, X_OK) < 0)
        talk_line("warning: %s is not executable: chmod +x %s", name, name);
    else if (has_byte_order_mark(path))
        talk_line("warning: %s begins with a byte order mark, so its first line names no interpreter", name);
    else if (has_foreign_line_ends(path))
        talk_line(
            "warning: %s has Windows line endings, so its interpreter is not found: sed -i 's/\\r$//' %s",
            name, name);
}

/* Checks a program that is searched for in PATH, which a setup may change. */
static void check_name(const struct submit_options *options, const char *word)
{
    _cleanup_free_ char *setup = setup_text_make(&options->setup), *name = shown(word);
    _cleanup_free_ char *file = from_directory(options, word);
    struct stat st;
    for (size_t i = 0; i < options->env.count; i++)
        if (strncmp(options->env.items[i], "PATH=", 5) == 0)
            return;
    const char *directory = options->directory != NULL ? options->directory : ".";
    const char *equals = strchr(word, '=');
    if (setup != NULL || options->env_files != NULL || script_find_in_path(word, directory, false))
        return;
    if (equals != NULL && equals > word && stat(file, &st) < 0) {
        talk_line("warning: %s: command not found in PATH; to set a variable: -e %s", name, name);
        return;
    }
    bool is_file = stat(file, &st) == 0 && S_ISREG(st.st_mode);
    _cleanup_free_ char *by = is_file ? interpreter_command(file) : NULL;
    if (!is_file && strcmp(word, "python") == 0 && script_find_in_path("python3", directory, false))
        talk_line("warning: python: command not found in PATH; python3 is available");
    else if (!is_file)
        talk_line("warning: %s: command not found in PATH", name);
    else if (by != NULL)
        talk_line("warning: %s is not in PATH; to run it: %s", name, by);
    else if (access(file, X_OK) == 0)
        talk_line("warning: %s is not in PATH; to run the file in the job's directory, use ./%s", name, name);
    else
        talk_line("warning: %s is not in PATH; to run the file of that name: chmod +x %s, and use ./%s", name,
            name, name);
}

/* Checks the script of an interpreter if it is the first argument. */
static void check_script(const struct submit_options *options, const char *word, const char *script)
{
    static const char *const interpreters[] = { "python", "bash", "sh", "dash", "zsh", "perl", "Rscript",
        "julia" };
    const char *slash = strrchr(word, '/'), *program = slash != NULL ? slash + 1 : word;
    size_t length = strcspn(program, "0123456789.");
    struct stat st;
    if (script == NULL || script[0] == '-' || script[0] == '\0')
        return;
    for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++) {
        if (strlen(interpreters[i]) != length || strncmp(program, interpreters[i], length) != 0)
            continue;
        _cleanup_free_ char *path = from_directory(options, script), *name = shown(path);
        if (stat(path, &st) < 0 && errno == ENOENT)
            talk_line("warning: no such file: %s", name);
        else
            check_option_lines(path);
    }
}

/* A number without a unit is in MiB, but often GiB was intended. */
static void check_gpu_memory(const json_t *ask)
{
    json_int_t bytes = json_integer_value(json_object_get(ask, "gpu_mem"));
    char size[32];
    if (bytes <= 0 || bytes >= GPU_MEMORY_MIN)
        return;
    format_size((uint64_t)bytes, size, sizeof(size));
    if (bytes % MIB == 0)
        talk_line("warning: %s of GPU memory is less than a CUDA program needs to start; did you mean %lldG?",
            size, (long long)(bytes / MIB));
    else
        talk_line("warning: %s of GPU memory is less than a CUDA program needs to start", size);
}

/* Only processes that handle the signal get it, and they do so some time after they have begun. */
static void check_warning(const json_t *ask)
{
    const char *text = field_text(ask, "warn_signal");
    int64_t limit_ms = field_integer(ask, "time_limit", 0) * 1000, before_ms = 0;
    char before[32], limit[32];
    int signal = 0;
    bool is_set = text != NULL && limit_ms > 0 && parse_warn_signal(text, &signal, &before_ms, NULL) == 0;
    if (!is_set || before_ms < limit_ms)
        return;
    format_duration(before_ms, before, sizeof(before));
    format_duration(limit_ms, limit, sizeof(limit));
    talk_line(
        "warning: the signal of --signal is due %s before the time limit of %s, so it is sent at the start, "
        "which is too early for most programs",
        before, limit);
}

void submit_check_ask(struct call *call, const json_t *ask)
{
    int64_t begin_ms = time_parse(field_text(ask, "begin"));
    if (call->is_quiet)
        return;
    if (begin_ms > 0 && begin_ms + BEGIN_SLACK_MS < clock_wall_ms())
        talk_line("the begin time has passed: the job can start at once");
    check_gpu_memory(ask);
    check_warning(ask);
    submit_check_nodes(call, ask);
}

static void check_sweep_names(const struct submit_options *options)
{
    check_sweeps(options);
    check_placeholders(options, "-J", field_text(options->ask, "name"));
    check_placeholders(options, "-o", options->output);
}

static bool is_silent(const struct call *call)
{
    return call->is_quiet || call->client.host != NULL;
}

/* True if the job will find its directory, as far as is known here. */
static bool check_options(const struct call *call)
{
    const struct submit_options *options = call->options;
    check_tilde("-C", options->directory);
    check_tilde("-o", options->output);
    check_tilde("--error", options->error);
    check_tilde("--input", options->input);
    check_codes("-o", options->output);
    check_codes("--error", options->error);
    check_codes("--input", options->input);
    check_variables(options);
    submit_check_setup(options);
    check_input(options);
    check_image(options);
    check_notify(options);
    bool has_directory = check_directory(options);
    if (has_directory || options->fallback != NULL)
        check_output(options);
    return has_directory;
}

/* Scripts that the command runs, itself or by an interpreter. */
static void check_scripts(const struct submit_options *options, const char *word, const char *next)
{
    _cleanup_free_ char *path = from_directory(options, word);
    if (word[0] == '\0' || options->image.name != NULL)
        return;
    if (strchr(word, '/') != NULL)
        check_option_lines(path);
    check_script(options, word, next);
}

/* The words of a shell command, as far as they need no shell. */
static void check_shell_text(const struct submit_options *options, const char *text)
{
    _cleanup_strings_ struct strings words = { 0 };
    (void)words_split(text, &words, NULL);
    if (words.count > 0)
        check_scripts(options, words.items[0], words.count > 1 ? words.items[1] : NULL);
}

static void check_words(const struct submit_options *options, const json_t *command)
{
    const char *word = json_string_value(json_array_get(command, 0));
    if (word == NULL || word[0] == '\0' || options->image.name != NULL)
        return;
    if (strchr(word, '/') != NULL)
        check_path(options, word);
    else
        check_name(options, word);
}

void submit_check_command(const struct call *call, const json_t *command)
{
    const struct submit_options *options = call->options;
    const char *word = json_string_value(json_array_get(command, 0));
    if (is_silent(call))
        return;
    check_words(options, command);
    if (json_is_string(command))
        check_shell_text(options, json_string_value(command));
    else if (word != NULL)
        check_scripts(options, word, json_string_value(json_array_get(command, 1)));
}

/* True if the command can be checked. */
static bool check_request(struct call *call)
{
    const struct submit_options *options = call->options;
    submit_check_ask(call, options->ask);
    if (!call->is_quiet)
        check_sweep_names(options);
    return !is_silent(call) && check_options(call);
}

void submit_check(struct call *call, const json_t *command)
{
    if (check_request(call))
        submit_check_command(call, command);
}

void submit_check_script(struct call *call, const json_t *command)
{
    if (check_request(call))
        check_words(call->options, command);
}
