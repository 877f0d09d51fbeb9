/* SPDX-License-Identifier: MIT */
/* Any bytes as what mgpu-sim reads: a workload (a trace in SWF or CSV, a journal), a list of nodes, a journal
 * to be replayed. The first byte says as which. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "fuzz.h"
#include "lab/sim/nodes.h"
#include "lab/sim/replay/replay.h"
#include "lab/sim/workload.h"

#define JOBS_MAX 10000

static void try_workload(const char *path, char kind)
{
    struct workload workload = { 0 };
    struct error err = { 0 };
    const struct trace_options options = {
        .skip_bad = kind == 's', .max_jobs = JOBS_MAX, .is_untimed = kind == 'p'
    };
    int r = kind == 'p' ? workload_read_as_is(&workload, path, &options, &err)
                        : workload_read(&workload, path, &options, &err);
    if (r < 0 && err.message[0] == '\0')
        abort();
    workload_clear(&workload);
}

static void try_replay(const char *path)
{
    _cleanup_(replay_freep) struct replay *replay = replay_new();
    struct error err = { 0 };
    if (replay_file(replay, path, &err) < 0 && err.message[0] == '\0')
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    char path[64];
    if (length == 0)
        return 0;
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write_all(fd, bytes + 1, length - 1) < 0)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (bytes[0] == 'n') {
        struct sim_nodes nodes = { 0 };
        struct error err = { 0 };
        if (nodes_read(&nodes, path, &err) < 0 && err.message[0] == '\0')
            abort();
        nodes_clear(&nodes);
    } else if (bytes[0] == 'r') {
        try_replay(path);
    } else {
        try_workload(path, (char)bytes[0]);
    }
    (void)close(fd);
    return 0;
}
