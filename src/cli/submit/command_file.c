/* SPDX-License-Identifier: MIT */
/* All lines have the same options, so one request is built and copied with the command of each line. */
#include "cli/submit/command_file.h"

#include <errno.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/submit.h"
#include "cli/term/text_file.h"
#include "cli/term/words.h"
#include "job/spec.h"

#define BLANKS " \t"

static int add_line(const struct text_file *file, const struct submit_options *options, char *text,
    json_t *common, struct plan *plan, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    _cleanup_json_ json_t *command = NULL, *request = json_copy(common);
    _cleanup_free_ char *origin = xasprintf("%s:%u", file->path, file->line);
    char *argv[] = { text };
    int r = words_split(text, &words, err);
    if (r == 0 && strlen(text) > SPEC_COMMAND_MAX)
        r = error_set(err, -E2BIG, "the command has %zu bytes; at most %u", strlen(text), SPEC_COMMAND_MAX);
    if (r == 0)
        r = submit_command(1, argv, &command, err);
    if (r == 0) {
        (void)json_object_set(request, "command", command);
        r = plan_add(plan, origin, NULL, request, &options->sweeps, err);
    }
    return r < 0 ? error_wrap(err, "%s", origin) : 0;
}

static int read_lines(struct text_file *file, const struct submit_options *options, json_t *common,
    struct plan *plan, struct error *err)
{
    int r = 0;
    for (char *line = NULL; r == 0 && (line = text_file_next(file)) != NULL;) {
        line += strspn(line, BLANKS);
        if (line[0] != '\0' && line[0] != '#')
            r = add_line(file, options, line, common, plan, err);
    }
    if (r == 0 && plan->count == 0)
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
    r = submit_request(call, none, &common, &plan->left_out, err);
    return r < 0 ? r : read_lines(&file, call->options, common, plan, err);
}
