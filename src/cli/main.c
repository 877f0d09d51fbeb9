/* SPDX-License-Identifier: MIT */
/* mgpu: the command line. Finds the verb among the words and calls it with the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/api/exit_code.h"
#include "cli/api/programs.h"
#include "cli/options/call.h"
#include "cli/options/commands.h"
#include "cli/options/foreign_words.h"
#include "cli/options/talk.h"
#include "cli/term/standard.h"
#include "cli/verbs/compat_names.h"
#include "cli/verbs/verbs.h"

static int set_version(void *target, const char *value, struct error *err)
{
    struct call *call = target;
    call->command = &command_version;
    return 0;
}

/* Options that new users try first; only before a verb. */
static const struct option_row first_rows[] = {
    { 'V', "version", NULL, "show the versions", set_version },
    { 0 },
};

static int run_words(int argc, char **argv)
{
    static const struct option_row *const tables[] = { call_global_rows, first_rows, NULL };
    struct call call = { 0 };
    struct error err = { 0 };
    int first = 0;
    if (options_parse(argc, argv, tables, &call, true, &first, &err) < 0) {
        talk_error(NULL, &err);
        return EXIT_USAGE;
    }
    if (call.command != NULL)
        return call_run(&call, call.command, 1, argv);
    if (first == argc && call.is_help) {
        help_print_first(stdout);
        return EXIT_OK;
    }
    if (first == argc) {
        bool is_screen = isatty(STDOUT_FILENO) == 1 && !call.is_json;
        return call_run(&call, is_screen ? &command_overview : &command_ps, 1, argv);
    }
    const struct command *command = commands_find(argv[first]);
    if (command == NULL) {
        (void)commands_refuse(argv[first], &err);
        talk_error(NULL, &err);
        return EXIT_USAGE;
    }
    return call_run(&call, command, argc - first, argv + first);
}

/* A link to mgpu by the name of a command of mgpu-compat, from when mgpu was these as well. */
static int be_compat(char **argv)
{
    _cleanup_free_ char *program = program_find(COMPAT_PROGRAM);
    (void)execv(program, argv);
    perror(program);
    return EXIT_PARTLY;
}

int main(int argc, char **argv)
{
    standard_descriptors_hold();
    if (argc > 0 && compat_name_find(compat_names, argv[0]) != NULL)
        return be_compat(argv);
    options_know(foreign_options);
    return standard_output_end(run_words(argc, argv));
}
