/* SPDX-License-Identifier: MIT */
/* Everything that is not a result goes to standard error. */
#include "sim/talk.h"

#include <errno.h>
#include <stdio.h>

int talk_error(const struct error *err, int status)
{
    (void)fprintf(stderr, "mgpu-sim: %s\n", err->message);
    if (err->hint[0] != '\0')
        (void)fprintf(stderr, "  %s\n", err->hint);
    return status;
}

void talk_help(const struct sim_command *command, const struct option_row *rows)
{
    (void)printf("usage: mgpu-sim %s\n\n%s\n\noptions:\n", command->usage, command->summary);
    options_print(rows, stdout);
}

int talk_parse(const struct sim_command *command, int argc, char **argv, const struct option_row *rows,
    void *target, int least, int most, int *ret_first, struct error *err)
{
    const struct option_row *const tables[] = { rows, NULL };
    int first = 0;
    int result = options_parse(argc, argv, tables, target, false, &first, err);
    if (result < 0)
        return result;
    *ret_first = first;
    if (argc - first >= least && argc - first <= most)
        return 0;
    (void)error_set(err, -EINVAL, argc - first < least ? "%s: missing argument" : "%s: too many arguments",
        command->name);
    return error_hint(err, "usage: mgpu-sim %s", command->usage);
}
