/* SPDX-License-Identifier: MIT */
/* The master of mgpu_simple_client and mgpu_simple_node: a host and a port in the place of a socket. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "cli/options/call.h"

#define SIMPLE_HOST "127.0.0.1"
#define SIMPLE_PORT "8080"

/* --host and --port, for before the verb. */
extern const struct option_row simple_place_rows[];

/* Setters for rows of other names; `what` is the option as it was typed. */
int simple_place_set_host(const char *what, const char *value, struct error *err);
int simple_place_set_port(const char *what, const char *value, struct error *err);

bool simple_place_is_given(void);

/* What was given, or the defaults. */
const char *simple_place_host(void);
const char *simple_place_port(void);

/* The host is this machine: one of its addresses, or on the loopback. */
bool simple_place_is_here(void);

/* "host:port", the port that many further on. The caller frees it. */
char *simple_place_text(unsigned further);

/*
 * Makes the call one to that master. On this machine the socket of the mgpud that has the port is preferred,
 * whatever it speaks there. When neither host nor port was given, the usual places come first. The master of
 * another machine is known by the pin in MGPU_HOST.
 */
int simple_place_find(struct call *call, struct error *err);
