/* SPDX-License-Identifier: MIT */
/*
 * A simulated node: it speaks the link protocol like mgpu-agent, but its GPUs, samples and jobs are made up.
 * `sleep N` takes N seconds, every other command ends at once with exit status 0. What it knows survives its
 * link, as the spool of a real node does.
 */
#pragma once

#include <event2/bufferevent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/record.h"

/* Of all nodes of this process. */
struct counts {
    uint64_t launches, repeated; // LAUNCH, and those of an attempt that was known already
    uint64_t started, ended, released;
};

struct node_options {
    unsigned gpus;      // of each node
    unsigned gpu_gib;   // memory of each GPU
    unsigned sample_ms; // interval of GPUS
    struct counts *counts;
};

struct node;

/* `on_up`: the controller has answered HELLO. */
struct node *node_new(struct event_base *base, const char *name, const struct node_options *options,
    void (*on_up)(void *arg), void *arg);
void node_free(struct node *node);

/* A new link: sends HELLO. `stream` stays the caller's. NULL: the link has ended. */
void node_set_link(struct node *node, struct bufferevent *stream);

/* A message of the controller; a negative result ends the link. */
int node_take(struct node *node, const struct record_type *type, void *message, struct error *err);
