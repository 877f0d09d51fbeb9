/* SPDX-License-Identifier: MIT */
#include "controller/core/park.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/utc.h"
#include "controller/core/batch.h"
#include "controller/core/change.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/park_proof.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "job/behind.h"
#include "sched/from_record.h"

#define PARK_FEATURE "park" // of nodes, see agent/confine/node_features.c

/* `is_new`: the order needs more than every agent that can park understands. */
static int check_node(const struct core *core, const char *name, bool is_new, struct error *err)
{
    const struct core_node *node = core_find_node(core, name);
    if (node == NULL || !node->is_up)
        return 0; // its caller says so
    const struct node_feature *feature = core_find_feature(node, PARK_FEATURE);
    bool is_on = feature != NULL && feature->is_on != 0;
    if (is_on && is_new && node->hello.parks_ranks == 0) {
        (void)error_set(err, -EINVAL, "node %s cannot park such a job: its mgpu-agent is older", name);
        return error_hint(err, "update it");
    }
    if (is_on)
        return 0;
    (void)error_set(err, -EINVAL, "node %s cannot park jobs: %s", name,
        feature != NULL && feature->text != NULL ? feature->text : "its mgpu-agent is older");
    return error_hint(err, "%s", feature != NULL && feature->fix != NULL ? feature->fix : "update it");
}

int core_can_park(const struct core *core, const struct job *job, struct error *err)
{
    uint32_t phase = job_park(job)->phase;
    if (job->grants.count == 0)
        return error_set(err, -EINVAL,
            "job %" PRIu64 " has no GPUs to give back: mgpu suspend stops its processes", job->id);
    if (job_is_behind(job))
        return error_set(err, -EALREADY, "job %" PRIu64 " has no GPUs yet: job %" PRIu64 " has them", job->id,
            job_park(job)->behind);
    if (job->ask->no_park && phase != PARK_PARKED) {
        (void)error_set(
            err, -EINVAL, "job %" PRIu64 " is never parked, because it requested that (--no-park)", job->id);
        return error_hint(err, "mgpu edit %" PRIu64 " no_park=no permits it", job->id);
    }
    if (core->options.sched.parking == PARKING_NEVER && phase == PARK_NONE) {
        (void)error_set(
            err, -EINVAL, "job %" PRIu64 " is not parked: this mgpud parks no jobs (park: never)", job->id);
        return error_hint(err, "mgpu suspend %" PRIu64 " stops it, and keeps its GPUs", job->id);
    }
    if (phase == PARK_PARKED || phase == PARK_SAVING)
        return error_set(err, -EALREADY, "job %" PRIu64 " is %s", job->id,
            phase == PARK_PARKED ? "parked already" : "being parked already");
    if (phase == PARK_RESTORING)
        return error_set(
            err, -EALREADY, "job %" PRIu64 " is being restored: try again when it runs", job->id);
    int r = 0;
    for (size_t rank = 0; r == 0 && rank < job_node_count(job); rank++)
        r = check_node(core, job_node_name(job, rank), job_is_wide(job) || job_park_may_move(job), err);
    return r;
}

int core_can_return(const struct core *core, const struct job *job, struct error *err)
{
    switch (job_park(job)->phase) {
    case PARK_NONE: return error_set(err, -EALREADY, "job %" PRIu64 " is not parked", job->id);
    case PARK_SAVING:
        return error_set(err, -EALREADY, "job %" PRIu64 " is being parked: try again when it is", job->id);
    case PARK_WAITING:
        return error_set(err, -EALREADY, "job %" PRIu64 " returns as soon as its GPUs are free", job->id);
    case PARK_RESTORING:
        return error_set(err, -EALREADY, "job %" PRIu64 " is being restored already", job->id);
    default: return 0;
    }
}

bool core_park_job(struct core *core, struct core_entry *entry, enum park_cause cause)
{
    return core_park_for(core, entry, cause, 0);
}

bool core_park_for(struct core *core, struct core_entry *entry, enum park_cause cause, uint64_t guest)
{
    const struct job *job = entry->job;
    struct error ignored;
    bool are_up = true;
    for (size_t rank = 0; rank < job_node_count(job); rank++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, rank));
        are_up = are_up && node != NULL && node->is_up;
    }
    if (job->state != JOB_RUNNING || job->ask->adopted_pid != 0 || job_park(job)->phase != PARK_NONE ||
        !are_up || core_can_park(core, job, &ignored) < 0)
        return false;
    struct job_event event = {
        .type = EVENT_PARK,
        .attempt = job->attempt,
        .uid = core->options.admin_uid,
        .park_cause = cause,
        .park_guest = guest,
    };
    core_change(core, entry, &event, NULL);
    return true;
}

/* True if the node reports that its jobs can be parked. */
static bool can_park(const struct core_node *node)
{
    const struct node_feature *feature = core_find_feature(node, PARK_FEATURE);
    return feature != NULL && feature->is_on != 0;
}

uint64_t core_park_kept(const struct core *core, const char *name)
{
    size_t count = 0;
    uint64_t kept = 0;
    _cleanup_free_ struct core_entry **entries = core_jobs_on(core, name, &count);
    for (size_t i = 0; i < count; i++)
        kept += job_park_node_bytes(entries[i]->job);
    return kept;
}

static bool is_being_saved(const struct core *core, uint64_t id)
{
    const struct core_entry *entry = id != 0 ? core_find(core, id) : NULL;
    return entry != NULL && job_park(entry->job)->phase == PARK_SAVING;
}

/* What other jobs that are being saved have on the node's GPUs: their contents will be kept as well. */
static uint64_t saving_bytes(const struct core *core, const struct core_node *node, uint64_t job)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    uint64_t sum = 0;
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        const struct gpu_process *processes = gpus[i].processes.items;
        for (size_t k = 0; k < gpus[i].processes.count; k++)
            if (processes[k].job != job && processes[k].is_memory_known != 0 &&
                is_being_saved(core, processes[k].job))
                sum += processes[k].memory_bytes;
    }
    return sum;
}

uint64_t core_park_room(const struct core *core, const char *name, uint64_t job)
{
    const struct core_node *node = core_find_node(core, name);
    uint64_t most = core->options.park.bytes_max, taken = core_park_kept(core, name);
    taken += node != NULL ? saving_bytes(core, node, job) : 0;
    if (most == 0 && node != NULL)
        most = node->hello.memory_bytes / 2;
    return most > taken ? most - taken : 0;
}

/* --- what tests of parking have found: a row for each node --- */

struct kept_proof {
    char *node;
    struct park_proof proof;
};

struct core_park_proofs {
    struct kept_proof *items;
    size_t count;
};

static struct kept_proof *find(const struct core *core, const char *node)
{
    for (size_t i = 0; i < core->park_proofs->count; i++)
        if (text_equal(core->park_proofs->items[i].node, node))
            return &core->park_proofs->items[i];
    return NULL;
}

const struct park_proof *core_keep_park_proof(struct core *core, const char *node, struct park_proof *proof)
{
    struct core_park_proofs *proofs = core->park_proofs;
    struct kept_proof *kept = find(core, node);
    if (kept == NULL) {
        proofs->items = xreallocarray(proofs->items, proofs->count + 1, sizeof(*proofs->items));
        kept = &proofs->items[proofs->count++];
        *kept = (struct kept_proof){ .node = xstrdup(node) };
    }
    record_clear(&park_proof_record, &kept->proof);
    kept->proof = *proof;
    *proof = (struct park_proof){ 0 };
    return &kept->proof;
}

/* --- what it is worth --- */

static bool has_model(const struct strings *models, const char *model)
{
    for (size_t i = 0; i < models->count; i++)
        if (text_equal(models->items[i], model))
            return true;
    return false;
}

static bool covers_gpus(const struct park_proof *proof, const struct core_node *node)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    for (size_t i = 0; i < node->hello.gpus.count; i++)
        if (gpus[i].is_gone == 0 && gpus[i].model != NULL && !has_model(&proof->models, gpus[i].model))
            return false;
    return true;
}

const struct park_proof *core_park_proof(const struct core *core, const char *node)
{
    const struct kept_proof *kept = find(core, node);
    return kept != NULL ? &kept->proof : NULL;
}

enum park_proof_state core_park_proof_state(const struct core *core, const char *node)
{
    const struct core_node *place = core_find_node(core, node);
    const struct park_proof *proof = core_park_proof(core, node);
    if (place == NULL || !can_park(place))
        return PARK_PROOF_NONE;
    if (proof == NULL)
        return PARK_PROOF_UNTESTED;
    if (!text_equal(proof->driver, place->hello.driver) || !covers_gpus(proof, place))
        return PARK_PROOF_OUTDATED;
    return proof->passed ? PARK_PROOF_PASSED : PARK_PROOF_FAILED;
}

bool core_parking_is_proven(const struct core *core, const char *node)
{
    return core_park_proof(core, node) != NULL && core_park_proof_state(core, node) == PARK_PROOF_PASSED;
}

bool core_return_elsewhere_is_proven(const struct core *core, const char *node)
{
    const struct park_proof *proof = core_park_proof(core, node);
    return core_parking_is_proven(core, node) && proof->elsewhere != NULL &&
           park_elsewhere_find(proof->elsewhere) == PARK_ELSEWHERE_PASSED;
}

const char *park_proof_state_name(enum park_proof_state state)
{
    static const char *const names[PARK_PROOF_STATES] = { [PARK_PROOF_NONE] = "none",
        [PARK_PROOF_UNTESTED] = "untested",
        [PARK_PROOF_OUTDATED] = "outdated",
        [PARK_PROOF_FAILED] = "failed",
        [PARK_PROOF_PASSED] = "passed" };
    return (size_t)state < PARK_PROOF_STATES ? names[state] : "none";
}

int64_t core_measured_park_ms(const struct core *core)
{
    int64_t most_ms = 0;
    for (size_t i = 0; i < core->park_proofs->count; i++) {
        const struct park_proof *proof = &core->park_proofs->items[i].proof;
        int64_t ms = proof->passed ? proof->most_save_ms + proof->most_load_ms : 0;
        most_ms = ms > most_ms ? ms : most_ms;
    }
    return most_ms;
}

void core_forget_park_proof(struct core *core, const char *node)
{
    struct core_park_proofs *proofs = core->park_proofs;
    struct kept_proof *kept = find(core, node);
    if (kept == NULL)
        return;
    store_batch_remove(core_batch(core)->changes, CORE_PARK_PROOF, node);
    free(kept->node);
    record_clear(&park_proof_record, &kept->proof);
    *kept = proofs->items[--proofs->count];
}

void core_init_park_proofs(struct core *core)
{
    core->park_proofs = xcalloc(1, sizeof(*core->park_proofs));
}

void core_free_park_proofs(struct core *core)
{
    for (size_t i = 0; core->park_proofs != NULL && i < core->park_proofs->count; i++) {
        free(core->park_proofs->items[i].node);
        record_clear(&park_proof_record, &core->park_proofs->items[i].proof);
    }
    if (core->park_proofs != NULL)
        free(core->park_proofs->items);
    free(take_ptr(core->park_proofs));
}

/* --- by the scheduler's own rule --- */

const char *core_park_refusal_key(uint64_t command_hash, char key[PARK_REFUSAL_KEY])
{
    (void)snprintf(key, PARK_REFUSAL_KEY, "%016" PRIx64, command_hash);
    return key;
}

void core_remove_park_refusal(struct core *core, uint64_t command_hash)
{
    char key[PARK_REFUSAL_KEY];
    store_batch_remove(
        core_batch(core)->changes, CORE_PARK_REFUSAL, core_park_refusal_key(command_hash, key));
}

void core_forget_park_refusals(struct core *core)
{
    struct park_refusals *refusals = &core->park_rule->refusals;
    for (size_t i = 0; i < refusals->count; i++)
        core_remove_park_refusal(core, refusals->items[i].command_hash);
    park_refusals_clear(refusals);
}

bool core_has_refused(const struct core *core, const struct job *job)
{
    const struct park_refusals *refusals = &core->park_rule->refusals;
    return refusals->count > 0 && park_refusals_bar(refusals, core_command_hash(job), core->now_ms);
}

static char *describe_refusal(const struct park_refusal *refusal)
{
    char until[32];
    int64_t until_ms = park_refusal_until_ms(refusal);
    if (refusal->is_lost)
        return xasprintf("a job with this command was parked and could not return: %.700s; it is parked for "
                         "others again when mgpu park has parked one and it has returned, or when "
                         "mgpu gpu test --park has passed",
            refusal->text);
    utc_format(until_ms, until, sizeof(until));
    return xasprintf("a job with this command could not be parked: %.800s; it is tried again from %s on",
        refusal->text, until);
}

bool core_may_park(const struct core *core, const struct core_entry *entry)
{
    return core_extra(entry)->park_bar == NULL && park_is_permitted(sched_cluster(core->sched), entry->job) &&
           !core_has_refused(core, entry->job);
}

bool core_may_borrow(const struct core *core, const struct core_entry *entry)
{
    return park_may_borrow(sched_cluster(core->sched), entry->job) && core_has_refused(core, entry->job);
}

char *core_why_not_parked(const struct core *core, const struct core_entry *entry)
{
    const struct job *job = entry->job;
    if (core->options.sched.parking != PARKING_AUTO || job->state != JOB_RUNNING || job->grants.count == 0 ||
        job_park(job)->phase != PARK_NONE)
        return NULL;
    if (core_extra(entry)->park_bar != NULL)
        return xstrdup(core_extra(entry)->park_bar);
    const char *why = park_why_not(sched_cluster(core->sched), job);
    if (why != NULL)
        return xstrdup(why);
    return core_has_refused(core, job)
               ? describe_refusal(park_refusals_find(&core->park_rule->refusals, core_command_hash(job)))
               : NULL;
}
