/* SPDX-License-Identifier: MIT */
/*
 * `top=N` of GET /jobs: the most interesting part of a list that is too long to read. For waiting jobs those
 * that are next in line, for all other states the newest.
 */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "controller/core/core.h"

struct list_top;

/* At most `max` jobs of each state. */
struct list_top *list_top_new(size_t max);
void list_top_free(struct list_top *top);

/* A job that matches, and the state it counts for; in order of ids. */
void list_top_note(struct list_top *top, const struct job *job, enum job_state state);

/* After the last of them: passes the ids to `add`, in no order. The jobs in line are those of this user
 * (NULL: of all) for which `is_wanted`. */
void list_top_take(struct list_top *top, const struct core *core, const uint32_t *uid,
    bool (*is_wanted)(void *arg, const struct job *job), void (*add)(void *arg, uint64_t id), void *arg);

/* The number of matching jobs of each state that were left out: {"queued":24800}. */
void list_top_append_omitted(const struct list_top *top, struct buffer *out);
