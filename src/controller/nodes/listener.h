/* SPDX-License-Identifier: MIT */
/* The port for nodes: open only while a machine may want to connect. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct controller;
struct node_listener;
struct tls_authority;

struct node_listener *node_listener_new(struct controller *controller, const char *store_dir);
void node_listener_free(struct node_listener *listener);

/* Opens or closes the port as the registry requires. Failing to open it is an error. */
int node_listener_update(struct node_listener *listener, struct error *err);

/* Opens it regardless, for a token about to be created; node_listener_update() closes it again. */
int node_listener_open(struct node_listener *listener, struct error *err);

/* The cluster's keys, created on first use. */
int node_listener_authority(
    struct node_listener *listener, const struct tls_authority **ret, struct error *err);

/* mgpud is shutting down: accepts no new machine. */
void node_listener_shut(struct node_listener *listener);

/* True while a joining machine has no answer yet. */
bool node_listener_is_joining(const struct node_listener *listener);

/* Refuses the machines that are joining. */
void node_listener_refuse(struct node_listener *listener);

/* Closes all connections of this node. */
void node_listener_cut(struct node_listener *listener, const char *node);
