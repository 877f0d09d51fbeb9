/* SPDX-License-Identifier: MIT */
/* Listens at local ends and carries each connection to the job, until the job or the caller ends it. */
#pragma once

#include <jansson.h>

#include "cli/options/call.h"
#include "cli/ports/target.h"

struct forwarding_listener {
    int fd; // owned
    size_t target;
};

struct forwarding {
    const char *job; // as in paths of the API
    uint32_t rank;
    struct target *targets;
    size_t count; // targets that are open
    struct forwarding_listener *listeners;
    size_t n_listeners;
    int stop_signal; // that ended forwarding_run(); 0: none
};

/* Opens all listeners. `targets` is borrowed; their local port 0 is replaced. */
int forwarding_open(struct forwarding *forwarding, struct target *targets, size_t count, struct error *err);

enum forwarding_end { FORWARDING_STOPPED, FORWARDING_JOB_ENDED };

/* Runs until SIGINT, SIGTERM or SIGHUP (FORWARDING_STOPPED), or until the job has ended. Restarts of mgpud
 * are survived. Reports on standard error when the job leaves its GPUs unused. */
int forwarding_run(struct call *call, struct forwarding *forwarding, struct error *err);

/* Removes local unix sockets. */
void forwarding_close(struct forwarding *forwarding);
