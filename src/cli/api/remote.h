/* SPDX-License-Identifier: MIT */
/* The API of another machine: connection and token. */
#pragma once

#include "base/error.h"
#include "wire/http_client.h"

/* Checks the syntax; `option` is the source of the value. */
int remote_check(const char *option, const char *value, struct error *err);

/* "https://HOST:PORT#PIN": connects through mgpu-tls. -EHOSTDOWN if it cannot be reached in time, -EPERM if
 * the server does not have the pinned key. */
int remote_connect(const char *host, int timeout_ms, struct http_client **ret, struct error *err);

/* MGPU_TOKEN, the file named by MGPU_TOKEN_FILE, or ~/.config/mgpu/token, which no other user may be able to
 * read. The caller frees it. -ENOENT: none. */
int remote_token(char **ret, struct error *err);

/* The token in this file, which no other user may be able to read. The caller frees it. */
int remote_read_token(const char *path, char **ret, struct error *err);

/* Starts mgpu-tls with these arguments. `fd` becomes its descriptor `as_fd`; it is reaped automatically. */
int remote_start(const char *const *arguments, int fd, int as_fd, struct error *err);
