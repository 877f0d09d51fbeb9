/* SPDX-License-Identifier: MIT */
/*
 * The state file of `scheduler`: which line of the jobs file became which job, and which GPUs are paused.
 * People edit it and delete it, so that it is compared with what was written last before it is written again.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"

#define FEED_STATE_MAX (64U << 20)

/* What the file is now, compared with what this program wrote. */
enum feed_state_look { FEED_STATE_SAME, FEED_STATE_EDITED, FEED_STATE_MISSING };

struct feed_state {
    const char *path;
    json_t *root;  // gpu_status, paused_gpus, known_paused_gpus, session, jobs
    char *written; // as it is on disk, NULL: not yet
    bool is_dirty;
};

/* Reads and checks one; the caller releases *ret. -EINVAL with file and line. */
int feed_state_parse(const char *text, size_t length, const char *path, json_t **ret, struct error *err);

/* A state that knows nothing, with a session of its own. */
int feed_state_reset(struct feed_state *state, struct error *err);

/* Takes up the file, or begins anew when there is none: *ret_is_new. */
int feed_state_open(struct feed_state *state, const char *path, bool *ret_is_new, struct error *err);

/* What is on disk; of an edited file *ret_text is the text, for the caller to free. */
int feed_state_look(
    const struct feed_state *state, enum feed_state_look *ret, char **ret_text, struct error *err);

/* Writes all of it at once, in the place of what was written or taken up last: -ESTALE when somebody has
 * edited the file since, -ENOENT when it was deleted. */
int feed_state_save(struct feed_state *state, struct error *err);

/* The job that became of the line with that hash, or NULL. Owned by the state. */
json_t *feed_state_job(const struct feed_state *state, const char *hash);

void feed_state_clear(struct feed_state *state);
