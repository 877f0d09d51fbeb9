/* SPDX-License-Identifier: MIT */
/* The columns of `ps`, and parts that other verbs also show. */
#pragma once

#include "cli/options/list.h"

extern const struct list_column job_columns[];

/* "gpu1:0-3", "gpu1" without GPUs, "gpu[1-16]:0-7" on many nodes, "-" before it is placed. The caller frees
 * it. */
char *job_where(const json_t *job);

/* How it ended: "exit 1", "killed by signal 9 (KILL)", "cancelled by ana"; NULL if it has not ended. The
 * caller frees it. */
char *job_outcome(const json_t *job);

/* "42", or "42.3" for an element of an array. The caller frees it. */
char *job_id(const json_t *job);

/* The requested fraction of one GPU, 0 if it requests whole ones or shares by memory. */
double job_gpu_share(const json_t *job);

bool job_is_done(const json_t *job);

/* The place of its displayed state in lists by state: running and parked jobs first, then those that are
 * starting or stopping, then waiting ones, ended ones last. */
int job_state_rank(const json_t *job);

/* True for a queued job that is held. */
bool job_is_held(const json_t *job);

/* True for an array all of whose elements are separate jobs: nothing of the array itself waits. */
bool job_is_split_up(const json_t *job);

/* The displayed state: that of the API, or the part of it that the job is in: "held" of queued, "suspended",
 * "parked" and others of running. */
const char *job_state_shown(const json_t *job);

/* The i-th state, NULL after the last. */
const char *job_state_word(size_t i);

/* Rejects a list such as "queued,held" with an invalid state; `what` names the option. */
int job_states_check(const char *what, const char *list, struct error *err);

/* True if the list has the word. */
bool job_states_name(const char *list, const char *word);

/* A checked list in states of the API, which has no parts: "queued" for "held". The caller frees it. */
char *job_states_of_api(const char *list);

/* True if the list names a part of a state of the API. */
bool job_states_are_parts(const char *list);

/* True if the job is in a state of the list, which may be a part. */
bool job_states_have(const char *list, const json_t *job);

enum color job_color(const json_t *job);
const char *job_glyph(const struct screen *screen, const json_t *job);
