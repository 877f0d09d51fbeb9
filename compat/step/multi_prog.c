/* SPDX-License-Identifier: MIT */
/* The last line that names a task applies, as with a later assignment. */
#include "compat/step/multi_prog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/term/words.h"

#define LINE_MAX_BYTES 65536U
#define LINES_MAX      4096U

struct multi_prog_line {
    struct strings words; // the program and its arguments
    uint32_t *tasks;      // NULL: all tasks that no line names
    size_t n_tasks;
};

static int read_line(const char *text, uint32_t n_tasks, struct multi_prog_line *ret, struct error *err)
{
    int r = words_split(text, &ret->words, err);
    if (r < 0 || ret->words.count == 0)
        return r;
    if (ret->words.count < 2)
        return error_set(err, -EINVAL, "the program is missing");
    if (strcmp(ret->words.items[0], "*") == 0)
        return 0;
    return parse_id_list(ret->words.items[0], "tasks", n_tasks - 1, &ret->tasks, &ret->n_tasks, err);
}

static int add_line(struct multi_prog *programs, const char *text, uint32_t n_tasks, struct error *err)
{
    struct multi_prog_line line = { 0 };
    int r = programs->count < LINES_MAX ? read_line(text, n_tasks, &line, err)
                                        : error_set(err, -E2BIG, "there are more than %u lines", LINES_MAX);
    programs->lines = xreallocarray(programs->lines, programs->count + 1, sizeof(*programs->lines));
    programs->lines[programs->count++] = line; // freed together with the others
    return r;
}

static int end_line(struct multi_prog *programs, struct buffer *whole, uint32_t n_tasks, struct error *err)
{
    const char *text = buffer_text(whole) + strspn(buffer_text(whole), " \t");
    int r = *text != '#' && *text != '\0' ? add_line(programs, text, n_tasks, err) : 0;
    buffer_clear(whole);
    return r;
}

/* Lines that end with a backslash are continued; the last one is not. */
static int read_lines(
    FILE *file, struct multi_prog *programs, uint32_t n_tasks, const char *path, struct error *err)
{
    _cleanup_buffer_ struct buffer whole = { 0 };
    _cleanup_free_ char *line = NULL;
    size_t size = 0, number = 0;
    ssize_t length;
    int r = 0;
    while (r == 0 && (length = getline(&line, &size, file)) >= 0) {
        number++;
        size_t mark = number == 1 ? text_mark_length(line, (size_t)length) : 0;
        length -= length > 0 && line[length - 1] == '\n';
        length -= length > 0 && line[length - 1] == '\r';
        bool is_broken = length > 0 && line[length - 1] == '\\';
        buffer_append(&whole, line + mark, (size_t)length - mark - is_broken);
        if (whole.length > LINE_MAX_BYTES)
            r = error_set(err, -E2BIG, "the line has more than %u bytes", LINE_MAX_BYTES);
        if (!is_broken && r == 0)
            r = end_line(programs, &whole, n_tasks, err);
    }
    if (r == 0)
        r = end_line(programs, &whole, n_tasks, err);
    return r < 0 ? error_wrap(err, "%.200s: line %zu", path, number) : 0;
}

/* The task's line, and its place among the tasks of that line. */
static const struct multi_prog_line *find(const struct multi_prog *programs, uint32_t task, size_t *ret_place)
{
    const struct multi_prog_line *rest = NULL;
    for (size_t i = programs->count; i-- > 0;) {
        const struct multi_prog_line *line = &programs->lines[i];
        for (size_t k = 0; k < line->n_tasks; k++)
            if (line->tasks[k] == task) {
                *ret_place = k;
                return line;
            }
        if (line->tasks == NULL && rest == NULL)
            rest = line;
    }
    *ret_place = task;
    return rest;
}

static char *replace(const char *word, uint32_t task, size_t place)
{
    struct buffer out = { 0 };
    for (const char *p = word; *p != '\0'; p++) {
        if (p[0] == '%' && p[1] == 't')
            buffer_printf(&out, "%" PRIu32, task), p++;
        else if (p[0] == '%' && p[1] == 'o')
            buffer_printf(&out, "%zu", place), p++;
        else
            buffer_append(&out, p, 1);
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

static int set_commands(struct multi_prog *programs, const char *path, struct step *step, struct error *err)
{
    programs->commands = xcalloc(step->count, sizeof(*programs->commands));
    programs->n_tasks = step->count;
    for (uint32_t i = 0; i < step->count; i++) {
        size_t place = 0;
        const struct multi_prog_line *line = find(programs, i, &place);
        if (line == NULL)
            return error_set(
                err, -EINVAL, "Configuration file %.200s invalid, no record for task id %" PRIu32, path, i);
        char **words = xcalloc(line->words.count, sizeof(char *)); // without the tasks, and NULL at the end
        for (size_t k = 1; k < line->words.count; k++)
            words[k - 1] = replace(line->words.items[k], i, place);
        programs->commands[i] = words;
        step->tasks[i].command = words;
    }
    return 0;
}

int multi_prog_read(const char *path, struct step *step, struct multi_prog *ret, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return error_set(err, -errno, "Could not open multi_prog config file %.200s", path);
    int r = read_lines(file, ret, step->count, path, err);
    (void)fclose(file);
    return r == 0 ? set_commands(ret, path, step, err) : r;
}

void multi_prog_clear(struct multi_prog *programs)
{
    for (size_t i = 0; i < programs->count; i++) {
        strings_clear(&programs->lines[i].words);
        free(programs->lines[i].tasks);
    }
    for (uint32_t i = 0; i < programs->n_tasks; i++) {
        for (char **word = programs->commands[i]; word != NULL && *word != NULL; word++)
            free(*word);
        free(programs->commands[i]);
    }
    free(programs->lines);
    free(programs->commands);
}
