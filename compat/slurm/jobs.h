/* SPDX-License-Identifier: MIT */
/* Jobs for squeue, sacct, scancel and scontrol: parsing of ids, and queries. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"
#include "cli/api/client.h"

#define SLURM_NO_INDEX (-1)
#define SLURM_IDS_MAX  20000U

/* A job as typed: "12", "12_3", "12.batch", or an element of "12_[1-3]". */
struct slurm_id {
    uint64_t job;
    int64_t index; // in its array, or SLURM_NO_INDEX: the whole job
    char *step;    // the part after the dot, or NULL
};

struct slurm_ids {
    struct slurm_id *items;
    size_t count;
    const char *refusal; // prefix of the message for an invalid word; NULL: "Invalid job id specified: "
    unsigned words;      // how the refusal is printed: enum slurm_words
    bool has_numbers;    // a step is a number, not a word such as "batch"
};

/* Appends the ids of a list "12,13_[1-3],14.batch". -EINVAL: "Invalid job id: x"; earlier ones have been
 * appended. */
int slurm_ids_parse(const char *text, struct slurm_ids *ids, struct error *err);
void slurm_ids_clear(struct slurm_ids *ids);
#define _cleanup_slurm_ids_ _cleanup_(slurm_ids_clear)

/* In the form of API paths: "12" or "12.3". The caller frees it. */
char *slurm_id_path(const struct slurm_id *id);

/* True if it is that job, one of its elements, or an array that still contains it. */
bool slurm_id_fits(const struct slurm_id *id, const json_t *job);

struct slurm_query {
    const struct slurm_ids *ids; // empty: all
    const char *users;           // "ana,1000", NULL: all
    const char *name;            // exactly; NULL: any
    const char *names;           // one of this list; NULL: any
    bool is_quick;               // reasons are not needed
    bool has_ended;              // including those that are only in the store
    bool has_open_alone;         // excluding ended ones
};

/* The jobs ordered by id: arrays with their waiting elements, and elements that are separate jobs. The
 * caller releases the array. */
int slurm_jobs_get(struct client *client, const struct slurm_query *query, json_t **ret, struct error *err);

/* True if a node of the list "n[1-3],n7" is one of the job's. */
bool slurm_job_is_on(const json_t *job, const char *nodes);

/* True for a job that ended so long ago that Slurm would not list it any more. */
bool slurm_job_is_old(const json_t *job, int64_t now_ms);

/* The Slurm option kept with the job, or NULL. */
const char *slurm_job_note(const json_t *job, const char *name);

/* True if `text` is in a list of words with commas between them. Blanks beside a comma do not count; those
 * in a word do. */
bool slurm_list_has(const char *list, const char *text);

/* True if the lists have a word in common. */
bool slurm_lists_meet(const char *list, const char *other);

/* Checks the names and numbers of a list of users, NULL or not. -EINVAL: "Invalid user: ana", with `what` in
 * place of "Invalid user". */
int slurm_users_check(const char *list, const char *what, struct error *err);

/* The name of the calling user; "" if unknown. */
const char *slurm_own_name(void);

/* A waiting element of the array as a separate job. The caller releases it. */
json_t *slurm_job_element(const json_t *job, uint32_t index);

/* Replaces arrays for which the ids name only waiting elements ("12_3") by these elements. */
void slurm_jobs_narrow(const struct slurm_ids *ids, json_t **jobs);
