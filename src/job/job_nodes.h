/* SPDX-License-Identifier: MIT */
/*
 * The nodes of an attempt on several nodes, in order of rank. Rank 0 is the node in the job's record. An
 * attempt on one node has no such list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/record.h"

#define JOB_NODES_MAX 4096U

struct job;

struct job_node {
    char *name;
    char *boot_id; // boot id at the allocation
    /* Of the rank there, after the attempt has ended. */
    char *log_path;
    uint32_t end; // enum job_end; END_NONE: it never ran
    int32_t exit_code;
};

struct job_nodes {
    struct record_list nodes; // struct job_node
};

extern const struct record_type job_node_record;
extern const struct record_type job_nodes_record;

/* Appends a node; both texts are copied. */
void job_nodes_add(struct record_list *nodes, const char *name, const char *boot_id);

/* A deep copy; NULL for an empty list. */
struct job_nodes *job_nodes_copy(const struct record_list *nodes);
void job_nodes_free(struct job_nodes *nodes);
bool job_nodes_equal(const struct job_nodes *a, const struct job_nodes *b);

/* --- the job's latest attempt, on any number of nodes; 0 and NULL if it has none --- */
/* The node of this rank; NULL if there is no such rank or only one node. */
const struct job_node *job_node(const struct job *job, size_t rank);
size_t job_node_count(const struct job *job);
const char *job_node_name(const struct job *job, size_t rank);
const char *job_node_boot(const struct job *job, size_t rank);

/* The rank on this node; -1 if it has none. */
int job_rank_on(const struct job *job, const char *node);

/* Is this the node of this rank? */
bool job_is_rank_on(const struct job *job, uint32_t rank, const char *node);

/* The number of GPUs allocated on the node of each rank: an array of job_node_count() numbers, which the
 * caller frees. */
size_t *job_count_gpus(const struct job *job);

/* The position of this GPU in the usage of the job: in order of rank, and on each node in the order of the
 * grants. SIZE_MAX if the job does not have it. */
size_t job_gpu_place(const struct job *job, const char *uuid);

/* Is a GPU allocated on a node that the job does not have? */
bool job_has_stray_grant(const struct job *job);
