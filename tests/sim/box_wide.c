/* SPDX-License-Identifier: MIT */
/*
 * What must be true of jobs on several nodes, seen from the nodes: no part runs before all were ready, parts
 * that run at a time are of one attempt, an attempt is over only when nothing of it runs, and its exit code
 * is that of one of its parts, 0 only when it is that of all.
 */
#include "box.h"

static bool is_of(const struct spooled *entry, uint64_t job, uint32_t attempt)
{
    return entry->id.job == job && entry->id.attempt == attempt && !entry->is_undone;
}

bool box_is_running(const struct box *box, uint64_t job, uint32_t attempt)
{
    for (size_t i = 0; i < box->n_places; i++)
        for (const struct spooled *entry = box->places[i].node.spool; entry != NULL; entry = entry->next)
            if (is_of(entry, job, attempt) && entry->is_running && !entry->is_disowned)
                return true;
    return false;
}

void box_check_execution(struct box *box, const struct spooled *begun)
{
    size_t ready = 0;
    for (size_t i = 0; i < box->n_places; i++)
        for (const struct spooled *entry = box->places[i].node.spool; entry != NULL; entry = entry->next) {
            if (entry == begun || entry->id.job != begun->id.job)
                continue;
            bool is_same = entry->id.attempt == begun->id.attempt;
            bool may_be_twice = entry->is_disowned || begun->is_disowned;
            if (entry->is_running && !may_be_twice && (!is_same || entry->id.rank == begun->id.rank))
                box_break(box, "it runs in two places at once", begun->id.job);
            ready += is_same && entry->was_ready;
        }
    if (begun->n_parts > 0 && ready + 1 < begun->n_parts)
        box_break(box, "a rank runs although not all were ready", begun->id.job);
}

uint32_t box_executed_attempts(const struct box *box, uint64_t job, uint32_t *ret_latest)
{
    bool is_executed[ATTEMPTS_SEEN_MAX] = { false }; // by attempt; an attempt may have several parts
    uint32_t count = 0, latest = 0;
    for (size_t i = 0; i < box->n_places; i++)
        for (const struct spooled *entry = box->places[i].node.spool; entry != NULL; entry = entry->next)
            if (entry->id.job == job && entry->executions > 0 && !entry->is_undone &&
                entry->id.attempt < ATTEMPTS_SEEN_MAX) {
                is_executed[entry->id.attempt] |= !entry->is_disowned;
                latest = entry->id.attempt > latest ? entry->id.attempt : latest;
            }
    for (uint32_t attempt = 1; attempt < ATTEMPTS_SEEN_MAX; attempt++)
        count += is_executed[attempt];
    *ret_latest = latest;
    return count;
}

bool box_is_true_exit(const struct box *box, uint64_t job, uint32_t attempt, int32_t exit_code)
{
    bool is_one = false, is_all = true;
    for (size_t i = 0; i < box->n_places; i++)
        for (const struct spooled *entry = box->places[i].node.spool; entry != NULL; entry = entry->next) {
            if (!is_of(entry, job, attempt) || entry->executions == 0)
                continue;
            is_one |= entry->exit.exit_code == exit_code;
            is_all &= entry->exit.exit_code == exit_code;
        }
    return exit_code == 0 ? is_one && is_all : is_one;
}

static void on_missed(void *arg, uint64_t number, void *object)
{
    struct place *place = arg;
    struct spooled *entry = object;
    place->box->tally.counts[TALLY_PEERS_FAULTS] += entry->is_running;
    node_fail_rank(&place->node, entry);
}

/* Not before the last words of a node that went off have come. */
void box_miss_rank(struct box *box, const struct spooled *gone)
{
    for (size_t i = 0; i < box->n_places; i++)
        for (struct spooled *entry = box->places[i].node.spool; entry != NULL; entry = entry->next)
            if (is_of(entry, gone->id.job, gone->id.attempt) && entry != gone && entry->is_running)
                world_later(&box->world, world_between(&box->world, 5, 100), on_missed, &box->places[i], 0,
                    entry, NULL);
}

/* When a lease has ended, words of its node may still be under way that are later than what failed of it. */
bool box_has_own_failure(const struct box *box, uint64_t job, uint32_t attempt)
{
    for (size_t i = 0; i < box->n_places; i++)
        for (const struct spooled *entry = box->places[i].node.spool; entry != NULL; entry = entry->next)
            if (is_of(entry, job, attempt) && (entry->is_untold || entry->is_lost ||
                                                  (entry->has_status && !entry->is_stopped &&
                                                      !entry->is_peers_fault && entry->exit_code != 0)))
                return true;
    return false;
}
