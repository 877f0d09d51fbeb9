/* SPDX-License-Identifier: MIT */
/* The local end of a forward: only processes of the caller may connect to it. */
#pragma once

#include "cli/ports/target.h"

/* Listens at the local end; port 0 becomes the one that was found. A descriptor that does not block, or
 * -EADDRINUSE etc. with a sentence. */
int local_listen(struct endpoint *local, struct error *err);

/* Accepts a connection: a descriptor; -EAGAIN if there is none; -EPERM with a sentence for one of another
 * user, which has been closed. */
int local_accept(int listener, const struct endpoint *local, struct error *err);
