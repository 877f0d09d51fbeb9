/* SPDX-License-Identifier: MIT */
/* Where the last lines of a log begin. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"

/* The byte at which the last `lines` lines of the log of this rank of the job begin; 0 when it has no more
 * than that. */
int log_tail_find(struct client *client, const char *job, size_t rank, uint64_t lines, uint64_t *ret_offset,
    struct error *err);

/* The same within bytes that are at hand: the number of bytes before the last `lines` lines. */
uint64_t log_tail_in(const void *bytes, uint64_t length, uint64_t lines);
