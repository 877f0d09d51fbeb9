/* SPDX-License-Identifier: MIT */
/* Failures as HTTP answers: the one table from errno to status and code, and the RFC 9457 object. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

struct problem {
    int error;         // positive errno
    unsigned status;   // HTTP
    const char *code;  // stable word for programs
    const char *title; // stable words for people
};

/* The row of a negative errno; the "internal" row when there is none. */
const struct problem *problem_find(int code);

/* Every row, for the documentation. */
const struct problem *problem_all(size_t *ret_count);

/* {"type","title","status","code","detail","hint"}; with "outcome":"unknown" for -EIO. The caller owns it. */
json_t *problem_write(const struct error *err);

/* The words that go with a status in the first line of an answer. */
const char *problem_status_text(unsigned status);
