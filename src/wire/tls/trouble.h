/* SPDX-License-Identifier: MIT */
/* Messages and hints for the errors of connections between two machines. */
#pragma once

#include <openssl/types.h>

#include "base/error.h"

/* Each returns the error's code. `where` is HOST:PORT as specified. */

/* Connecting failed: a negative errno of connect(2) or of waiting for it. */
int trouble_of_connect(int code, const char *where, struct error *err);

/* A handshake, read or write failed with `result`; uses the session, OpenSSL's queue and errno. */
int trouble_of_tls(const SSL *ssl, int result, const char *where, struct error *err);

/* The same for a handshake started by another machine: only the problem, for a sentence that names the
 * machine. */
int trouble_of_accept(const SSL *ssl, int result, struct error *err);

/* The same for a connection that was established before. */
int trouble_of_session(const SSL *ssl, int result, const char *where, struct error *err);
