/* SPDX-License-Identifier: MIT */
#include "sched/from_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/parse.h"
#include "job/ask.h"
#include "job/gpu_instance.h"
#include "job/park.h"

#define USERS_MAX 1000U // of one reservation

static void add_node(struct allocation *allocation, uint32_t node, const struct job *job)
{
    for (size_t i = 0; i < allocation->n_nodes; i++)
        if (allocation->nodes[i].node == node)
            return;
    allocation->nodes = xreallocarray(allocation->nodes, allocation->n_nodes + 1, sizeof(struct alloc_node));
    allocation->nodes[allocation->n_nodes++] = (struct alloc_node){
        .node = node,
        .cpu_milli = job_run(job)->cpu_milli,
        .memory = job_run(job)->memory,
        .is_exclusive = job->ask->exclusive,
    };
}

void allocation_of_job(struct cluster *cluster, const struct job *job, struct allocation *ret)
{
    const struct gpu_grant *grants = job->grants.items;
    *ret = (struct allocation){ .gpus = xcalloc(job->grants.count + 1, sizeof(struct alloc_gpu)) };
    for (size_t rank = 0; rank < job_node_count(job); rank++)
        add_node(ret, cluster_node(cluster, job_node_name(job, rank))->position, job);
    for (size_t i = 0; i < job->grants.count; i++) {
        struct cluster_node *node =
            cluster_node(cluster, grants[i].node != NULL ? grants[i].node : job->node);
        const struct cluster_gpu *gpu = cluster_gpu(node, grants[i].index, grants[i].uuid);
        add_node(ret, node->position, job);
        ret->gpus[ret->n_gpus++] = (struct alloc_gpu){
            .node = node->position,
            .gpu = (uint32_t)(gpu - node->gpus),
            .slot = grants[i].slot,
            .share = grants[i].share,
            .memory = grants[i].memory,
        };
    }
}

/* The GPU of this grant, if it is a whole GPU of a known model. */
static const struct cluster_gpu *find_movable(
    const struct cluster *cluster, const struct cluster_node *node, const struct gpu_grant *grant)
{
    const struct cluster_gpu *gpu = node != NULL ? cluster_find_gpu(node, grant->uuid) : NULL;
    const char *model = gpu != NULL ? cluster->models[gpu->model] : "";
    return *model != '\0' && gpu_instance_profile(model) == NULL ? gpu : NULL;
}

char *park_places_of_job(const struct cluster *cluster, const struct job *job)
{
    const struct cluster_node *node = cluster_find(cluster, job->node);
    const struct gpu_grant *grants = job->grants.items;
    const struct cluster_gpu *own = NULL;
    struct buffer text = { 0 };
    if (!job_park_may_move(job))
        return NULL;
    for (size_t i = 0; i < job->grants.count; i++) {
        const struct cluster_gpu *gpu = find_movable(cluster, node, &grants[i]);
        own = i == 0 ? gpu : own;
        if (gpu == NULL || gpu->model != own->model || gpu->memory_bytes != own->memory_bytes)
            return NULL;
    }
    for (size_t i = 0; own != NULL && i < node->n_gpus; i++)
        if (node->gpus[i].is_known && node->gpus[i].model == own->model &&
            node->gpus[i].memory_bytes == own->memory_bytes)
            buffer_printf(&text, "%s%" PRIu32, text.length > 0 ? "," : "", node->gpus[i].index);
    return buffer_take(&text);
}

void park_times_of_job(struct cluster *cluster, const struct job *job, int64_t now_ms,
    struct sched_job_spec *spec, struct allocation *left)
{
    const struct job_park *park = job_park(job);
    *left = (struct allocation){ 0 };
    spec->ran_ms = spec->done_ms = park->ran_ms;
    spec->waited_ms = park->waited_ms;
    spec->is_being_parked = park->phase == PARK_SAVING;
    spec->guest = park->guest;
    if (!job_is_owed(job))
        return;
    if (park->phase == PARK_RESTORING) {
        spec->waited_ms += now_ms > park->since_ms ? now_ms - park->since_ms : 0;
        return;
    }
    allocation_of_job(cluster, job, left);
    spec->parked_ms = park->since_ms;
    spec->left = left;
}

void park_owed_ask(const struct job *job, struct job_ask *ret)
{
    *ret = *job->ask;
    ret->after = NULL;
    ret->begin_ms = ret->deadline_ms = 0;
    if (job_park(job)->memory != 0)
        ret->memory = 0; // it is booked outside the ledger
}

int64_t park_run_since(const struct job *job, int64_t now_ms)
{
    if (job->started_ms == 0)
        return 0;
    if (job_park(job)->ran_ms == 0)
        return job->started_ms + job_parked_ms(job, now_ms);
    return job_is_owed(job) ? 0 : job_park(job)->back_ms; // of its current period only
}

static bool has_parts_of_gpus(
    const struct cluster *cluster, const struct cluster_node *node, const struct job *job)
{
    const struct gpu_grant *grants = job->grants.items;
    for (size_t i = 0; i < job->grants.count; i++)
        if (find_movable(cluster, node, &grants[i]) == NULL)
            return true;
    return false;
}

const char *park_why_not(const struct cluster *cluster, const struct job *job)
{
    const struct job_ask *ask = job->ask;
    bool is_active = job_state_is_active(job->state);
    const struct cluster_node *node = is_active ? cluster_find(cluster, job->node) : NULL;
    bool is_part_of_gpu = ask->gpu_share != 0 || ask->gpu_mem != 0;
    const struct {
        bool is_so;
        const char *why;
    } rows[] = {
        { ask->no_park, "it requested that (--no-park)" },
        { ask->adopted_pid != 0, "mgpu has not started it" },
        { ask->preemptible, "it is preemptible" },
        { ask->exclusive, "it has its node exclusively" },
        { job->array_job != 0 || job_is_array(job), "it is an element of an array" },
        { job_was_reclaimed(job), "it has started again for a parked job, which happens once" },
        { is_active && job_is_wide(job), "it runs on several nodes" },
        { is_active && job_run(job)->suspended_ms != 0, "it is suspended" },
        { is_active && (node == NULL || !node->parks),
            "its node has not passed a test of parking with this driver (mgpu gpu test --park)" },
        { is_part_of_gpu || (node != NULL && has_parts_of_gpus(cluster, node, job)),
            "it has parts of GPUs, or GPUs of unknown models" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].is_so)
            return rows[i].why;
    return NULL;
}

bool park_is_permitted(const struct cluster *cluster, const struct job *job)
{
    return park_why_not(cluster, job) == NULL;
}

bool park_may_borrow(const struct cluster *cluster, const struct job *job)
{
    const struct job_ask *ask = job->ask;
    bool may_restart = !ask->no_restart && ask->deadline_ms == 0; // it is not queued again after its deadline
    return job->state == JOB_QUEUED && may_restart && park_is_permitted(cluster, job);
}

/* Bits of positions in the node's own list become bits of positions in the ledger. */
static uint64_t map_links(
    const struct cluster_node *node, const struct cluster_device *devices, size_t count, uint64_t links)
{
    uint64_t mapped = 0;
    for (size_t k = 0; k < count && k < 64; k++) {
        const struct cluster_gpu *other =
            (links >> k & 1) != 0 ? cluster_find_gpu(node, devices[k].uuid) : NULL;
        if (other != NULL && other - node->gpus < 64)
            mapped |= UINT64_C(1) << (other - node->gpus);
    }
    return mapped;
}

struct cluster_node *cluster_take_node(struct cluster *cluster, const struct cluster_change *change)
{
    struct cluster_node *node = cluster_set_node(cluster, change->node, change->cpu_milli, change->memory);
    const struct cluster_device *devices = change->devices.items;
    size_t count = change->devices.count;
    node->shares = change->shares;
    node->parks = change->parks;
    node->returns_home = change->returns_home;
    if (change->kept_cpu_milli != node->cpu_kept || change->kept_memory != node->memory_kept)
        cluster_keep(cluster, node, change->kept_cpu_milli, change->kept_memory);
    cluster_forget_gpus(node);
    for (size_t i = 0; i < count; i++)
        (void)cluster_set_gpu(cluster, node, devices[i].index, devices[i].uuid,
            devices[i].model != NULL ? devices[i].model : "", devices[i].memory_bytes, !devices[i].is_lost);
    for (size_t i = 0; i < count; i++) {
        struct cluster_gpu *gpu = cluster_find_gpu(node, devices[i].uuid);
        gpu->closed = devices[i].closed;
        gpu->has_external = devices[i].has_external;
        gpu->memory_external = devices[i].memory_external;
        gpu->adoptee = devices[i].adoptee;
        gpu->numa = (int16_t)devices[i].numa;
        gpu->pcie_switch = (int16_t)devices[i].pcie_switch;
        gpu->links = map_links(node, devices, count, devices[i].links);
    }
    return node;
}

int reservation_read_users(struct sched_reservation *reservation, const char *text, struct error *err)
{
    if (text == NULL || *text == '\0')
        return error_set(err, -EINVAL, "a reservation needs at least one user");
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        _cleanup_free_ char *word = xstrndup(text, length);
        int64_t uid;
        int r = parse_integer(word, "users", 0, UINT32_MAX - 1, &uid, err);
        if (r == 0 && reservation->n_uids == USERS_MAX)
            r = error_set(err, -E2BIG, "a reservation has at most %u users", USERS_MAX);
        if (r < 0)
            return r;
        reservation->uids =
            xreallocarray(reservation->uids, reservation->n_uids + 1, sizeof(*reservation->uids));
        reservation->uids[reservation->n_uids++] = (uint32_t)uid;
        text += length + (text[length] == ',');
    }
    return 0;
}

int reservation_of_change(struct cluster *cluster, const struct cluster_change *change,
    struct sched_reservation *ret, struct error *err)
{
    const struct cluster_device *devices = change->devices.items;
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    *ret = (struct sched_reservation){ .id = change->reservation };
    int r = change->gpu_ids != NULL ? parse_gpu_ids(change->gpu_ids, &gpus, &count, err)
                                    : error_set(err, -EBADMSG, "the reservation has no GPUs");
    if (r < 0)
        return r;
    ret->name = xstrdup(change->text != NULL ? change->text : "");
    ret->from_ms = change->from_ms;
    ret->until_ms = change->until_ms;
    ret->gpus = xcalloc(count + 1, sizeof(struct alloc_gpu));
    for (size_t i = 0; i < count && i < change->devices.count; i++) {
        struct cluster_node *node = cluster_node(cluster, gpus[i].node);
        const struct cluster_gpu *gpu = cluster_gpu(node, devices[i].index, devices[i].uuid);
        ret->gpus[ret->n_gpus++] =
            (struct alloc_gpu){ .node = node->position, .gpu = (uint32_t)(gpu - node->gpus) };
    }
    ask_gpus_free(gpus, count);
    return reservation_read_users(ret, change->users, err);
}

void reservation_clear(struct sched_reservation *reservation)
{
    free(reservation->name);
    free(reservation->uids);
    free(reservation->gpus);
}
