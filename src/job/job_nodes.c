/* SPDX-License-Identifier: MIT */
#include "job/job_nodes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/job.h"

static const struct record_field node_fields[] = {
    RECORD_FIELD(1, RECORD_STRING, struct job_node, name, SPEC_NAME_MAX),
    RECORD_FIELD(2, RECORD_STRING, struct job_node, boot_id, 64),
    RECORD_FIELD(3, RECORD_STRING, struct job_node, log_path, SPEC_PATH_MAX),
    RECORD_FIELD(4, RECORD_U32, struct job_node, end, 0),
    RECORD_FIELD(5, RECORD_I32, struct job_node, exit_code, 0),
};
const struct record_type job_node_record = RECORD_TYPE(80, "node of a job", struct job_node, node_fields);

static const struct record_field nodes_fields[] = {
    RECORD_SUBLIST(1, struct job_nodes, nodes, JOB_NODES_MAX, &job_node_record),
};
const struct record_type job_nodes_record = RECORD_TYPE(81, "nodes", struct job_nodes, nodes_fields);

void job_nodes_add(struct record_list *nodes, const char *name, const char *boot_id)
{
    nodes->items = xreallocarray(nodes->items, nodes->count + 1, sizeof(struct job_node));
    ((struct job_node *)nodes->items)[nodes->count++] =
        (struct job_node){ .name = xstrdup(name), .boot_id = xstrdup(boot_id) };
}

struct job_nodes *job_nodes_copy(const struct record_list *nodes)
{
    const struct job_nodes source = { .nodes = *nodes };
    if (nodes->count == 0)
        return NULL;
    struct job_nodes *copy = xcalloc(1, sizeof(*copy));
    record_copy(&job_nodes_record, copy, &source);
    return copy;
}

void job_nodes_free(struct job_nodes *nodes)
{
    if (nodes == NULL)
        return;
    record_clear(&job_nodes_record, nodes);
    free(nodes);
}

bool job_nodes_equal(const struct job_nodes *a, const struct job_nodes *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    const struct job_node *left = a->nodes.items, *right = b->nodes.items;
    bool is_same = a->nodes.count == b->nodes.count;
    for (size_t i = 0; is_same && i < a->nodes.count; i++)
        is_same = text_equal(left[i].name, right[i].name) && text_equal(left[i].boot_id, right[i].boot_id) &&
                  text_equal(left[i].log_path, right[i].log_path) && left[i].end == right[i].end &&
                  left[i].exit_code == right[i].exit_code;
    return is_same;
}

const struct job_node *job_node(const struct job *job, size_t rank)
{
    return job_run(job)->nodes != NULL && rank < job_run(job)->nodes->nodes.count
               ? (const struct job_node *)job_run(job)->nodes->nodes.items + rank
               : NULL;
}

size_t job_node_count(const struct job *job)
{
    if (job_run(job)->nodes != NULL)
        return job_run(job)->nodes->nodes.count;
    return job->node != NULL;
}

const char *job_node_name(const struct job *job, size_t rank)
{
    const struct job_node *node = job_node(job, rank);
    if (node != NULL)
        return node->name;
    return rank == 0 ? job->node : NULL;
}

const char *job_node_boot(const struct job *job, size_t rank)
{
    const struct job_node *node = job_node(job, rank);
    if (node != NULL)
        return node->boot_id;
    return rank == 0 ? job_run(job)->boot_id : NULL;
}

int job_rank_on(const struct job *job, const char *node)
{
    for (size_t rank = 0; node != NULL && rank < job_node_count(job); rank++)
        if (text_equal(job_node_name(job, rank), node))
            return (int)rank;
    return -1;
}

bool job_is_rank_on(const struct job *job, uint32_t rank, const char *node)
{
    return rank < job_node_count(job) && node != NULL && text_equal(job_node_name(job, rank), node);
}

/* The rank of its node, which is `near` or the next one unless grants and nodes are in different orders; -1
 * if it is on none of the nodes. */
static int rank_of_grant(const struct job *job, const struct gpu_grant *grant, size_t near)
{
    const char *name = grant->node != NULL ? grant->node : job->node;
    size_t count = job_node_count(job);
    for (size_t i = 0; i < count; i++)
        if (text_equal(job_node_name(job, (near + i) % count), name))
            return (int)((near + i) % count);
    return -1;
}

size_t *job_count_gpus(const struct job *job)
{
    const struct gpu_grant *grants = job->grants.items;
    size_t *counts = xcalloc(job_node_count(job) + 1, sizeof(*counts)), near = 0;
    for (size_t i = 0; i < job->grants.count; i++) {
        int rank = rank_of_grant(job, &grants[i], near);
        if (rank >= 0)
            counts[near = (size_t)rank]++;
    }
    return counts;
}

size_t job_gpu_place(const struct job *job, const char *uuid)
{
    const struct gpu_grant *grants = job->grants.items;
    size_t found = 0, place = 0, near = 0;
    while (found < job->grants.count && !text_equal(grants[found].uuid, uuid))
        found++;
    int own = found < job->grants.count ? rank_of_grant(job, &grants[found], 0) : -1;
    if (own < 0)
        return SIZE_MAX;
    for (size_t i = 0; i < job->grants.count; i++) {
        int rank = rank_of_grant(job, &grants[i], near);
        place += rank >= 0 && (rank < own || (rank == own && i < found));
        near = rank >= 0 ? (size_t)rank : near;
    }
    return place;
}

bool job_has_stray_grant(const struct job *job)
{
    const struct gpu_grant *grants = job->grants.items;
    size_t near = 0;
    for (size_t i = 0; i < job->grants.count; i++) {
        int rank = grants[i].node != NULL ? rank_of_grant(job, &grants[i], near) : (int)near;
        if (rank < 0)
            return true;
        near = (size_t)rank;
    }
    return false;
}
