/* SPDX-License-Identifier: MIT */
/* mgpu-agent: the node's part of mgpu. Parses the command line and becomes a keeper or a worker. */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "agent/host/options.h"
#include "agent/host/scope.h"
#include "agent/keeper.h"
#include "agent/uplink/uplink.h"
#include "agent/worker.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/version.h"

#define EXIT_USAGE 2

static int run(const struct agent_options *options, int argc, char **argv)
{
    if (options->is_version) {
        (void)puts("mgpu-agent " MGPU_VERSION);
        return EXIT_SUCCESS;
    }
    if (options->is_help) {
        (void)puts("Usage: mgpu-agent [--join HOST:PORT#TOKEN] [OPTION]...\n"
                   "The agent of one node: detects GPUs, starts jobs and reports. On its own machine\n"
                   "mgpud starts it; on any other, start it with --join once, and without it\n"
                   "afterwards.\n");
        options_print(agent_option_rows, stdout);
        return EXIT_SUCCESS;
    }
    log_open("mgpu-agent", options->is_verbose);
    /* A worker is in the cgroup of its keeper. The token of --join must not appear in another command
     * line. */
    bool is_first = options->keep_fd >= 0 || agent_options_is_node(options);
    if (is_first && options->cgroup == NULL && options->join == NULL && options->join_file == NULL)
        scope_enter(argv);
    if (options->node != NULL)
        log_set_node(options->node);
    if (agent_options_is_node(options)) {
        (void)prctl(PR_SET_NAME, "mgpu-uplink");
        return uplink_run(options);
    }
    /* The worker is executed through /proc/self/exe, which would become its name. */
    (void)prctl(PR_SET_NAME, options->keep_fd >= 0 ? "mgpu-keeper" : "mgpu-agent");
    return options->keep_fd >= 0 ? keeper_run(options->keep_fd, argc, argv) : worker_run(options);
}

int main(int argc, char **argv)
{
    _cleanup_(agent_options_clear) struct agent_options options;
    struct error err = { 0 };
    int status = EXIT_USAGE;
    event_set_mem_functions(xmalloc, xrealloc, free); // these end the program if memory is exhausted
    if (agent_options_parse(&options, argc, argv, &err) == 0)
        status = run(&options, argc, argv);
    else
        (void)fprintf(
            stderr, "mgpu-agent: %s%s%s\n", err.message, err.hint[0] == '\0' ? "" : "\nhint: ", err.hint);
    return status;
}
