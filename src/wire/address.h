/* SPDX-License-Identifier: MIT */
/* Network addresses as users write them: HOST:PORT, IPv6 addresses in brackets. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define NODES_PORT "9124" // where nodes join and connect
#define API_PORT   "9123"

struct address {
    char *host; // without brackets
    char *port;
};

/* Parses "HOST:PORT", "[V6]:PORT", "HOST" or "[V6]", the last two with `default_port` (NULL: rejected). */
int address_parse(const char *text, const char *default_port, struct address *ret, struct error *err);

/* Parses "A,B,C", each as above, into at most ADDRESSES_MAX addresses; *ret_count: how many. */
#define ADDRESSES_MAX 9U
int address_parse_list(const char *text, const char *default_port, struct address ret[ADDRESSES_MAX],
    size_t *ret_count, struct error *err);
void address_clear_list(struct address *addresses, size_t count);

/* Formats the address; the caller frees it. */
char *address_text(const struct address *address);
void address_clear(struct address *address);
#define _cleanup_address_ _cleanup_(address_clear)

/* The address of a socket's peer, such as "10.0.0.7:41234"; the caller frees it. */
char *address_of_peer(int fd);

/* The local address of the connection: how the peer reaches this machine. NULL: unknown. */
char *address_of_self(int fd);

/* True if only programs of this machine can connect to this address: a loopback address, or "localhost". */
bool address_is_loopback(const char *listen);

/* The same for a host alone. */
static inline bool address_host_is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0;
}
