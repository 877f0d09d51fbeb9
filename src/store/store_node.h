/* SPDX-License-Identifier: MIT */
/* Nodes that have joined, by the hash of the key that each proves to have, and the tokens that let one join.
 */
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
    uint32_t uid;                   // who made it
    int64_t created_ms, expires_ms; // wall clock
    char *node;                     // only for a node of this name; NULL: any
    bool is_replacing;              // the name may be taken
};

/* The id is 0 when the disk is full. */
void store_add_join_token(struct store *store, const struct store_join_token *token,
    const uint8_t hash[STORE_HASH_SIZE], void (*on_added)(void *arg, uint64_t id), void *arg);

/* What became of joining with a token. */
enum store_join_result {
    STORE_JOIN_DONE,
    STORE_JOIN_UNKNOWN, // no such token, or the secret is not its
    STORE_JOIN_USED,
    STORE_JOIN_EXPIRED,
    STORE_JOIN_NOT_FOR_IT, // the token is for a node of another name
    STORE_JOIN_NAME_TAKEN,
    STORE_JOIN_KEY_TAKEN, // a node of another name has this key
    STORE_JOIN_FULL,      // the disk is
};

/* A wish to join. Without a name it only asks what would become of it. */
struct store_join {
    uint64_t token;
    uint8_t hash[STORE_HASH_SIZE];     // of the secret
    uint8_t key_hash[STORE_HASH_SIZE]; // of the node's key
    char *node;                        // NULL: nothing is changed
    int64_t now_ms;
};

/* Uses the token up and enters the node, both or neither. Once more by the same node with the same key is
 * done again: its answer may have been lost. */
void store_join_node(struct store *store, const struct store_join *join,
    void (*on_joined)(void *arg, enum store_join_result result), void *arg);

/* Done when it is durable, also for a name that is not there. False: the disk is full. */
void store_forget_node(
    struct store *store, const char *name, void (*on_forgotten)(void *arg, bool is_done), void *arg);

/* Loading at start, on the caller's thread. `ret_until_ms`: when the last token that is not used expires, 0
 * for none. */
int store_load_nodes(struct store *store, void (*visit)(void *arg, const struct store_node *node), void *arg,
    int64_t *ret_until_ms, struct error *err);
