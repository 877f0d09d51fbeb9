/* SPDX-License-Identifier: MIT */
/* Bound and listening sockets, made while mgpud may still be root. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* "HOST:PORT" or "[ADDRESS]:PORT", as `option` says. -EADDRINUSE: the sentence names the port. */
int sockets_listen_tcp(const char *option, const char *where, int *ret_fd, struct error *err);
