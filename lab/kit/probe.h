/* SPDX-License-Identifier: MIT */
/* What several checks do: run a verb of mgpu-gpu-test, here or in a job. */
#pragma once

#include "lab/kit/kit.h"

/* The path of mgpu-gpu-test. The caller frees it. */
char *probe_program(const struct kit *kit);

/* Runs `mgpu-gpu-test ARGUMENTS` (ending in NULL) and takes its last line as the fact "probe". Passed with
 * exit status 0, skipped with 77, else failed, with its error as the text. Returns the line (borrowed from
 * the facts), or NULL. */
const json_t *probe_run(
    struct kit *kit, const char *const *arguments, int64_t timeout_ms, struct result *result);

/* Submits `mgpu-gpu-test ARGUMENTS` with options of submit, both ending in NULL; the job's number, or a
 * negative errno after result_fail(). */
int64_t probe_submit(
    struct kit *kit, const char *const *options, const char *const *arguments, struct result *result);

/* Waits for the end of a job. NULL after result_fail(), else its record, which the caller frees; its state
 * and the last line of its output are facts. */
json_t *probe_wait(struct kit *kit, int64_t job, int64_t timeout_ms, struct result *result);

/* Kills a job; the caller waits for it. */
void probe_cancel(struct kit *kit, int64_t job);

/* Waits until the job has started; false: it has not by then. */
bool probe_await_start(struct kit *kit, int64_t job, int64_t timeout_ms);

/* How many GPUs are free for jobs. */
size_t probe_count_free(struct kit *kit);

/* Waits until so many are; how long that took in milliseconds, or -1: they never were. */
int64_t probe_await_count(struct kit *kit, size_t count, int64_t timeout_ms);

/* Waits until mgpu calls the GPU of the checks free; how long that took in milliseconds, or -1 with its state
 * as a fact. */
int64_t probe_await_free(struct kit *kit, struct result *result);

/* A part of that GPU's free memory in percent, as an option: "512M". At most `most_mib`. */
#define PROBE_SIZE 32
void probe_size(const struct kit *kit, unsigned int percent, long long most_mib, char text[PROBE_SIZE]);

/* Whether a GPU is the one that CUDA shows with `of_cuda`, which does not say whether it is a MIG instance.
 */
bool probe_is_same(const char *uuid, const char *of_cuda);

/* Whether a GPU has MIG instances, of which CUDA shows a program one. */
#define PROBE_INSTANCE     "MIG-" // begins their UUIDs
#define PROBE_ONE_INSTANCE "a GPU has MIG instances, and CUDA shows a program one of them"
bool probe_has_instances(const struct kit *kit);

/* Removes from a GPU as mgpu shows it what a report should not have: the node's name, and whose processes are
 * there. */
void probe_hide(json_t *gpu);

/* A member of a record, "" where it is none. */
const char *record_word(const json_t *record, const char *name);

/* Whether this mgpu has `VERB ACTION`; `action` may be NULL. False after result_skip(). */
bool probe_has_verb(struct kit *kit, const char *verb, const char *action, struct result *result);
