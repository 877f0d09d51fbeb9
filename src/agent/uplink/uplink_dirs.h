/* SPDX-License-Identifier: MIT */
/* The directories and GPUs of a joined node, locked against a second agent and against mgpud. */
#pragma once

#include "agent/host/options.h"
#include "base/detach.h"
#include "base/error.h"
#include "base/system_mgpud.h"

struct uplink_dirs {
    int lock_fds[3]; // run and state directory, and STATE/node
    struct gpu_claims claims;
    int stream_fd; // listening at RUN/link.sock
    struct detached detached;
};

#define UPLINK_DIRS_EMPTY                                                                                    \
    {                                                                                                        \
        .lock_fds = { -1, -1, -1 }, .stream_fd = -1, .detached = { -1, -1 }                                  \
    }

/* With --detach, the calling parent process does not return from here. */
int uplink_dirs_open(const struct agent_options *options, struct uplink_dirs *ret, struct error *err);
void uplink_dirs_close(struct uplink_dirs *dirs);
