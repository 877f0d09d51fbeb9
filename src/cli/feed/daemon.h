/* SPDX-License-Identifier: MIT */
/* A mgpud of our own: started when none is there, started anew when it leaves, taken down with us. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strings.h"

struct feed_daemon {
    struct strings words; // its command line; empty: we have none
    pid_t pid;
    int pidfd;        // -1: it does not run
    int64_t start_ms; // boot clock: when to start it anew; 0: it runs, or we have none
    int64_t delay_ms;
};

void feed_daemon_init(struct feed_daemon *daemon);

/* Starts it and waits until it is ready; the words begin with its name. -ECHILD when it left before that. */
int feed_daemon_start(struct feed_daemon *daemon, struct error *err);

/* Its pidfd was readable: it has left, and is to be started at start_ms. */
void feed_daemon_note_end(struct feed_daemon *daemon);

/* SIGTERM, after half a minute SIGKILL, and waits until it is gone. Its jobs go on. */
void feed_daemon_stop(struct feed_daemon *daemon);

void feed_daemon_clear(struct feed_daemon *daemon);
