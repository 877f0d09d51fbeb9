/* SPDX-License-Identifier: MIT */
/* Binds listening sockets, possibly while mgpud is still root. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* "HOST:PORT" or "[ADDRESS]:PORT" of the option `option`. -EADDRINUSE: the sentence names the port. */
int sockets_listen_tcp(const char *option, const char *where, int *ret_fd, struct error *err);
