/* SPDX-License-Identifier: MIT */
/* HOST:PORT as people write it, with IPv6 addresses in brackets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define NODES_PORT "9124" // where nodes join and dial in
#define API_PORT   "9123"

struct address {
    char *host; // without brackets
    char *port;
};

/* Reads "HOST:PORT", "[V6]:PORT", "HOST" or "[V6]", the last two with `default_port` (NULL: refused). */
int address_parse(const char *text, const char *default_port, struct address *ret, struct error *err);

/* As it is written; the caller frees it. */
char *address_text(const struct address *address);
void address_clear(struct address *address);
#define _cleanup_address_ _cleanup_(address_clear)

/* The address of a socket's other end, such as "10.0.0.7:41234"; the caller frees it. */
char *address_of_peer(int fd);

/* The same of our end of the connection: how the peer reaches this machine. NULL: not known. */
char *address_of_self(int fd);

/* True when only programs of this machine can reach what listens there: a loopback address, or "localhost".
 */
bool address_is_loopback(const char *listen);

/* The same of a host alone. */
static inline bool address_host_is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0;
}
