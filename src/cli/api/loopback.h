/* SPDX-License-Identifier: MIT */
/* The API over TCP without TLS, only within this machine: the kernel identifies both ends. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "wire/http_client.h"

#define LOOPBACK_SCHEME "http://"

/* True if all addresses of a name are loopback addresses. */
bool loopback_is(const char *host);

/*
 * Connects to "http://HOST:PORT" within `timeout_ms`. -EHOSTDOWN if nothing answers, -EINVAL if it is not
 * such an address or belongs to another machine. *ret_uid: the owner of the listener, whom the caller must
 * check; -EPERM if the kernel does not report it.
 */
int loopback_connect(
    const char *url, int timeout_ms, struct http_client **ret, uid_t *ret_uid, struct error *err);
