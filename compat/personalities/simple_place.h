/* SPDX-License-Identifier: MIT */
/* The master of mgpu_simple_client and mgpu_simple_node: a host and a port instead of a socket. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/options/call.h"

#define SIMPLE_HOST "127.0.0.1"
#define SIMPLE_PORT "8080"

/* --host and --port, before the verb. */
extern const struct option_row simple_place_rows[];

/* Setters for rows with other names; `what` is the option as typed. */
int simple_place_set_host(const char *what, const char *value, struct error *err);
int simple_place_set_port(const char *what, const char *value, struct error *err);

bool simple_place_is_given(void);

/* The specified values, or the defaults. */
const char *simple_place_host(void);
const char *simple_place_port(void);

/* True if the host is this machine: one of its addresses, or loopback. */
bool simple_place_is_here(void);

/* "host:port", with `further` added to the port. The caller frees it. */
char *simple_place_text(unsigned further);

/*
 * Connects the call to that master. On this machine, the socket of the mgpud with this port is used, whatever
 * protocol the port has. If neither host nor port was specified, the default places are tried first. A master
 * on another machine requires the pin in MGPU_HOST.
 */
int simple_place_find(struct call *call, struct error *err);
