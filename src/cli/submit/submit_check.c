/* SPDX-License-Identifier: MIT */
#include "cli/submit/submit_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/submit/script.h"
#include "cli/submit/submit.h"
#include "cli/options/talk.h"

#define SHOWN_MAX 200

static char *shown(const char *text)
{
    return text_escape(text, SHOWN_MAX);
}

/* As the job will see it, relative to its directory. */
static char *from_directory(const struct submit_options *options, const char *path)
{
    if (path[0] == '/' || options->directory == NULL)
        return xstrdup(path);
    return xasprintf("%s/%s", options->directory, path);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* True: it is there. */
static bool check_directory(const struct submit_options *options)
{
    if (options->directory == NULL || is_directory(options->directory))
        return true;
    _cleanup_free_ char *name = shown(options->directory);
    if (options->fallback == NULL)
        talk_line("warning: no such directory: %s; the job cannot start without it: mkdir -p %s", name, name);
    return false;
}

static void check_output_folder(const struct submit_options *options)
{
    const char *slash = strrchr(options->output, '/');
    if (slash == NULL || slash == options->output)
        return;
    _cleanup_free_ char *parent = xstrndup(options->output, (size_t)(slash - options->output));
    _cleanup_free_ char *path = from_directory(options, parent), *name = shown(path);
    if (strchr(parent, '%') == NULL && !is_directory(path))
        talk_line("warning: no such directory: %s; the job cannot write its output without it: mkdir -p %s",
            name, name);
}

static void check_output(const struct submit_options *options)
{
    struct stat st;
    if (options->output == NULL)
        return;
    check_output_folder(options);
    _cleanup_free_ char *path = from_directory(options, options->output), *name = shown(path);
    if (strchr(options->output, '%') != NULL || stat(path, &st) < 0)
        return;
    if (S_ISDIR(st.st_mode))
        talk_line("warning: %s is a directory; the job cannot write its output to it", name);
    else if (S_ISREG(st.st_mode) && st.st_size > 0)
        talk_line("%s exists; the output is appended to it", name);
}

/* The kernel takes the carriage return behind "#!/bin/sh" for a part of the name. */
static bool has_foreign_line_ends(const char *path)
{
    char head[256];
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);
    const char *end = n > 2 && memcmp(head, "#!", 2) == 0 ? memchr(head, '\n', (size_t)n) : NULL;
    return end != NULL && end[-1] == '\r';
}

/* The path of a program that is named by it. */
static void check_path(const struct submit_options *options, const char *word)
{
    _cleanup_free_ char *path = from_directory(options, word), *name = shown(path);
    struct stat st;
    if (stat(path, &st) < 0 && errno == ENOENT)
        talk_line("warning: no such file: %s", name);
    else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        talk_line("warning: %s is a directory", name);
    else if (stat(path, &st) == 0 && access(path, X_OK) < 0)
        talk_line("warning: %s is not executable: chmod +x %s", name, name);
    else if (has_foreign_line_ends(path))
        talk_line(
            "warning: %s has Windows line endings, so its interpreter is not found: sed -i 's/\\r$//' %s",
            name, name);
}

/* A program that is looked for in PATH, which a setup may change. */
static void check_name(const struct submit_options *options, const char *word)
{
    _cleanup_free_ char *setup = setup_text_make(&options->setup), *name = shown(word);
    _cleanup_free_ char *file = from_directory(options, word);
    struct stat st;
    for (size_t i = 0; i < options->env.count; i++)
        if (strncmp(options->env.items[i], "PATH=", 5) == 0)
            return;
    if (setup != NULL || options->env_files != NULL || script_is_in_path(word))
        return;
    if (stat(file, &st) < 0 || !S_ISREG(st.st_mode))
        talk_line("warning: %s: command not found in PATH", name);
    else if (access(file, X_OK) == 0)
        talk_line("warning: %s is not in PATH; to run the file in the job's directory, use ./%s", name, name);
    else
        talk_line("warning: %s is not in PATH; to run the file of that name: chmod +x %s, and use ./%s", name,
            name, name);
}

/* The script of an interpreter, where it is its first argument. */
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
    }
}

void submit_check(const struct call *call, const json_t *command)
{
    const struct submit_options *options = call->options;
    if (call->is_quiet || call->client.host != NULL)
        return;
    bool has_directory = check_directory(options);
    if (!has_directory && options->fallback == NULL)
        return;
    check_output(options);
    const char *word = json_string_value(json_array_get(command, 0));
    if (!has_directory || word == NULL || word[0] == '\0' || options->image.name != NULL)
        return;
    if (strchr(word, '/') != NULL)
        check_path(options, word);
    else
        check_name(options, word);
    check_script(options, word, json_string_value(json_array_get(command, 1)));
}
