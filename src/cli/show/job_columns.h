/* SPDX-License-Identifier: MIT */
/* How a job is shown: the columns of `ps`, and the pieces that other verbs show too. */
#pragma once

#include "cli/options/list.h"

extern const struct list_column job_columns[];

/* "gpu1:0-3", "gpu1" without GPUs, "-" before it has a place. The caller frees it. */
char *job_where(const json_t *job);

/* How it ended, in words: "exit 1", "killed by signal 9 (KILL)", "cancelled by ana"; NULL while it goes on.
 * The caller frees it. */
char *job_outcome(const json_t *job);

/* "42", or "42.3" for an element of an array. The caller frees it. */
char *job_id(const json_t *job);

/* The part of one GPU it asks for, 0 when it asks for whole ones or shares by memory. */
double job_gpu_share(const json_t *job);

bool job_is_done(const json_t *job);

/* True for a queued job that must be released before it can start. */
bool job_is_held(const json_t *job);

/* What its state is called here: as the API does, but "held" for a queued job that is. */
const char *job_state_shown(const json_t *job);

/* The i-th of these words, NULL after the last. */
const char *job_state_word(size_t i);

/* Refuses a list such as "queued,held" in which a word is no state; `what` names the option. */
int job_states_check(const char *what, const char *list, struct error *err);

enum color job_color(const json_t *job);
const char *job_glyph(const struct screen *screen, const json_t *job);
