/* SPDX-License-Identifier: MIT */
/* Joined nodes, identified by the hash of their keys, and the tokens for joining. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define STORE_HASH_SIZE 32

struct store_node {
    char *name;
    uint8_t key_hash[STORE_HASH_SIZE];
    int64_t joined_ms; // wall clock
};

struct store_join_token {
    uint32_t uid;                   // the user who created it
    int64_t created_ms, expires_ms; // wall clock
    char *node;                     // only for a node with this name; NULL: any
    bool is_replacing;              // may replace an existing node of this name
};

/* The id is 0 if the disk is full. */
void store_add_join_token(struct store *store, const struct store_join_token *token,
    const uint8_t hash[STORE_HASH_SIZE], void (*on_added)(void *arg, uint64_t id), void *arg);

/* Results of joining with a token. */
enum store_join_result {
    STORE_JOIN_DONE,
    STORE_JOIN_UNKNOWN, // no such token, or wrong secret
    STORE_JOIN_USED,
    STORE_JOIN_EXPIRED,
    STORE_JOIN_NOT_FOR_IT, // the token is for a node with another name
    STORE_JOIN_NAME_TAKEN,
    STORE_JOIN_KEY_TAKEN, // a node with another name has this key
    STORE_JOIN_FULL,      // the disk is full
};

/* A request to join. Without a name it only checks the result. */
struct store_join {
    uint64_t token;
    uint8_t hash[STORE_HASH_SIZE];     // of the secret
    uint8_t key_hash[STORE_HASH_SIZE]; // of the node's key
    char *node;                        // NULL: check only
    int64_t now_ms;
};

/* Uses up the token and adds the node, atomically. A repetition by the same node with the same key succeeds
 * again, because its answer may have been lost. */
void store_join_node(struct store *store, const struct store_join *join,
    void (*on_joined)(void *arg, enum store_join_result result), void *arg);

/* Removes a node; done when durable, also if there is no such node. False: the disk is full. */
void store_forget_node(
    struct store *store, const char *name, void (*on_forgotten)(void *arg, bool is_done), void *arg);

/* For the start, on the caller's thread. `ret_until_ms`: expiry of the last unused token, 0 for none. */
int store_load_nodes(struct store *store, void (*visit)(void *arg, const struct store_node *node), void *arg,
    int64_t *ret_until_ms, struct error *err);
