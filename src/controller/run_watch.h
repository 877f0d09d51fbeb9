/* SPDX-License-Identifier: MIT */
/* Notices that the socket of the API, or the whole run directory, was removed under a running mgpud. */
#pragma once

#include "base/error.h"

struct event_base;
struct run_watch;

/* Called once, with a sentence; nobody can reach mgpud any more by then. */
typedef void run_watch_gone_fn(void *arg, const char *sentence);

/* Remembers the file at RUN/mgpud.sock and looks every few seconds whether it is still there. Returns NULL,
 * with the reason in `err`, if there is none. */
struct run_watch *run_watch_new(
    struct event_base *loop, const char *run_dir, run_watch_gone_fn *gone, void *arg, struct error *err);
void run_watch_free(struct run_watch *watch);
