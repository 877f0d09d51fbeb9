/* SPDX-License-Identifier: MIT */
/* The address of a port of this machine for other machines. */
#pragma once

#include "base/strings.h"

/* "HOST:PORT" of the listener `listen`: HOST is `host` if not NULL, else the address it is bound to, else, if
 * that is the wildcard address, the name of this machine. The caller frees it. */
char *reach_text(const char *listen, const char *default_port, const char *host);

/* Adds the names by which other machines may reach the listener: the name of this machine, also without its
 * domain, and the address the listener is bound to, unless that is the wildcard address. */
void reach_names(const char *listen, const char *default_port, struct strings *names);
