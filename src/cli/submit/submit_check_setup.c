/* SPDX-License-Identifier: MIT */
/*
 * A virtual environment is a directory. Modules and conda are searched for by the same text as on the node
 * (setup_text.c), in a shell with this environment; neither is started.
 */
#include "cli/submit/submit_check_setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/strings.h"
#include "cli/options/talk.h"

#define SHOWN_MAX 400
#define LINES_MAX 8

static void check_venv(const struct submit_options *options)
{
    const char *venv = options->setup.venv;
    if (venv == NULL)
        return;
    bool is_relative = venv[0] != '/' && options->directory != NULL;
    _cleanup_free_ char *path = is_relative ? xasprintf("%s/%s", options->directory, venv) : xstrdup(venv);
    _cleanup_free_ char *name = text_escape(path, SHOWN_MAX);
    _cleanup_free_ char *activate = xasprintf("%s/bin/activate", path);
    struct stat st;
    if (stat(activate, &st) < 0 && errno == ENOENT)
        talk_line("warning: %s is not a virtual environment: it has no bin/activate; python3 -m venv %s "
                  "creates one",
            name, name);
}

/* Runs in the job's directory, without standard error, because warnings about the check itself would not
 * help. */
static char *check_text(const struct submit_options *options, const char *check)
{
    _cleanup_strings_ struct strings words = { 0 };
    strings_add(&words, options->directory != NULL ? options->directory : ".");
    _cleanup_free_ char *directory = text_quote_command(&words);
    return xasprintf("exec 2>/dev/null </dev/null; cd -- %s || exit\n%s", directory, check);
}

/* Variables of the job determine where conda and modules are. */
static bool has_own_variables(const struct submit_options *options)
{
    return options->env.count > 0 || options->env_files != NULL;
}

void submit_check_setup(const struct submit_options *options)
{
    check_venv(options);
    _cleanup_free_ char *check = setup_text_check(&options->setup);
    if (check == NULL || has_own_variables(options))
        return;
    _cleanup_free_ char *text = check_text(options, check);
    char line[SHOWN_MAX * 2];
    (void)fflush(NULL);
    FILE *output = popen(text, "re");
    for (unsigned i = 0; output != NULL && i < LINES_MAX && fgets(line, sizeof(line), output) != NULL; i++) {
        line[strcspn(line, "\n")] = '\0';
        _cleanup_free_ char *shown = text_escape(line, SHOWN_MAX);
        talk_line("warning: %s", shown);
    }
    if (output != NULL)
        (void)pclose(output);
}
