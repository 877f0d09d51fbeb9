/* SPDX-License-Identifier: MIT */
/* The API of another machine: how it is reached, and the token that says who asks. */
#pragma once

#include "base/error.h"
#include "wire/http_client.h"

/* True to its form; `option` is what gave it. */
int remote_check(const char *option, const char *value, struct error *err);

/* "https://HOST:PORT#PIN": a connection through mgpu-tls. -EHOSTDOWN when it cannot be reached in time,
 * -EPERM when what answers there is not to be believed. */
int remote_connect(const char *host, int timeout_ms, struct http_client **ret, struct error *err);

/* MGPU_TOKEN, the file that MGPU_TOKEN_FILE names, or ~/.config/mgpu/token, which must be nobody else's to
 * read. The caller frees it. -ENOENT: there is none. */
int remote_token(char **ret, struct error *err);

/* Starts mgpu-tls with these arguments. `fd` becomes its descriptor `as_fd`; it is reaped by itself. */
int remote_start(const char *const *arguments, int fd, int as_fd, struct error *err);
