/* SPDX-License-Identifier: MIT */
/* A job that a request names. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"

/*
 * The number of a job that is named in any way; its own for an element of an array, which becomes a job if it
 * was not yet one. In a dry run, that of the whole array instead: *ret_is_array. `what`: the option, for
 * errors.
 */
int ask_find_job(struct client *client, const char *what, char *word, int64_t *ret_id, bool *ret_is_array,
    struct error *err);
