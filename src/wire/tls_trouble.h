/* SPDX-License-Identifier: MIT */
/* What can go wrong between two machines, told apart: what it is, and what to do about it. */
#pragma once

#include <openssl/types.h>

#include "base/error.h"

/* Each returns the error's code. `where` is HOST:PORT as it was given. */

/* A name was not resolved: an EAI_ code of getaddrinfo(3). */
int trouble_of_name(int code, const char *where, struct error *err);

/* No connection: a negative errno of connect(2) or of waiting for it. */
int trouble_of_connect(int code, const char *where, struct error *err);

/* A handshake, a read or a write that failed with `result`; looks at the session, OpenSSL's queue and errno.
 */
int trouble_of_tls(const SSL *ssl, int result, const char *where, struct error *err);

/* The same of a handshake that another machine began: only what is wrong, for a sentence that names it. */
int trouble_of_accept(const SSL *ssl, int result, struct error *err);

/* The same of a connection that was well before. */
int trouble_of_session(const SSL *ssl, int result, const char *where, struct error *err);
