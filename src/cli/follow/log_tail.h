/* SPDX-License-Identifier: MIT */
/* Finds the beginning of the last lines of a log. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "cli/api/client.h"

/* The offset at which the last `lines` lines of a log begin; 0 if it has no more. `path` requests it. */
int log_tail_find(
    struct client *client, const char *path, uint64_t lines, uint64_t *ret_offset, struct error *err);

/* The same within a buffer: the number of bytes before the last `lines` lines. */
uint64_t log_tail_in(const void *bytes, uint64_t length, uint64_t lines);
