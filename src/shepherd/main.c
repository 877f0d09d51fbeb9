/* SPDX-License-Identifier: MIT */
/* mgpu-shepherd: one per running step. Started by mgpu-agent, not by users. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/version.h"
#include "shepherd/exec.h"
#include "shepherd/first.h"
#include "shepherd/fork_server.h"
#include "shepherd/shepherd.h"

static int usage(void)
{
    (void)fputs("usage: mgpu-shepherd SPOOLDIR            launch the step described in SPOOLDIR\n"
                "       mgpu-shepherd --adopt SPOOLDIR    supervise a step whose shepherd died\n"
                "       mgpu-shepherd --fork-server=FD    start shepherds for the agent connected to FD\n"
                "       mgpu-shepherd --exec FD           execute the command in FD (used by setup shells)\n"
                "       mgpu-shepherd -- COMMAND...       run COMMAND as the first process of a container\n",
        stderr);
    return SHEPHERD_USAGE;
}

/* The agent passes a fixed environment; this also covers other callers. */
static void clear_environment(void)
{
    static char *none[] = { NULL };
    environ = none;
}

int main(int argc, char **argv)
{
    int64_t fd;
    if (argc == 3 && strcmp(argv[1], "--exec") == 0)
        return parse_integer(argv[2], "FD", 0, INT32_MAX, &fd, NULL) < 0 ? usage() : exec_main((int)fd);
    if (argc >= 3 && strcmp(argv[1], "--") == 0)
        return first_main(argv + 2);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts("mgpu-shepherd " MGPU_VERSION) < 0;
    clear_environment();
    shepherd_protect();
    if (argc == 3 && strncmp(argv[1], "--fork-server=", 14) == 0)
        return parse_integer(argv[1] + 14, "FD", 0, INT32_MAX, &fd, NULL) < 0
                   ? usage()
                   : fork_server_run((int)fd, argc, argv);
    if (argc == 3 && strcmp(argv[1], "--adopt") == 0)
        return shepherd_adopt(argv[2]);
    if (argc == 2 && argv[1][0] != '-')
        return shepherd_launch(argv[1]);
    return usage();
}
