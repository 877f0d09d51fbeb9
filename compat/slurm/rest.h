/* SPDX-License-Identifier: MIT */
/* The routes of slurmrestd (openapi v0.0.38) for one user. */
#pragma once

#include <jansson.h>

struct rest_request {
    const char *method, *path, *query; // without '?'; "" if there is none
    const char *body;                  // text, "" if there is none
};

/* Returns the HTTP status; *ret is the body, which the caller releases. */
int rest_answer(const struct rest_request *request, json_t **ret);

/* A body with this error, in Slurm's form. */
json_t *rest_error(int number, const char *error, const char *description);

#define REST_INVALID_QUERY 9200 // numbers of Slurm's errors
#define REST_FAIL_PARSING  9201
#define REST_INVALID_JOBS  9202
