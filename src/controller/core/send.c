/* SPDX-License-Identifier: MIT */
/* Messages to a job's agents: LAUNCH, UPDATE and STOP, each created from the job's current state. */
#include "controller/core/send.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "controller/core/attempt.h"
#include "controller/core/entry.h"
#include "controller/core/node_table.h"
#include "controller/core/owners.h"
#include "controller/core/specs.h"
#include "controller/core/state.h"
#include "controller/core/stop.h"
#include "job/behind.h"
#include "wire/address.h"

#define LOOPBACK "127.0.0.1"

/* True on the controller's own machine: the node has no address, or one that is valid only there. */
static bool is_local(const struct core_node *node)
{
    return node == NULL || node->address == NULL || address_host_is_loopback(node->address);
}

/* The address at which the job's nodes on other machines reach the controller's; NULL: there are none. */
static const char *local_address(const struct core *core, const struct job *job)
{
    for (size_t i = 0; i < job_node_count(job); i++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, i));
        if (!is_local(node) && node->here != NULL && !address_host_is_loopback(node->here))
            return node->here;
    }
    return NULL;
}

/* The address at which the others of a job reach this node. A loopback address is used only if all of them
 * are on one machine. */
static const char *peer_address(
    const struct core *core, const struct job *job, size_t rank, const char *local)
{
    const struct core_node *node = core_find_node(core, job_node_name(job, rank));
    if (!is_local(node))
        return node->address;
    if (local != NULL)
        return local;
    if (node == NULL)
        return job_node_name(job, rank);
    return node->address != NULL ? node->address : LOOPBACK; // its name may not be resolvable
}

/* Two nodes that connected over loopback are on one machine, or connect through tunnels. */
bool core_can_meet(const struct core *core, const struct job *job, const char **ret_node)
{
    const char *boot_id = NULL, *by_loopback = NULL;
    bool is_same = true;
    for (size_t i = 0; i < job_node_count(job); i++) {
        const struct core_node *node = core_find_node(core, job_node_name(job, i));
        if (node == NULL || node->hello.boot_id == NULL || !is_local(node))
            continue;
        is_same = is_same && (boot_id == NULL || core_is_same_boot(boot_id, node->hello.boot_id));
        boot_id = node->hello.boot_id;
        by_loopback = node->address != NULL ? node->name : by_loopback;
    }
    *ret_node = by_loopback;
    return is_same || by_loopback == NULL;
}

struct record_list core_list_peers(const struct core *core, const struct job *job)
{
    struct launch_peer *peers = xcalloc(job_node_count(job), sizeof(*peers));
    const char *local = local_address(core, job);
    _cleanup_free_ size_t *gpus = job_count_gpus(job);
    for (size_t rank = 0; rank < job_node_count(job); rank++)
        peers[rank] = (struct launch_peer){
            .name = xstrdup(job_node_name(job, rank)),
            .address = xstrdup(peer_address(core, job, rank, local)),
            .gpus = (uint32_t)gpus[rank],
        };
    return (struct record_list){ peers, job_node_count(job) };
}

void core_free_peers(struct record_list *list)
{
    struct launch_peer *peers = list->items;
    for (size_t i = 0; i < list->count; i++)
        record_clear(&launch_peer_record, &peers[i]);
    free(peers);
    *list = (struct record_list){ 0 };
}

static uint32_t meeting_port(const struct job *job)
{
    return MEETING_PORT_FIRST + (uint32_t)((job->id + job->attempt * 101ULL) % MEETING_PORTS);
}

/* What it was given on the node of this rank; names and UUIDs remain owned by the job. */
static struct record_list grants_on(const struct job *job, uint32_t rank)
{
    const struct gpu_grant *all = job->grants.items;
    struct gpu_grant *grants = xcalloc(job->grants.count + 1, sizeof(*grants));
    struct record_list list = { .items = grants };
    for (size_t i = 0; i < job->grants.count; i++)
        if (text_equal(all[i].node != NULL ? all[i].node : job->node, job_node_name(job, rank)))
            grants[list.count++] = all[i];
    return list;
}

/* False if its request is not in memory; it is then fetched from the store. */
static bool has_spec(struct core *core, struct core_entry *owner)
{
    if (owner->spec != NULL)
        return true;
    if (!owner->is_fetching)
        core->effects.fetch_spec(core->effects.arg, owner->job->id);
    owner->is_fetching = true;
    return false;
}

/* The parts that LAUNCH and PREPARE of an attempt have in common must be identical. */
static void send_launch(struct core *core, struct core_entry *entry, struct message_launch *launch,
    const struct record_type *type, uint32_t link)
{
    const struct job *job = entry->job;
    struct job_ask ask = *job->ask; // borrowed
    ask.grace_ms = core_grace_ms(core, job->ask);
    if (ask.park_on_timeout || launch->is_early != 0)
        ask.time_limit_ms = 0; // mgpud enforces it, or it begins later
    const char *name = core_owner_name(core, job);
    launch->uid = job->uid;
    launch->gid = job->gid;
    launch->user = name != NULL ? xstrdup(name) : core_user_name(core, job->uid);
    launch->array_job = job->array_job;
    launch->array_index = job->array_index;
    launch->order = ++core->last_order;
    launch->event = core->last_durable_event;
    spec_bytes_pack(core_spec_owner(entry)->spec, job->name, &ask,
        &launch->spec); // the agent refuses a job without a request
    core->effects.send(core->effects.arg, link, type, launch);
    free(launch->user);
    free(launch->spec.bytes);
}

bool core_send_launch(struct core *core, struct core_entry *entry, uint32_t rank, uint32_t link,
    const struct record_list *peers)
{
    const struct job *job = entry->job;
    if (!has_spec(core, core_spec_owner(entry)))
        return false;
    struct message_launch launch = {
        .id = core_attempt_id(job, rank),
        .token = job->token,
        .gpus = grants_on(job, rank),
        .lease_ms = job_run(job)->node_lease_ms,
        .is_early = job_park(job)->is_early,
    };
    if (peers != NULL) {
        launch.peers = *peers;
        launch.port = meeting_port(job);
    }
    if (job_is_behind(job)) // it is prepared while another job has its GPUs
        send_launch(core, entry, &launch, &message_prepare_record, link);
    send_launch(core, entry, &launch, &message_launch_record, link);
    free(launch.gpus.items);
    return true;
}

bool core_send_prepare(
    struct core *core, struct core_entry *entry, const struct record_list *gpus, uint32_t link)
{
    const struct job *job = entry->job;
    if (!has_spec(core, core_spec_owner(entry)))
        return false;
    struct message_launch launch = {
        .id = { .job = job->id, .attempt = job->attempt + 1 },
        .token = core_next_token(core, entry),
        .gpus = *gpus,
        .lease_ms = core_node_lease_ms(core, job),
    };
    send_launch(core, entry, &launch, &message_prepare_record, link);
    return true;
}

/* Counted from the start, without the time for which it was parked. While it is parked, and for a job that is
 * parked at its limit, only mgpud enforces the limit. */
static int64_t agent_limit_ms(const struct job *job)
{
    const struct job_park *park = job_park(job);
    bool is_ours = park->since_ms != 0 || job->ask->park_on_timeout;
    return is_ours || job->ask->time_limit_ms == 0 ? 0 : job->ask->time_limit_ms + park->total_ms;
}

void core_send_park(struct core *core, const struct job *job, uint32_t rank, enum park_action action,
    uint64_t bytes_max, uint32_t link)
{
    struct message_park order = {
        .id = core_attempt_id(job, rank),
        .token = job->token,
        .number = job_park(job)->number,
        .action = action,
        .bytes_max = bytes_max,
        .timeout_ms = core->options.park.timeout_ms,
    };
    if (action == PARK_RETURN && job_park_may_move(job))
        order.gpus = grants_on(job, rank);
    core->effects.send(core->effects.arg, link, &message_park_record, &order);
    free(order.gpus.items);
}

/* The settings that differ from those in LAUNCH. */
void core_send_update(
    struct core *core, const struct job *job, uint32_t rank, uint32_t link, struct core_sent *sent)
{
    const struct job_park *park = job_park(job);
    struct message_update terms = {
        .id = core_attempt_id(job, rank),
        .token = job->token,
        .time_limit_ms = agent_limit_ms(job),
        /* The driver can save and restore only running processes. */
        .is_suspended = (job_is_stopped(job) && !job_park_is_unconfirmed(job)) ||
                        (park->phase == PARK_NONE && job_run(job)->suspended_ms != 0),
        .number = job_run(job)->terms,
    };
    if (sent != NULL) {
        bool is_known = sent->terms_link == link && sent->terms.number == terms.number &&
                        sent->terms.is_suspended == terms.is_suspended &&
                        sent->terms.time_limit_ms == terms.time_limit_ms;
        sent->terms_link = link;
        sent->terms = terms;
        if (is_known)
            return;
    }
    core->effects.send(core->effects.arg, link, &message_update_record, &terms);
}

void core_send_stop(
    struct core *core, const struct core_entry *entry, uint32_t rank, uint32_t link, struct core_sent *sent)
{
    const struct job *job = entry->job;
    struct message_stop stop = {
        .id = core_attempt_id(job, rank),
        .token = job->token,
        .signal = SIGTERM,
        .grace_ms = core_stop_grace_ms(core, job),
    };
    if (job->ask->adopted_pid != 0 && (job_run(job)->stop_terms & STOP_TERMS_PROCESS) != 0)
        stop.signal |= STOP_ADOPTED;
    if (job_is_stopped(job))
        stop.signal = SIGKILL; // it could do nothing without its GPUs
    else if (core_is_checkpointing(job))
        stop.signal |= STOP_CHECKPOINT;
    if (sent != NULL) {
        bool is_known = sent->stop_link == link && sent->stop.signal == stop.signal &&
                        sent->stop.grace_ms == stop.grace_ms;
        sent->stop_link = link;
        sent->stop = stop;
        if (is_known)
            return;
    }
    core->effects.send(core->effects.arg, link, &message_stop_record, &stop);
}

void core_send_recall(const struct core *core, const struct job *job, uint32_t link)
{
    const struct message_stop stop = {
        .id = core_attempt_id(job, 0), .token = job->token, .signal = STOP_UNSTARTED
    };
    core->effects.send(core->effects.arg, link, &message_stop_record, &stop);
}
