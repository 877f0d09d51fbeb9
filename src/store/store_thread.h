/* SPDX-License-Identifier: MIT */
/* The store's own thread: requests in, answers out, both in the order in which they were asked for. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;
struct store_request;

/* What can be asked of the thread. A request is embedded in a struct of its own; it is freed after its
 * answer. */
struct store_request_kind {
    /* On the store's thread. With `is_grouped` the request heads a list of waiting requests of its kind, in
     * order, which are carried out together. A failure is the end of the store. */
    int (*run)(struct store *store, struct store_request *request, struct error *err);
    void (*answer)(struct store *store, struct store_request *request); // on the caller's thread; may be NULL
    /* The store closes and nobody will answer: on the caller's thread, answers with nothing. May be NULL. */
    void (*drop)(struct store_request *request);
    void (*free)(struct store_request *request);
    bool is_grouped;
};

struct store_request {
    const struct store_request_kind *kind;
    struct store_request *next;
};

struct store_queue {
    struct store_request *first;
    struct store_request **end; // where the next one is linked in
};

enum store_health {
    STORE_WORKS,
    STORE_FAILED, // nothing is done any more; the caller has not heard of it yet
    STORE_DEAD,   // and the caller has heard of it
};

struct store_thread {
    pthread_t id;
    pthread_mutex_t mutex; // guards all below
    pthread_cond_t wake;
    struct store_queue requests, answers;
    struct store_queue left; // what a failed store did not carry out
    enum store_health health;
    uint64_t failed_batch;
    struct error failure;
    bool is_closing;
    int eventfd;
};

int store_thread_start(struct store *store, struct error *err);

/* Carries out what was pushed, then ends the thread. What nobody fetched an answer to is dropped. Safe on a
 * thread that was never started. */
void store_thread_stop(struct store *store);

/* Takes the request over; a failed store drops it when it closes. */
void store_thread_push(struct store *store, struct store_request *request);

/* From a thread of the store: hands something over to the caller's, with `answer` of its kind. */
void store_thread_answer(struct store *store, struct store_request *requests);

/* Likewise: tells the caller of something that needs a person and loses nothing. */
void store_thread_warn(struct store *store, const struct error *warning);
