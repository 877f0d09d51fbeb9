/* SPDX-License-Identifier: MIT */
/* What can be asked: the one table from which dispatch, 404, 405, /openapi.json and docs/api.md come. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/record.h"
#include "controller/core/rights.h"

struct request;

#define ROUTE_PARAMETERS_MAX 9

struct route_parameter {
    const char *name;
    const char *help;
};

struct route {
    const char *method; // GET routes answer HEAD too
    const char *path;   // "{id}" stands for a number (of a job also "42.3"), "{name}" for a word
    enum action action; // what the asker must have the right to; of a job it is checked when the job is found
    void (*handle)(struct request *request);
    const char *help;
    struct route_parameter parameters[ROUTE_PARAMETERS_MAX]; // of the query; ended by a NULL name
    const struct record_type *body;                          // NULL: none
    bool is_costly;                                          // it waits its turn (http/fair_queue.h)
};

const struct route *route_all(size_t *ret_count);

/* Checks everything that does not depend on the route's meaning, and hands the request over. */
void route_dispatch(struct request *request);
