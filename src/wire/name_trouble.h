/* SPDX-License-Identifier: MIT */
/* Messages and hints for host names that cannot be resolved. */
#pragma once

#include "base/error.h"

/* The meaning of an EAI_ code of getaddrinfo(3), with the text of the C library: "unknown host name (Name or
 * service not known)". The caller frees it. */
char *name_trouble_text(int code);

/* Sets the error "cannot reach WHERE: ..." and its hint; returns its code. `where`: HOST or HOST:PORT, as
 * specified. */
int name_trouble(int code, const char *where, struct error *err);
