/* SPDX-License-Identifier: MIT */
#include "compat/personalities/personality.h"
#include "cli/options/help.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/options/talk.h"
#include "cli/verbs/compat_names.h"

#define VERBS_MAX 32

const struct personality *personality_find(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    for (size_t i = 0; personalities[i] != NULL; i++)
        if (strcmp(personalities[i]->name, name) == 0)
            return personalities[i];
    return NULL;
}

static const struct personality_verb *find_verb(const struct personality *personality, const char *name)
{
    for (const struct personality_verb *verb = personality->verbs; verb->name != NULL; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

static void print_help(const struct personality *personality, FILE *out)
{
    const char *help = compat_name_find(compat_names, personality->name)->help;
    (void)fprintf(out, "usage: %s [OPTIONS] COMMAND ...\n\n%c%s.\n\n", personality->name,
        toupper((unsigned char)help[0]), help + 1);
    for (const struct personality_verb *verb = personality->verbs; verb->name != NULL; verb++)
        help_print_entry(verb->name, verb->command->help, out);
    (void)fputs("\nOptions before the command:\n", out);
    const struct option_row *first = personality->first_rows;
    const struct option_row *const tables[] = { first != NULL ? first : call_global_rows,
        first != NULL ? call_global_rows : NULL, NULL };
    options_print_all(tables, out);
    (void)fprintf(out, "\nMore: %s COMMAND --help, man mgpu-compat\n", personality->name);
}

static int refuse_verb(const struct personality *personality, const char *name)
{
    const char *names[VERBS_MAX + 1] = { 0 };
    struct error err = { 0 };
    for (size_t i = 0; i < VERBS_MAX && personality->verbs[i].name != NULL; i++)
        names[i] = personality->verbs[i].name;
    const char *near = name == NULL ? NULL : text_nearest(name, names);
    if (name == NULL)
        (void)error_set(&err, -EINVAL, "an action is required");
    else if (near != NULL)
        (void)error_set(&err, -EINVAL, "unknown command '%.60s'. Did you mean '%s'?", name, near);
    else
        (void)error_set(&err, -EINVAL, "unknown command '%.60s'", name);
    (void)error_hint(&err, "%s --help", personality->name);
    talk_error(NULL, &err);
    return EXIT_USAGE;
}

int personality_run(const struct personality *personality, int argc, char **argv)
{
    const struct option_row *tables[] = { personality->first_rows, call_global_rows, NULL };
    struct call call = { 0 };
    struct error err = { 0 };
    int first = 0;
    client_add_socket(personality->socket);
    client_name_server(personality->server);
    talk_translate(personality->words);
    talk_as(personality->name, "");
    if (personality->command != NULL)
        return call_run(&call, personality->command, argc, argv);
    bool has_rows = tables[0] != NULL;
    if (options_parse(argc, argv, has_rows ? tables : tables + 1, &call, true, &first, &err) < 0) {
        talk_error(NULL, &err);
        return EXIT_USAGE;
    }
    if (call.is_help && first == argc) {
        print_help(personality, stdout);
        return EXIT_OK;
    }
    const struct personality_verb *verb = first < argc ? find_verb(personality, argv[first]) : NULL;
    if (verb == NULL)
        return refuse_verb(personality, first < argc ? argv[first] : NULL);
    talk_as(personality->name, verb->name);
    if (personality->prepare != NULL && personality->prepare(&call, &err) < 0) {
        talk_error(verb->name, &err);
        return exit_code_of_error(err.code);
    }
    return call_run(&call, verb->command, argc - first, argv + first);
}
