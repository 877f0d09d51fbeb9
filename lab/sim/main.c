/* SPDX-License-Identifier: MIT */
/* mgpu-sim: replays workloads through the scheduler of mgpud, and checks and measures it. */
#include <stdio.h>
#include <string.h>

#include "base/strings.h"
#include "base/version.h"
#include "lab/sim/commands.h"

#define COMMANDS_MAX 16U

static const struct sim_command *const commands[] = { &command_run, &command_check, &command_bench,
    &command_pack, &command_journal, &command_tune, NULL };

static int usage(FILE *out, int status)
{
    (void)fprintf(out, "usage: mgpu-sim COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        (void)fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    (void)fprintf(out, "\nRun mgpu-sim COMMAND --help for the options of a command; see also mgpu-sim(1).\n");
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return usage(stderr, SIM_USAGE);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return usage(stdout, SIM_OK);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        (void)printf("mgpu-sim %s\n", MGPU_VERSION);
        return SIM_OK;
    }
    const char *names[COMMANDS_MAX] = { NULL };
    for (size_t i = 0; commands[i] != NULL; i++) {
        names[i] = commands[i]->name;
        if (strcmp(argv[1], names[i]) != 0)
            continue;
        int status = commands[i]->run(argc - 1, argv + 1);
        if (fflush(stdout) != 0) {
            perror("mgpu-sim: cannot write the output");
            return SIM_FAILED;
        }
        return status;
    }
    _cleanup_free_ char *shown = text_escape(argv[1], 60);
    const char *near = text_nearest(argv[1], names);
    (void)fprintf(stderr, "mgpu-sim: unknown command '%s'%s%s%s\n", shown,
        near != NULL ? ". Did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    return SIM_USAGE;
}
