/* SPDX-License-Identifier: MIT */
#include "cli/submit/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/talk.h"
#include "cli/submit/sbatch.h"
#include "cli/submit/slurm_lines.h"
#include "cli/submit/submit.h"
#include "cli/term/text_file.h"
#include "cli/term/words.h"
#include "job/interpreter.h"
#include "job/spec.h"

#define BLANKS      " \t\r"
#define OPTION_MARK "#MGPU"
#define FIRST_BYTES 4096

/* The text after a mark at the beginning of the line, or NULL. */
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

/* Calls `take` with each line of the head, or of the part after it, until a call fails. */
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

static int find_options(void *arg, const char *line, unsigned number, struct error *err)
{
    struct script *script = arg;
    script->is_slurm |= after_mark(line, SLURM_LINE_MARK) != NULL;
    script->has_options |= script->is_slurm || after_mark(line, OPTION_MARK) != NULL;
    return 0;
}

/* Appends the next bytes to `head`, which contains `length`; returns the new length. -1: they cannot be read,
 * or are not text. */
static ssize_t read_text(int fd, char *head, size_t length, size_t count)
{
    ssize_t n = pread(fd, head + length, count, (off_t)length);
    if (n < 0 || memchr(head + length, '\0', (size_t)n) != NULL)
        return -1;
    head[length + (size_t)n] = '\0';
    return (ssize_t)length + n;
}

/* Most programs are not text, as their first bytes show. */
static char *read_head(struct script *script, const char *path)
{
    struct stat st;
    _cleanup_free_ char *head = NULL;
    /* Does not block on a FIFO with that name. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    head = xreallocarray(NULL, SCRIPT_HEAD_MAX + 1, 1);
    ssize_t n = read_text(fd, head, 0, FIRST_BYTES);
    if (n == FIRST_BYTES)
        n = read_text(fd, head, FIRST_BYTES, SCRIPT_HEAD_MAX - FIRST_BYTES);
    script->is_wide = n < 0 && text_mark_is_wide(head, FIRST_BYTES);
    if (n < 0 && !script->is_wide)
        return NULL;
    size_t mark = n < 0 ? 0 : text_mark_length(head, (size_t)n);
    memmove(head, head + mark, strlen(head + mark) + 1);
    script->is_marked = mark > 0;
    script->is_executable = access(path, X_OK) == 0;
    return take_ptr(head);
}

/* True if PATH has an executable with that name. */
static bool is_in_path(const char *word)
{
    return script_find_in_path(word, ".", true);
}

bool script_find_in_path(const char *word, const char *directory, bool is_absolute_only)
{
    const char *path = getenv("PATH");
    _cleanup_free_ char *copy = xstrdup(path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path);
    char *rest = copy;
    for (char *entry = NULL; (entry = strsep(&rest, ":")) != NULL;) {
        bool is_relative = entry[0] != '/';
        _cleanup_free_ char *file =
            is_relative ? xasprintf("%s/%s/%s", directory, entry[0] != '\0' ? entry : ".", word)
                        : xasprintf("%s/%s", entry, word);
        if ((!is_relative || !is_absolute_only) && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

bool script_open(struct script *script, const char *word)
{
    *script = (struct script){ .path = word };
    script->head = read_head(script, word);
    if (script->head == NULL)
        return false;
    if (script->is_wide)
        return true;
    (void)each_line(script->head, true, find_options, script, NULL);
    if (script->has_options)
        return true;
    if (strchr(word, '/') == NULL && is_in_path(word))
        return false;
    return script->is_executable || strncmp(script->head, INTERPRETER_MARK, strlen(INTERPRETER_MARK)) == 0;
}

/* --- its options --- */

struct reading {
    struct call *call;
    const char *path;
    bool is_late_shown;
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
        return error_set(err, -EINVAL, "'%.60s' is not an option", argv[first]);
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

/* Such a line has no effect, contrary to its author's expectation. */
static int warn_late(void *arg, const char *line, unsigned number, struct error *err)
{
    struct reading *reading = arg;
    bool is_late = after_mark(line, OPTION_MARK) != NULL || after_mark(line, SLURM_LINE_MARK) != NULL;
    if (!reading->is_late_shown && is_late)
        talk_line("%s:%u: this line has no effect: it follows the first command", reading->path, number);
    reading->is_late_shown |= is_late;
    return 0;
}

int script_apply(struct call *call, void *arg, struct error *err)
{
    const struct script *script = arg;
    struct reading reading = { .call = call, .path = script->path };
    call->layer = script->path;
    int r = script->is_slurm ? sbatch_apply(call, script->head, script->path, err) : 0;
    if (r == 0)
        r = each_line(script->head, true, apply_options, &reading, err);
    call->layer = NULL;
    return r;
}

void script_warn_late(const struct script *script)
{
    struct reading reading = { .path = script->path };
    (void)each_line(script->head, false, warn_late, &reading, NULL);
}

/* --- its text --- */

/* True if the script refers to its own path; in a copy, that is the path of the copy. */
static bool names_itself(const char *text)
{
    static const char *const words[] = { "$0", "${0", "BASH_SOURCE", "__file__" };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(text, words[i]) != NULL)
            return true;
    return false;
}

int script_check(const struct script *script, bool is_in_place, struct error *err)
{
    if (script->is_wide)
        return text_mark_refuse(script->path, err);
    bool is_sent = !is_in_place && access(script->path, W_OK) == 0;
    if (!script->is_marked || is_sent)
        return 0;
    (void)error_set(err, -EINVAL,
        "%.200s begins with a byte order mark, so its first line names no interpreter", script->path);
    return error_hint(err, "sed -i '1s/^\\xef\\xbb\\xbf//' %.100s removes it", script->path);
}

static bool is_utf8(const char *text)
{
    _cleanup_json_ json_t *string = json_string(text);
    return string != NULL;
}

int script_read(struct script *script, const struct call *call, struct error *err)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    if (access(script->path, W_OK) < 0)
        return 0;
    int r = text_file_open(&file, script->path, SPEC_SCRIPT_MAX, err);
    if (r == -EFBIG)
        return error_hint(err, "--in-place runs the file itself, in its state at the start of the job");
    if (r < 0 && r != -EINVAL)
        return r;
    if (r == -EINVAL || !is_utf8(file.text)) {
        *err = (struct error){ 0 };
        if (!call->is_quiet)
            talk_line("%s is not UTF-8 text: it is run from its file, in its state at the start of the job",
                script->path);
        return 0;
    }
    if (names_itself(file.text) && !call->is_quiet)
        talk_line("%s: the job runs a copy, named by $0; MGPU_SCRIPT names this file, and --in-place runs it",
            script->path);
    script->text = take_ptr(file.text);
    return 0;
}

/* --- its command --- */

/* The path is searched for neither in PATH nor in a directory that is not ours. */
static char *path_to_run(const struct script *script, const char *directory)
{
    const char *path = script->path;
    bool is_elsewhere = directory != NULL || script->text != NULL;
    _cleanup_free_ char *absolute = is_elsewhere ? realpath(path, NULL) : NULL;
    if (absolute != NULL)
        return xstrdup(absolute);
    return strchr(path, '/') != NULL ? xstrdup(path) : xasprintf("./%s", path);
}

int script_command(const struct script *script, const char *directory, int argc, char **argv, json_t **ret,
    struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    if (script->text == NULL && !script->is_executable)
        interpreter_add(script->head, &words);
    strings_take(&words, path_to_run(script, directory));
    for (int i = 1; i < argc; i++)
        strings_add(&words, argv[i]);
    return submit_words((int)words.count, words.items, ret, err);
}

void script_clear(struct script *script)
{
    free(script->head);
    free(script->text);
    *script = (struct script){ 0 };
}
