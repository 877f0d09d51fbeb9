/* SPDX-License-Identifier: MIT */
/* The API over TCP without TLS, which is for this machine alone: both ends know each other by the kernel. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/http_client.h"

#define LOOPBACK_SCHEME "http://"

/* True when all addresses of a name are on the loopback. */
bool loopback_is(const char *host);

/*
 * Connects to "http://HOST:PORT" within `timeout_ms`. -EHOSTDOWN when nobody answers there, -EINVAL when it
 * is no such address or one of another machine. *ret_uid: who listens there, whom the caller may believe or
 * not; -EPERM when the kernel does not tell.
 */
int loopback_connect(
    const char *url, int timeout_ms, struct http_client **ret, uid_t *ret_uid, struct error *err);
