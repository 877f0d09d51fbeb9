/* SPDX-License-Identifier: MIT */
/* Chooses the nodes of a step among those of the job. -w names nodes that must be included, but does not
 * limit their number: without --nodes, a step has all nodes of the job. */
#include "compat/step/step_nodes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/memory.h"

/* What is requested for each node of the job. */
struct choice {
    bool *is_required, *is_excluded, *is_taken;
    size_t required; // how many are
};

static void choice_clear(struct choice *choice)
{
    free(choice->is_required);
    free(choice->is_excluded);
    free(choice->is_taken);
}

/* The rank of a node of the job; -1 if the job does not have the node. */
static int64_t find_node(const struct strings *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i], name) == 0 || strcmp(name, "localhost") == 0)
            return (int64_t)i;
    return -1;
}

static int refuse(const struct step *step, struct error *err)
{
    return error_set(err, -EINVAL,
        "Unable to create step for job %" PRIu64 ": Requested node configuration is not available",
        step->job_id);
}

/* -x: nodes that the job does not have are not an error. */
static int read_excluded(
    struct choice *choice, const struct step *step, const struct strings *all, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    int r = step->job->exclude != NULL ? hostlist_expand(step->job->exclude, &names, err) : 0;
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        int64_t rank = find_node(all, names.items[i]);
        if (rank >= 0)
            choice->is_excluded[rank] = true;
    }
    return r;
}

/* -w */
static int read_required(
    struct choice *choice, const struct step *step, const struct strings *all, struct error *err)
{
    _cleanup_strings_ struct strings names = { 0 };
    int r = step->job->nodelist != NULL ? hostlist_expand_once(step->job->nodelist, &names, err) : 0;
    for (size_t i = 0; r == 0 && i < names.count; i++) {
        int64_t rank = find_node(all, names.items[i]);
        if (rank < 0) {
            (void)refuse(step, err);
            return error_hint(err, "node %.60s is not in the job", names.items[i]);
        }
        if (choice->is_excluded[rank])
            return error_set(
                err, -EINVAL, "Requested node %.60s is also in the excluded list.", names.items[i]);
        choice->required += !choice->is_required[rank];
        choice->is_required[rank] = true;
    }
    return r;
}

/* A node without a task is not part of the step. */
static size_t count_nodes(const struct step *step, const struct choice *choice, size_t all)
{
    const struct slurm_job *job = step->job;
    size_t count = job->nodes > 0 ? (size_t)job->nodes : all;
    if (job->task_nodes.count > 0)
        return choice->required;
    if (job->tasks <= 0 || (size_t)job->tasks >= count)
        return count;
    slurm_job_warn_few_tasks(job->tasks, (int64_t)count, "srun");
    return (size_t)job->tasks;
}

static int check_count(const struct step *step, size_t first, size_t count, size_t all, struct error *err)
{
    const struct slurm_job *job = step->job;
    if (job->relative > 0 && first + count > all)
        return error_set(err, -EINVAL,
            "--relative and %s option incompatible with count of allocated nodes (%zu+%zu>%zu)",
            job->nodes > 0 ? "--nodes" : "SLURM_JOB_NUM_NODES", first, count, all);
    if (count > all)
        return error_set(err, -EINVAL, "Only allocated %zu nodes asked for %zu", all, count);
    return 0;
}

/* Takes the required nodes up to `count`, then others beginning with the first. Returns their number. */
static size_t take(struct choice *choice, size_t first, size_t count, size_t all)
{
    size_t taken = 0;
    for (size_t i = 0; i < all && taken < count; i++)
        taken += choice->is_taken[i] = choice->is_required[i];
    for (size_t i = first; i < all && taken < count; i++)
        if (!choice->is_taken[i] && !choice->is_excluded[i])
            taken += choice->is_taken[i] = true;
    return taken;
}

static int choose(struct choice *choice, struct step *step, const struct strings *all, struct error *err)
{
    const struct slurm_job *job = step->job;
    size_t first = job->relative > 0 ? (size_t)job->relative : 0;
    int r = read_excluded(choice, step, all, err);
    if (r == 0)
        r = read_required(choice, step, all, err);
    if (r < 0)
        return r;
    size_t count = count_nodes(step, choice, all->count);
    r = check_count(step, first, count, all->count, err);
    if (r < 0)
        return r;
    if (choice->required > count && job->nodes <= 0)
        return refuse(step, err);
    if (choice->required > count)
        (void)fprintf(stderr,
            "srun: error: Required nodelist includes more nodes than permitted by max-node count (%zu > "
            "%zu). "
            "Eliminating nodes from the nodelist.\n",
            choice->required, count);
    size_t taken = take(choice, first, count, all->count);
    if (taken == count)
        return 0;
    (void)error_set(err, -EINVAL, "Only allocated %zu nodes asked for %zu", taken, count);
    (void)error_hint(err, "Are required nodes explicitly excluded?");
    return error_mark(err, SLURM_BOTH, -EINVAL);
}

int step_choose_nodes(struct step *step, const struct strings *all, struct error *err)
{
    _cleanup_(choice_clear) struct choice choice = { xcalloc(all->count + 1, sizeof(bool)),
        xcalloc(all->count + 1, sizeof(bool)), xcalloc(all->count + 1, sizeof(bool)), 0 };
    step->ranks = xcalloc(all->count + 1, sizeof(*step->ranks));
    int r = choose(&choice, step, all, err);
    for (uint32_t i = 0; r == 0 && i < all->count; i++)
        if (choice.is_taken[i]) {
            step->ranks[step->nodes.count] = i;
            strings_add(&step->nodes, all->items[i]);
        }
    return r;
}
