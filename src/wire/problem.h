/* SPDX-License-Identifier: MIT */
/* Errors as HTTP answers: the only table from errno to status and code, and the RFC 9457 object. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/error.h"

struct problem {
    int error;         // positive errno
    unsigned status;   // HTTP
    const char *code;  // stable code for programs
    const char *title; // stable text for users
};

/* The row of a negative errno; the "internal" row if there is none. */
const struct problem *problem_find(int code);

/* Every row; for tests, which compare them with the documentation. */
const struct problem *problem_all(size_t *ret_count);

/* {"type","title","status","code","detail","hint"}; with "outcome":"unknown" for -EIO. The caller owns the
 * result. */
json_t *problem_write(const struct error *err);

/* The reason phrase of a status. */
const char *problem_status_text(unsigned status);
