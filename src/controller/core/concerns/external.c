/* SPDX-License-Identifier: MIT */
/*
 * Others on the GPUs. Each sample of a node is looked at here, and a few words of it reach the scheduler:
 * that a GPU is closed, and how much memory others have there. These words are in the log, so they change
 * slowly: a process that counts closes its GPU with the first sample that shows it, but everything else must
 * hold for several samples, and memory is rounded up.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"
#include "controller/core/watches.h"

#define SAMPLES_HOLD    3U  // in a row, before a load counts and before a process that went is believed gone
#define SAMPLES_SHRINK  30U // before less memory is believed
#define SAMPLES_UNKNOWN 60U // without a list of processes, before those known are given up
#define MEMORY_STEP     (256ULL << 20)
#define CROWD_BAND      10U // per cent below the limit at which a GPU is not crowded any more

static bool is_valid(const struct gpu_state *gpu, enum gpu_value value)
{
    return (gpu->valid & (uint32_t)value) != 0;
}

/* The lease that waits and that this process on a GPU is for; NULL: none. */
static const struct job *find_lessee(const struct core *core, const struct gpu_process *process)
{
    const struct core_entry *entry = process->job != 0 ? core_find(core, process->job) : NULL;
    bool is_waiting = entry != NULL && entry->job->state == JOB_QUEUED && entry->job->ask->lease_pid != 0;
    return is_waiting ? entry->job : NULL;
}

/* What one sample shows of others. */
struct others {
    uint32_t count;
    uint64_t most, sum;    // bytes: of the largest, of all
    uint64_t most_strange; // of the largest that no lease waits for
    uint32_t lessee;       // pid for which a lease waits; 0: none
};

/* A process whose memory cannot be told may have all that is used, unless jobs are there too. */
static struct others count_others(const struct core *core, const struct gpu_state *gpu, bool is_empty)
{
    const struct gpu_process *processes = gpu->processes.items;
    bool may_be_all = is_empty && is_valid(gpu, GPU_MEMORY_USED);
    struct others others = { 0 };
    for (size_t i = 0; i < gpu->processes.count; i++) {
        const struct job *lessee = find_lessee(core, &processes[i]);
        if (processes[i].job != 0 && lessee == NULL)
            continue;
        uint64_t memory = processes[i].is_memory_known != 0 ? processes[i].memory_bytes
                          : may_be_all                      ? gpu->memory_used_bytes
                                                            : 0;
        uint64_t room = gpu->memory_bytes > others.sum ? gpu->memory_bytes - others.sum : 0;
        others.count++;
        others.most = memory > others.most ? memory : others.most;
        if (lessee == NULL)
            others.most_strange = memory > others.most_strange ? memory : others.most_strange;
        else if (others.lessee == 0)
            others.lessee = lessee->ask->lease_pid;
        others.sum += memory < room ? memory : room;
    }
    return others;
}

static void forget_others(struct gpu_watch *watch)
{
    watch->is_used_outside = false;
    watch->foreign_memory = watch->less = watch->lessee = 0;
}

/* More is believed at once; less when it has lasted. */
static void follow_memory(struct gpu_watch *watch, uint64_t sum)
{
    uint64_t memory = (sum > 0 ? (sum - 1) / MEMORY_STEP + 1 : 1) * MEMORY_STEP;
    if (memory >= watch->foreign_memory) {
        watch->foreign_memory = memory;
        watch->less = 0;
        return;
    }
    watch->most = watch->less == 0 || memory > watch->most ? memory : watch->most;
    if (++watch->less >= SAMPLES_SHRINK) {
        watch->foreign_memory = watch->most;
        watch->less = 0;
    }
}

static void watch_others(
    const struct core *core, const struct gpu_state *gpu, bool is_empty, struct gpu_watch *watch)
{
    const struct outside_settings *settings = &core->options.outside;
    if (!is_valid(gpu, GPU_PROCESSES)) {
        watch->loaded = 0;
        if (++watch->unknown >= SAMPLES_UNKNOWN)
            forget_others(watch);
        return;
    }
    watch->unknown = 0;
    struct others others = count_others(core, gpu, is_empty);
    bool is_loaded = is_empty && others.count > 0 && is_valid(gpu, GPU_UTILIZATION) &&
                     gpu->utilization_percent > settings->foreign_load;
    watch->loaded = is_loaded ? watch->loaded + 1 : 0;
    if (others.most > settings->foreign_memory || watch->loaded >= SAMPLES_HOLD) {
        watch->is_used_outside = true;
        watch->calm = 0;
    } else if (++watch->calm >= SAMPLES_HOLD) {
        forget_others(watch);
    }
    watch->lessee =
        watch->is_used_outside && others.most_strange <= settings->foreign_memory ? others.lessee : 0;
    if (watch->is_used_outside)
        follow_memory(watch, others.sum);
}

static bool is_above(uint64_t value, uint64_t whole, uint32_t limit)
{
    return whole > 0 && value > whole / 100 * limit;
}

static void watch_crowd(const struct outside_settings *settings, const struct gpu_state *gpu, bool is_shared,
    struct gpu_watch *watch)
{
    uint32_t band = watch->is_crowded ? CROWD_BAND : 0;
    uint32_t memory = settings->share_memory, load = settings->share_load;
    bool is_full = is_valid(gpu, GPU_MEMORY_USED) && memory < 100 &&
                   is_above(gpu->memory_used_bytes, gpu->memory_bytes, memory > band ? memory - band : 0);
    bool is_busy = is_valid(gpu, GPU_UTILIZATION) && load < 100 &&
                   gpu->utilization_percent > (load > band ? load - band : 0);
    bool is_crowded = is_shared && (is_full || is_busy);
    watch->contrary = is_crowded != watch->is_crowded ? watch->contrary + 1 : 0;
    if (watch->contrary >= SAMPLES_HOLD || !is_shared) {
        watch->is_crowded = is_crowded;
        watch->contrary = 0;
    }
}

static void watch_gpus(struct core *core, struct core_node *node)
{
    const struct gpu_state *gpus = node->hello.gpus.items;
    const struct cluster_node *ledger = cluster_find(sched_cluster(core->sched), node->name);
    for (size_t i = 0; i < node->hello.gpus.count; i++) {
        if (gpus[i].uuid == NULL || gpus[i].is_lost != 0)
            continue;
        const struct cluster_gpu *books = ledger != NULL ? cluster_find_gpu(ledger, gpus[i].uuid) : NULL;
        bool is_empty = books == NULL || cluster_gpu_is_empty(books);
        struct gpu_watch *watch = core_take_watch(node, gpus[i].uuid);
        watch->is_unclean = gpus[i].is_unclean != 0;
        watch->is_refused = gpus[i].refusal != NULL;
        watch->is_one_process = gpus[i].is_one_process != 0;
        watch_others(core, &gpus[i], is_empty, watch);
        watch_crowd(&core->options.outside, &gpus[i], books != NULL && books->share_slots != 0, watch);
    }
}

static void close_device(const struct core *core, const struct core_node *node, struct cluster_device *device)
{
    const struct gpu_watch *watch = core_gpu_watch(node, device->uuid);
    enum foreign_policy policy = core_gpu_policy(core, node->name, device->uuid, NULL);
    if (watch == NULL)
        return;
    if (watch->is_used_outside && policy == FOREIGN_AVOID)
        device->closed |= DEVICE_EXTERNAL;
    if (watch->is_used_outside && policy == FOREIGN_FIT_AROUND)
        device->memory_foreign = watch->foreign_memory;
    if (watch->is_used_outside)
        device->lessee = watch->lessee;
    if (watch->is_unclean)
        device->closed |= DEVICE_UNCLEAN;
    if (watch->is_crowded)
        device->closed |= DEVICE_CROWDED;
    if (watch->is_refused)
        device->closed |= DEVICE_REFUSED;
    if (watch->is_one_process)
        device->closed |= DEVICE_ALONE;
}

const struct core_concern core_concern_external = {
    .name = "outside",
    .sample = watch_gpus,
    .processes = watch_gpus,
    .close = close_device,
};
