/* SPDX-License-Identifier: MIT */
#include "job/earlier.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/strings.h"
#include "job/job.h"

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct job_earlier, attempt, 0),
    RECORD_SUBLIST(2, struct job_earlier, ranks, JOB_NODES_MAX, &job_node_record),
};
const struct record_type job_earlier_record = RECORD_TYPE(83, "earlier attempt", struct job_earlier, fields);

void job_earlier_free(struct job_earlier *earlier)
{
    if (earlier == NULL)
        return;
    record_clear(&job_earlier_record, earlier);
    free(earlier);
}

/* How the ranks ended is not needed. */
static void add(struct record_list *ranks, const char *node, const char *log_path)
{
    ranks->items = xreallocarray(ranks->items, ranks->count + 1, sizeof(struct job_node));
    ((struct job_node *)ranks->items)[ranks->count++] =
        (struct job_node){ .name = xstrdup(node), .log_path = xstrdup(log_path) };
}

static bool has_log(const struct record_list *ranks)
{
    const struct job_node *items = ranks->items;
    for (size_t i = 0; i < ranks->count; i++)
        if (items[i].log_path != NULL)
            return true;
    return false;
}

/* The end of an attempt on a lost node is not reported, so neither is its log. */
struct job_earlier *job_earlier_new(const struct job_event *requeued, const char *node, const char *log_path)
{
    const struct job_node *nodes = requeued->nodes.items;
    struct job_earlier *earlier = xcalloc(1, sizeof(*earlier));
    earlier->attempt = requeued->attempt;
    for (size_t i = 0; i < requeued->nodes.count; i++)
        add(&earlier->ranks, nodes[i].name, nodes[i].log_path);
    if (requeued->nodes.count == 0)
        add(&earlier->ranks, node, requeued->log_path != NULL ? requeued->log_path : log_path);
    if (!has_log(&earlier->ranks) || node == NULL) {
        job_earlier_free(earlier);
        return NULL;
    }
    return earlier;
}

void job_earlier_apply(struct job *job, const struct job_event *requeued)
{
    const char *log_path = job->started_ms != 0 ? job_run(job)->log_path : NULL;
    struct job_earlier *earlier = job_earlier_new(requeued, job_node_name(job, 0), log_path);
    if (earlier == NULL)
        return;
    job_earlier_free(job_make_run(job)->earlier);
    job->run->earlier = earlier;
}

bool job_earlier_is_latest(const struct job *job)
{
    const struct job_run *run = job_run(job);
    if (run->earlier == NULL || job->started_ms != 0)
        return false;
    const struct job_node *first = job_earlier_rank(job, 0);
    return job->state != JOB_DONE || (first != NULL && text_equal(run->log_path, first->log_path));
}

const struct job_node *job_earlier_rank(const struct job *job, uint32_t rank)
{
    const struct job_earlier *earlier = job_run(job)->earlier;
    const struct job_node *node = earlier != NULL && rank < earlier->ranks.count
                                      ? (struct job_node *)earlier->ranks.items + rank
                                      : NULL;
    return node != NULL && node->log_path != NULL ? node : NULL;
}
