/* SPDX-License-Identifier: MIT */
/*
 * A client of etcd's HTTP/JSON gateway (etcd 3.4 and later), blocking. One thread uses a client at a time.
 *
 * A write that fails with -EAGAIN may have happened: the connection broke, or etcd did not decide in time.
 * The caller must check, or repeat a transaction whose comparisons make that harmless.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/strings.h"

struct etcd_settings {
    struct strings endpoints; // "http://a:2379" or "https://..."
    char *prefix;             // of all keys: "mgpu"
    char *ca, *cert, *key;    // files, or NULL
    atomic_size_t endpoint;   // first endpoint of a new client: not one that has just failed
};

/* "etcd://a:2379,b:2379[/PREFIX]"; etcds:// for TLS. */
int etcd_settings_parse(const char *text, struct etcd_settings *ret, struct error *err);
void etcd_settings_clear(struct etcd_settings *settings);

struct curl_library;
struct etcd;

/* The settings are borrowed. Clients in several threads may share them. */
struct etcd *etcd_new(const struct curl_library *curl, struct etcd_settings *settings);
void etcd_free(struct etcd *etcd);

/*
 * One request to /v3/PATH; `body` is stolen. -EAGAIN: no endpoint answered, or etcd has no leader at present;
 * the next call asks another endpoint. -ENOSPC: etcd's database is full; -E2BIG: the request is too large;
 * -ENOENT: no such lease; -ECOMM: etcd refused it otherwise. *ret is the caller's.
 */
int etcd_call(
    struct etcd *etcd, const char *path, json_t *body, int timeout_ms, json_t **ret, struct error *err);

/* True if the latest call failed as calls do while etcd elects a leader: by etcd's error message, or without
 * an answer in time. */
bool etcd_may_elect(const struct etcd *etcd);

/* The next call asks this endpoint. */
void etcd_choose(struct etcd *etcd, size_t endpoint);

/* Waits a moment before a call that failed with -EAGAIN is repeated: endpoints that refuse connections fail
 * at once. */
void etcd_pause(void);

struct etcd_watching {
    void (*on_bytes)(void *arg);     // the watch was created, or something changed
    bool (*may_continue)(void *arg); // called about once a second
    void *arg;
};

/* Watches the keys from `name` up to `end` for that long. 0: the time is up; -EAGAIN: the watch ended
 * earlier. Changes before the first on_bytes() are missed. */
int etcd_watch(struct etcd *etcd, const char *name, const char *end, int timeout_ms,
    const struct etcd_watching *watching, struct error *err);

/* --- a transaction --- */

struct etcd_txn {
    json_t *compare, *success, *failure;
};

/* A key as PREFIX/NAME. */
void etcd_txn_if_created_at(
    struct etcd_txn *txn, const struct etcd *etcd, const char *name, int64_t revision); // 0: absent
void etcd_txn_if_modified_at(
    struct etcd_txn *txn, const struct etcd *etcd, const char *name, int64_t revision); // 0: absent
void etcd_txn_if_exists(struct etcd_txn *txn, const struct etcd *etcd, const char *name);
void etcd_txn_put(struct etcd_txn *txn, const struct etcd *etcd, const char *name, const void *bytes,
    size_t length, int64_t lease); // lease 0: none
/* Keys from `name` up to, but without, `end` (NULL: that key alone), in order. */
void etcd_txn_delete(struct etcd_txn *txn, const struct etcd *etcd, const char *name, const char *end);
void etcd_txn_read(struct etcd_txn *txn, const struct etcd *etcd, const char *name, const char *end,
    int limit); // in the success branch
void etcd_txn_otherwise_read(struct etcd_txn *txn, const struct etcd *etcd, const char *name);

struct etcd_key {
    char *name; // without the prefix
    struct buffer value;
    int64_t created, modified; // revisions
    int64_t lease;             // 0: none
};

struct etcd_result {
    bool is_success;
    int64_t revision;
    struct etcd_key *keys; // of all reads, in order
    size_t n_keys;
};

/* Sends and clears the transaction. */
int etcd_commit(
    struct etcd *etcd, struct etcd_txn *txn, int timeout_ms, struct etcd_result *ret, struct error *err);
void etcd_result_clear(struct etcd_result *result);

/* A key of a result; NULL if it is absent. */
const struct etcd_key *etcd_result_find(const struct etcd_result *result, const char *name);

/* A 64-bit number, which the gateway writes as text. */
int64_t etcd_number(const json_t *object, const char *name);
