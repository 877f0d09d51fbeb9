/* SPDX-License-Identifier: MIT */
/* --json: objects with the names and types of Slurm 22.05 (openapi v0.0.38). */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* A job for squeue, a job with its steps (may be NULL) for sacct, a node for sinfo. The caller releases them.
 */
json_t *slurm_json_job(const json_t *job, int64_t now_ms);
json_t *slurm_json_account(const json_t *job, const json_t *steps, int64_t now_ms);
json_t *slurm_json_node(const json_t *node, const json_t *partitions);

/* The member "meta" of a whole. The caller releases it. */
json_t *slurm_json_meta(bool is_account);

/* Prints {"meta": ..., "errors": [], MEMBER: list}; takes ownership of the list. */
void slurm_json_print(const char *member, json_t *list, bool is_account);

/* Prints the jobs as squeue --json. Returns 0. */
int slurm_json_print_jobs(const json_t *jobs);
