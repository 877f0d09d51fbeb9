/* SPDX-License-Identifier: MIT */
/*
 * The state file of `scheduler`: the job of each line of the jobs file, and the paused GPUs. Users edit and
 * delete it, so it is compared with what was last written before it is overwritten.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

#define FEED_STATE_MAX (64U << 20)

/* The file compared with what this program wrote. */
enum feed_state_compare { FEED_STATE_SAME, FEED_STATE_EDITED, FEED_STATE_MISSING };

struct feed_state {
    const char *path;
    json_t *root;  // gpu_status, paused_gpus, known_paused_gpus, session, jobs
    char *written; // as on disk, NULL: not written yet
    bool is_dirty;
};

/* Parses and checks a state; the caller releases *ret. -EINVAL with file and line. */
int feed_state_parse(const char *text, size_t length, const char *path, json_t **ret, struct error *err);

/* An empty state with a new session. */
int feed_state_reset(struct feed_state *state, struct error *err);

/* Loads the file, or creates a new state if there is none: *ret_is_new. */
int feed_state_open(struct feed_state *state, const char *path, bool *ret_is_new, struct error *err);

/* Compares the file; if it was edited, *ret_text is its text, which the caller frees. */
int feed_state_compare(
    const struct feed_state *state, enum feed_state_compare *ret, char **ret_text, struct error *err);

/* Replaces the file atomically: -ESTALE if it was edited since it was last read or written, -ENOENT if it was
 * deleted. */
int feed_state_save(struct feed_state *state, struct error *err);

/* The job of the line with that hash, or NULL. Owned by the state. */
json_t *feed_state_job(const struct feed_state *state, const char *hash);

void feed_state_clear(struct feed_state *state);
