/* SPDX-License-Identifier: MIT */
/* The registry of nodes: the machines that have joined, with their keys and the state of their links. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store_node.h"
#include "wire/tls/join_token.h"

struct controller;
struct node_registry;

struct registered_node {
    char *name;
    bool is_remote; // joined; else the local node
    uint8_t key_hash[STORE_HASH_SIZE];
    int64_t joined_ms;
    char *address;                       // of its last link, NULL: none so far, or local
    bool is_up;                          // it has a link and has sent HELLO
    int64_t since_ms;                    // wall clock: last change of is_up; 0: before mgpud started
    struct registered_node *next_of_key; // in the registry's table of keys
};

struct node_registry *registry_new(struct controller *controller);
void registry_free(struct node_registry *registry);

/* Loads the registry from the store. */
int registry_load(struct node_registry *registry, struct error *err);

/* True if some machine may want to connect. */
bool registry_awaits(const struct node_registry *registry);

/* When that ends without a change: expiry of the last token by the wall clock; 0: it does not end, or has
 * ended. */
int64_t registry_awaits_until(const struct node_registry *registry);

const struct registered_node *registry_find(const struct node_registry *registry, const char *name);
const struct registered_node *registry_find_key(
    const struct node_registry *registry, const uint8_t key_hash[STORE_HASH_SIZE]);
void registry_each(const struct node_registry *registry,
    void (*visit)(void *arg, const struct registered_node *node), void *arg);

/* Its link was opened or closed. `address` NULL: the local node. */
void registry_note_link(struct node_registry *registry, const char *name, const char *address, bool is_up);

/* Creates a token with this `secret`; `on_made` gets its id when durable, 0: the disk is full. */
int registry_make_token(struct node_registry *registry, const struct store_join_token *token,
    uint8_t secret[JOIN_SECRET_SIZE], void (*on_made)(void *arg, uint64_t id), void *arg, struct error *err);

/* Uses a token; a machine that has joined is found from then on. */
void registry_join(struct node_registry *registry, const struct store_join *asked,
    void (*on_joined)(void *arg, enum store_join_result result), void *arg);

/* Removes a node. */
void registry_forget(struct node_registry *registry, const char *name,
    void (*on_forgotten)(void *arg, bool is_done), void *arg);
