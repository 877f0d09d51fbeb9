/* SPDX-License-Identifier: MIT */
/* The port for nodes: open while a machine may want to dial in, and closed otherwise. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct controller;
struct node_listener;
struct tls_authority;

struct node_listener *node_listener_new(struct controller *controller, const char *store_dir);
void node_listener_free(struct node_listener *listener);

/* Opens or closes the port, as the registry wants it. A port that cannot be had is an error. */
int node_listener_update(struct node_listener *listener, struct error *err);

/* Opens it in any case, for a token that is about to be made; node_listener_update() closes it again. */
int node_listener_open(struct node_listener *listener, struct error *err);

/* The cluster's keys, made on the first need. */
int node_listener_authority(
    struct node_listener *listener, const struct tls_authority **ret, struct error *err);

/* mgpud is about to leave: nobody new is taken. */
void node_listener_shut(struct node_listener *listener);

/* True while a machine that is joining has not been told what became of it. */
bool node_listener_is_joining(const struct node_listener *listener);

/* Those are told that it will not. */
void node_listener_refuse(struct node_listener *listener);

/* All connections of this node end now. */
void node_listener_cut(struct node_listener *listener, const char *node);
