/* SPDX-License-Identifier: MIT */
#include "cli/submit/script_job.h"

#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/submit/slurm_notes.h"
#include "cli/submit/submit.h"
#include "cli/submit/submit_check.h"
#include "cli/term/words.h"
#include "job/spec.h"

/* Braces are those of sweeps: /bin/sh does not expand them. */
#define SHELL_ONLY "|&;<>()$`*?[]#~!\n"

bool script_job_open(struct script *script, const char *command, struct strings *words)
{
    if (strpbrk(command, SHELL_ONLY) != NULL || words_split(command, words, NULL) < 0 || words->count == 0)
        return false;
    return script_open(script, words->items[0]) && script->has_options;
}

static int read_text(struct call *call, struct script *script, struct error *err)
{
    const struct submit_options *options = call->options;
    int r = script_check(script, options->is_in_place, err);
    if (r == 0 && !options->is_in_place)
        r = script_read(script, call, err);
    return r;
}

/* In lists it has its own name, not its interpreter's. */
static void set_name(json_t *request, const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_free_ char *name = text_escape_fit(slash != NULL ? slash + 1 : path, SPEC_NAME_MAX);
    if (strlen(name) <= SPEC_NAME_MAX && field_text(request, "name") == NULL)
        (void)json_object_set_new(request, "name", json_string(name));
}

int script_job_make(struct call *call, struct script *script, int argc, char **argv, unsigned *left_out,
    json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *command = NULL, *request = NULL;
    const struct submit_options *options = call->options;
    if (!call->is_quiet)
        script_warn_late(script);
    int r = read_text(call, script, err);
    if (r == 0 && script->text != NULL)
        submit_check_interpreter(call, script->path);
    if (r == 0 && !call->is_quiet)
        slurm_notes_print(script, options->ask);
    if (r == 0)
        r = script_command(script, options->directory, argc, argv, &command, err);
    if (r < 0)
        return r;
    submit_check_script(call, script->text == NULL ? command : NULL);
    r = submit_request(call, command, &request, left_out, err);
    if (r < 0)
        return r;
    set_name(request, script->path);
    if (script->text != NULL)
        (void)json_object_set_new(request, "script", json_string(script->text));
    *ret = take_ptr(request);
    return 0;
}
