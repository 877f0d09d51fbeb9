/* SPDX-License-Identifier: MIT */
/* The address of a port of this machine for other machines. */
#pragma once

/* "HOST:PORT" of the listener `listen`: HOST is `host` if not NULL, else the address it is bound to, else, if
 * that is the wildcard address, the name of this machine. The caller frees it. */
char *reach_text(const char *listen, const char *default_port, const char *host);
