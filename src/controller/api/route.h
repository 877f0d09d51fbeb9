/* SPDX-License-Identifier: MIT */
/* The routes: dispatch, 404, 405, /openapi.json and docs/api.md are all based on this table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/record.h"
#include "controller/core/rights.h"

struct job;
struct request;

#define ROUTE_PARAMETERS_MAX 11

struct route_parameter {
    const char *name;
    const char *help;
};

struct route {
    const char *method; // HEAD is also answered for GET routes
    const char *path;   // "{id}" stands for a number (of a job also "42.3"), "{name}" for a name
    enum action action; // required permission; for a job it is checked once the job is found
    void (*handle)(struct request *request);
    const char *help;
    struct route_parameter parameters[ROUTE_PARAMETERS_MAX]; // of the query; terminated by a NULL name
    const struct record_type *body;                          // NULL: none
    bool is_costly;                                          // queued (http/fair_queue.h)
    bool is_of_record;  // answered from the store alone, so also by a standby
    bool is_for_guests; // rights_is_guest(), whose other requests are limited to the greeting
    const char *answer; // schema of its JSON (answers.c); NULL: other
    void (*found)(struct request *request, const struct job *job); // of_its_job: called with the job
};

const struct route *route_all(size_t *ret_count);

/* True if a standby answers this request, from its store. */
bool route_is_of_record(const struct request *request);

/* Performs the checks that are the same for all routes, and calls the route's handler. */
void route_dispatch(struct request *request);
