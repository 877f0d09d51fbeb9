/* SPDX-License-Identifier: MIT */
/* The address of a port of this machine for other machines. */
#pragma once

#include "base/strings.h"

/* "HOST:PORT" of the listener `listen`: HOST is `host` if not NULL, else the address it is bound to, else, if
 * that is the wildcard address, the name of this machine. The caller frees it. */
char *reach_text(const char *listen, const char *default_port, const char *host);

/* Where clients and nodes reach one of several controllers: `address` (NULL: not set) is for clients, and its
 * host for nodes. Empty for listeners that are "none". */
void reach_controller(
    const char *address, const char *listen, const char *nodes_listen, char **ret_api, char **ret_nodes);

/* Adds the names by which other machines may reach the listener: the name of this machine, also without its
 * domain, and the address the listener is bound to, unless that is the wildcard address. */
void reach_names(const char *listen, const char *default_port, struct strings *names);
