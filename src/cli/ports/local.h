/* SPDX-License-Identifier: MIT */
/* The local end of a forward: only processes of the caller may connect to it. */
#pragma once

#include "cli/ports/target.h"

#define LOCAL_SOCKETS_MAX 2

/* Listens at the local end, a port at 127.0.0.1 and ::1; port 0 is replaced by the one that was found.
 * Returns the number of descriptors in `fds`, all non-blocking, or -EADDRINUSE etc. with a sentence. */
int local_listen(struct endpoint *local, int fds[LOCAL_SOCKETS_MAX], struct error *err);

/* Accepts a connection: a descriptor; -EAGAIN if there is none; -EPERM with a sentence for one of another
 * user, which has been closed. */
int local_accept(int listener, const struct endpoint *local, struct error *err);
