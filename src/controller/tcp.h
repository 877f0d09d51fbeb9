/* SPDX-License-Identifier: MIT */
/* The TCP port of the API: bound at the start, or as soon as it is free. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct tcp;

struct controller;

/* Keeps controller->tcp_state. Does not bind yet. `trusted_uid`: programs of this user may have had the port
 * before, like those of root. */
struct tcp *tcp_new(struct controller *controller, uid_t trusted_uid);
void tcp_free(struct tcp *tcp);

/* Binds the port, possibly while mgpud is still root. A port that is in use, or an address that this machine
 * does not have (yet), is logged but is a failure only with --need-listen: mgpud tries again once tcp_serve()
 * was called. */
int tcp_bind(struct tcp *tcp, struct error *err);

/* Passes each bound socket, now and later, to `open`, which owns it, even if it fails. Continues while the
 * loop runs, or until tcp_pause(). */
int tcp_serve(
    struct tcp *tcp, int (*open)(void *arg, int fd, struct error *err), void *arg, struct error *err);

/* Stops passing sockets; bound ones are kept for the next tcp_serve(). */
void tcp_pause(struct tcp *tcp);
