/* SPDX-License-Identifier: MIT */
/*
 * The nodes of an attempt that has several, in order of rank: rank 0 is the node that the job's record names
 * anyway. An attempt on one node has no such list.
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
    char *boot_id; // that it had when the attempt was allocated
    /* Of the part there, when the attempt is over. */
    char *log_path;
    uint32_t end; // enum job_end; END_NONE: it never ran
    int32_t exit_code;
};

struct job_nodes {
    struct record_list nodes; // struct job_node
};

extern const struct record_type job_node_record;
extern const struct record_type job_nodes_record;

/* Adds a node behind those that are there; both texts are copied. */
void job_nodes_add(struct record_list *nodes, const char *name, const char *boot_id);

/* A copy of its own, NULL of none. */
struct job_nodes *job_nodes_copy(const struct record_list *nodes);
void job_nodes_free(struct job_nodes *nodes);
bool job_nodes_equal(const struct job_nodes *a, const struct job_nodes *b);

/* --- of the job's latest attempt, however many nodes it has; 0 and NULL when it has none --- */
/* The node of this rank of several, NULL: there is no such rank, or no several. */
const struct job_node *job_node(const struct job *job, size_t rank);
size_t job_node_count(const struct job *job);
const char *job_node_name(const struct job *job, size_t rank);
const char *job_node_boot(const struct job *job, size_t rank);

/* The rank of its part on this node, -1: it has none there. */
int job_rank_on(const struct job *job, const char *node);

/* The GPUs it was given on the node of this rank. */
size_t job_node_gpus(const struct job *job, size_t rank);
