/* SPDX-License-Identifier: MIT */
/* Detects that the socket of the API, or the whole run directory, was removed while mgpud runs. */
#pragma once

#include "base/error.h"

struct event_base;
struct run_watch;

/* Called once, with a sentence; by then no client can reach mgpud. */
typedef void run_watch_gone_fn(void *arg, const char *sentence);

/* Records the file at RUN/mgpud.sock and checks every few seconds that it still exists. Returns NULL, with
 * the reason in `err`, if there is none. */
struct run_watch *run_watch_new(
    struct event_base *loop, const char *run_dir, run_watch_gone_fn *gone, void *arg, struct error *err);
void run_watch_free(struct run_watch *watch);
