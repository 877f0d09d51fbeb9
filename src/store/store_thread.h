/* SPDX-License-Identifier: MIT */
/* The store's own thread: requests and results, both in order. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;
struct store_request;

/* A kind of request. A request is embedded in its own struct, and freed after its answer. */
struct store_request_kind {
    /* On the store's thread. With `is_grouped`, the request is the head of a list of waiting requests of its
     * kind, in order, which are carried out together. A failure ends the store. */
    int (*run)(struct store *store, struct store_request *request, struct error *err);
    void (*answer)(struct store *store, struct store_request *request); // on the caller's thread; may be NULL
    /* The store is closing without an answer: on the caller's thread, gives an empty answer. May be NULL. */
    void (*drop)(struct store_request *request);
    void (*free)(struct store_request *request); // NULL: free(), it owns nothing else
    bool is_grouped;
    bool is_page; // a long answer for a single client, delivered after the short ones
};

struct store_request {
    const struct store_request_kind *kind;
    struct store_request *next;
};

struct store_queue {
    struct store_request *first;
    struct store_request **end; // tail pointer for the next one
};

enum store_health {
    STORE_WORKS,
    STORE_FAILED, // no further requests are executed; the caller has not been notified yet
    STORE_DEAD,   // the caller has been notified
};

struct store_thread {
    pthread_t id;
    pthread_mutex_t mutex; // protects all below
    pthread_cond_t wake;
    struct store_queue requests, answers, pages; // of answers: those of kinds with `is_page`
    struct store_queue left;                     // requests not carried out by a failed store
    enum store_health health;
    uint64_t failed_batch;
    struct error failure;
    bool is_closing;
    int eventfd;        // answers or pages
    int prompt_eventfd; // answers
};

int store_thread_start(struct store *store, struct error *err);

/* Carries out pending requests, then ends the thread. Undelivered answers are dropped. Allowed for a thread
 * that was never started. */
void store_thread_stop(struct store *store);

/* Takes ownership of the request; a failed store drops it when it closes. */
void store_thread_push(struct store *store, struct store_request *request);

/* From a thread of the store: passes a request to the caller's thread, which runs `answer` of its kind. */
void store_thread_answer(struct store *store, struct store_request *requests);

/* Likewise: warns the caller of a problem that loses nothing but needs an administrator. */
void store_thread_warn(struct store *store, const struct error *warning);
