/* SPDX-License-Identifier: MIT */
/* An mgpud that belongs to this process: started if none is running, restarted if it exits, ended with this
 * process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

struct feed_daemon {
    struct strings words; // its command line; empty: none
    pid_t pid;
    int pidfd;        // -1: not running
    int64_t start_ms; // boot clock: time of the restart; 0: running, or none
    int64_t delay_ms;
};

void feed_daemon_init(struct feed_daemon *daemon);

/* Starts it and waits until it is ready. -ECHILD if it exited before that. */
int feed_daemon_start(struct feed_daemon *daemon, struct error *err);

/* Its pidfd was readable: it has exited and will be restarted at start_ms. */
void feed_daemon_note_end(struct feed_daemon *daemon);

/* Ends it as well; its jobs continue. */
void feed_daemon_clear(struct feed_daemon *daemon);
