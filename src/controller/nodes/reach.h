/* SPDX-License-Identifier: MIT */
/* How other machines write the address of a port of this one. */
#pragma once

/* "HOST:PORT" of what listens at `listen`: `host` when it is not NULL, else the address that it is bound to,
 * else, when that is any, the name of this machine. The caller frees it. */
char *reach_text(const char *listen, const char *default_port, const char *host);
