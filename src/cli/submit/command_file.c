/* SPDX-License-Identifier: MIT */
/* All lines have the same options, so one request is built and copied with the command of each line. A line
 * that runs a script with option lines has those as well, and a request of its own. */
#include "cli/submit/command_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/script_job.h"
#include "cli/submit/submit.h"
#include "cli/submit/submit_check.h"
#include "cli/term/text_file.h"
#include "cli/term/words.h"
#include "job/spec.h"

#define BLANKS " \t"

struct list {
    struct call *call;
    struct plan *plan;
    json_t *common;
    char *program; // first word of the last command that was checked
};

static int no_layer(struct call *call, void *arg, struct error *err)
{
    return 0;
}

/* The options of the next lines are again those of the command line. */
static int add_script(
    struct list *list, struct script *script, struct strings *words, const char *origin, struct error *err)
{
    _cleanup_json_ json_t *request = NULL;
    const struct submit_options *options = list->call->options;
    int r = call_read_again(list->call, script_apply, script, err);
    if (r == 0)
        r = script_job_make(
            list->call, script, (int)words->count, words->items, &list->plan->left_out, &request, err);
    if (r == 0)
        r = plan_add(list->plan, origin, NULL, request, &options->sweeps, err);
    return r < 0 ? r : call_read_again(list->call, no_layer, NULL, err);
}

/* Lines in succession with the same program are checked once. */
static void check_command(struct list *list, const json_t *command)
{
    const char *program = json_string_value(json_is_array(command) ? json_array_get(command, 0) : command);
    if (list->program != NULL && program != NULL && strcmp(list->program, program) == 0)
        return;
    free(list->program);
    list->program = xstrdup(program);
    submit_check_command(list->call, command);
}

static int add_command(struct list *list, char *text, const char *origin, struct error *err)
{
    _cleanup_json_ json_t *command = NULL, *request = json_copy(list->common);
    const struct submit_options *options = list->call->options;
    char *argv[] = { text };
    int r = submit_command(1, argv, &command, err);
    if (r < 0)
        return r;
    check_command(list, command);
    (void)json_object_set(request, "command", command);
    return plan_add(list->plan, origin, NULL, request, &options->sweeps, err);
}

static int check_text(const char *text, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    if (text[0] == '-') {
        (void)error_set(err, -EINVAL, "a line must begin with a command, not with an option: %.60s", text);
        return error_hint(err, "options given before --file apply to all lines; a file of jobs with options "
                               "of their own is a .yaml file: SCRIPTS AND FILES in mgpu-submit(1)");
    }
    if (strlen(text) > SPEC_COMMAND_MAX)
        return error_set(
            err, -E2BIG, "the command has %zu bytes; at most %u", strlen(text), SPEC_COMMAND_MAX);
    return words_split(text, &words, err);
}

static int add_line(struct list *list, const struct text_file *file, char *text, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_script_ struct script script = { 0 };
    _cleanup_free_ char *origin = xasprintf("%s:%u", file->path, file->line);
    int r = check_text(text, err);
    if (r == 0)
        r = script_job_open(&script, text, &words) ? add_script(list, &script, &words, origin, err)
                                                   : add_command(list, text, origin, err);
    return r < 0 ? error_wrap(err, "%s", origin) : 0;
}

static int read_lines(struct list *list, struct text_file *file, struct error *err)
{
    int r = 0;
    for (char *line = NULL; r == 0 && (line = text_file_next(file)) != NULL;) {
        line += strspn(line, BLANKS);
        if (line[0] != '\0' && line[0] != '#')
            r = add_line(list, file, line, err);
    }
    if (r == 0 && list->plan->count == 0)
        return error_set(err, -EINVAL, "%.200s contains no command", file->path);
    return r;
}

int command_file_read(struct call *call, const char *path, struct plan *plan, struct error *err)
{
    _cleanup_text_file_ struct text_file file = { 0 };
    _cleanup_json_ json_t *common = NULL;
    int r = text_file_open(&file, path, COMMAND_FILE_MAX, err);
    if (r < 0)
        return error_wrap(err, "--file");
    /* Each line replaces the command. */
    _cleanup_json_ json_t *none = json_array();
    submit_check(call, NULL);
    r = submit_request(call, none, &common, &plan->left_out, err);
    if (r < 0)
        return r;
    struct list list = { .call = call, .plan = plan, .common = common };
    r = read_lines(&list, &file, err);
    free(list.program);
    return r;
}
