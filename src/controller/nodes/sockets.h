/* SPDX-License-Identifier: MIT */
/* Bound and listening sockets, made while mgpud may still be root. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

/* A unix socket at `path` with this mode; one left behind by a daemon that died is replaced. */
int sockets_listen_unix(const char *path, mode_t mode, int *ret_fd, struct error *err);

/* "HOST:PORT" or "[ADDRESS]:PORT", as `option` says. -EADDRINUSE: the sentence names the port. */
int sockets_listen_tcp(const char *option, const char *where, int *ret_fd, struct error *err);
