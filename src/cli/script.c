/* SPDX-License-Identifier: MIT */
#include "cli/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/sbatch.h"
#include "cli/submit.h"
#include "cli/talk.h"
#include "cli/words.h"

#define BLANKS        " \t\r"
#define OPTION_MARK   "#MGPU"
#define SBATCH_MARK   "#SBATCH"
#define INTERPRETER   "#!"
#define DEFAULT_SHELL "/bin/sh"

/* The text behind a mark at the beginning of the line, or NULL. */
static const char *after_mark(const char *line, const char *mark)
{
    size_t length = strlen(mark);
    if (strncmp(line, mark, length) != 0 || (line[length] != '\0' && strchr(BLANKS, line[length]) == NULL))
        return NULL;
    return line + length;
}

static bool is_head(const char *line)
{
    const char *p = line + strspn(line, BLANKS);
    return *p == '\0' || *p == '#';
}

/* Calls `take` with each line of the head, or of what follows it, until that fails. */
typedef int take_line_fn(void *arg, const char *line, unsigned number, struct error *err);

static int each_line(const char *text, bool is_of_head, take_line_fn *take, void *arg, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy, *line = NULL;
    bool is_inside = true;
    int r = 0;
    for (unsigned number = 1; r == 0 && (line = strsep(&rest, "\n")) != NULL; number++) {
        line[strcspn(line, "\r")] = '\0';
        is_inside = is_inside && is_head(line);
        if (is_inside == is_of_head)
            r = take(arg, line, number, err);
    }
    return r;
}

/* --- is it one? --- */

static int look_for_options(void *arg, const char *line, unsigned number, struct error *err)
{
    (void)number, (void)err;
    *(bool *)arg |= after_mark(line, OPTION_MARK) != NULL || after_mark(line, SBATCH_MARK) != NULL;
    return 0;
}

static char *read_head(const char *path, bool *ret_is_executable)
{
    struct stat st;
    _cleanup_free_ char *head = xcalloc(SCRIPT_HEAD_MAX + 1, 1);
    /* Not blocked by a FIFO of that name. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, head, SCRIPT_HEAD_MAX, 0) : -1;
    (void)close(fd);
    if (n < 0 || memchr(head, '\0', (size_t)n) != NULL)
        return NULL;
    *ret_is_executable = access(path, X_OK) == 0;
    return take_ptr(head);
}

static bool is_in_path(const char *word)
{
    const char *path = getenv("PATH");
    _cleanup_free_ char *copy = xstrdup(path == NULL ? "" : path);
    char *rest = copy;
    for (char *directory = NULL; (directory = strsep(&rest, ":")) != NULL;) {
        _cleanup_free_ char *file = xasprintf("%s/%s", directory, word);
        if (directory[0] == '/' && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

bool script_open(struct script *script, const char *word)
{
    *script = (struct script){ .path = word };
    script->head = read_head(word, &script->is_executable);
    if (script->head == NULL)
        return false;
    (void)each_line(script->head, true, look_for_options, &script->has_options, NULL);
    if (script->has_options)
        return true;
    if (strchr(word, '/') == NULL && is_in_path(word))
        return false;
    return script->is_executable || strncmp(script->head, INTERPRETER, strlen(INTERPRETER)) == 0;
}

/* --- its options --- */

struct reading {
    struct call *call;
    const char *path;
    struct sbatch sbatch;
    bool is_late_told;
};

static int apply_words(struct call *call, struct strings *words, struct error *err)
{
    const struct option_row *tables[COMMAND_TABLES + 1] = { 0 };
    /* The options point into the words, which live as long as the call. */
    _cleanup_free_ char **argv = xcalloc(words->count + 2, sizeof(char *));
    int argc = 1, first = 0;
    memcpy(tables, call->command->tables, sizeof(call->command->tables));
    for (size_t i = 0; i < words->count; i++)
        argv[argc++] = call_keep(call, words->items[i]);
    int r = options_parse(argc, argv, tables, call, true, &first, err);
    if (r == 0 && first < argc)
        return error_set(err, -EINVAL, "'%.60s' is no option", argv[first]);
    return r;
}

static int apply_options(void *arg, const char *line, unsigned number, struct error *err)
{
    struct reading *reading = arg;
    _cleanup_strings_ struct strings words = { 0 };
    const char *text = after_mark(line, OPTION_MARK);
    if (text == NULL)
        return 0;
    int r = words_split(text, &words, err);
    if (r == 0)
        r = apply_words(reading->call, &words, err);
    return r < 0 ? error_wrap(err, "%.200s:%u", reading->path, number) : 0;
}

static int apply_sbatch(void *arg, const char *line, unsigned number, struct error *err)
{
    struct reading *reading = arg;
    const char *text = after_mark(line, SBATCH_MARK);
    int r = text == NULL ? 0 : sbatch_read(&reading->sbatch, text, number, err);
    return r < 0 ? error_wrap(err, "%.200s:%u", reading->path, number) : 0;
}

/* Such a line has no effect, which whoever wrote it does not expect. */
static int tell_late(void *arg, const char *line, unsigned number, struct error *err)
{
    struct reading *reading = arg;
    (void)err;
    if (!reading->is_late_told && after_mark(line, OPTION_MARK) != NULL)
        talk_line(
            "%s:%u: this line has no effect: it stands behind the first command", reading->path, number);
    reading->is_late_told |= after_mark(line, OPTION_MARK) != NULL;
    return 0;
}

int script_apply(struct call *call, void *arg, struct error *err)
{
    const struct script *script = arg;
    struct reading reading = { .call = call, .path = script->path, .sbatch = { .call = call } };
    call->layer = script->path;
    int r = each_line(script->head, true, apply_sbatch, &reading, err);
    if (r == 0)
        r = sbatch_settle(&reading.sbatch, script->path, err);
    if (r == 0)
        r = each_line(script->head, true, apply_options, &reading, err);
    if (r == 0 && !call->is_quiet)
        (void)each_line(script->head, false, tell_late, &reading, NULL);
    sbatch_clear(&reading.sbatch);
    call->layer = NULL;
    return r;
}

/* --- its command --- */

/* The program of the "#!" line and, as the kernel does it, all that follows as one word. */
static void add_interpreter(const char *head, struct strings *words)
{
    _cleanup_free_ char *line = xstrndup(head, strcspn(head, "\r\n"));
    char *program = line + strlen(INTERPRETER) + strspn(line + strlen(INTERPRETER), BLANKS);
    size_t length = strcspn(program, BLANKS);
    char *rest = program + length + strspn(program + length, BLANKS);
    for (size_t end = strlen(rest); end > 0 && strchr(BLANKS, rest[end - 1]) != NULL; end--)
        rest[end - 1] = '\0';
    bool has_rest = rest[0] != '\0';
    program[length] = '\0';
    strings_add(words, program[0] != '\0' ? program : DEFAULT_SHELL);
    if (has_rest)
        strings_add(words, rest);
}

/* The path is looked up neither in PATH nor in a directory that is not ours. */
static char *path_to_run(const char *path, const char *directory)
{
    _cleanup_free_ char *absolute = directory != NULL ? realpath(path, NULL) : NULL;
    if (absolute != NULL)
        return xstrdup(absolute);
    return strchr(path, '/') != NULL ? xstrdup(path) : xasprintf("./%s", path);
}

int script_command(const struct script *script, const char *directory, int argc, char **argv, json_t **ret,
    struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    if (!script->is_executable && strncmp(script->head, INTERPRETER, strlen(INTERPRETER)) == 0)
        add_interpreter(script->head, &words);
    else if (!script->is_executable)
        strings_add(&words, DEFAULT_SHELL);
    strings_take(&words, path_to_run(script->path, directory));
    for (int i = 1; i < argc; i++)
        strings_add(&words, argv[i]);
    return submit_words((int)words.count, words.items, ret, err);
}

void script_clear(struct script *script)
{
    free(script->head);
    *script = (struct script){ 0 };
}
