/* SPDX-License-Identifier: MIT */
/*
 * External processes on GPUs. Each sample of a node is evaluated here; the scheduler only learns that a GPU
 * is closed, and how much memory external processes use. These values are in the log, so they change slowly:
 * a process above the thresholds closes its GPU with the first sample, but everything else must hold for
 * several samples, and memory is rounded up.
 */

#include "base/memory.h"
#include "controller/core/concern.h"
#include "controller/core/entry.h"
#include "controller/core/state.h"
#include "controller/core/tables.h"

#define SAMPLES_HOLD    3U  // consecutive samples before a load counts, and before a process counts as ended
#define SAMPLES_SHRINK  30U // samples before a decrease of memory counts
#define SAMPLES_UNKNOWN 60U // samples without a list of processes before the known ones are discarded
#define MEMORY_STEP     (256ULL << 20)
#define CROWD_BAND      10U // percentage below the limit at which a GPU is no longer crowded

static bool is_valid(const struct gpu_state *gpu, enum gpu_value value)
{
    return (gpu->valid & (uint32_t)value) != 0;
}

/* The waiting adoption that is for this process on a GPU; NULL: none. */
static const struct job *find_adoptee(const struct core *core, const struct gpu_process *process)
{
    const struct core_entry *entry = process->job != 0 ? core_find(core, process->job) : NULL;
    bool is_waiting = entry != NULL && entry->job->state == JOB_QUEUED && entry->job->ask->adopted_pid != 0;
    return is_waiting ? entry->job : NULL;
}

/* Use of a GPU by external processes, in one sample. */
struct external_use {
    uint32_t count;
    uint64_t most, sum;      // bytes: of the largest process, and of all
    uint64_t most_unadopted; // of the largest process without a waiting adoption
    uint32_t adoptee;        // pid with a waiting adoption; 0: none
};

/* A process with unknown memory may have all used memory, unless there are jobs too. */
static struct external_use count_external(const struct core *core, const struct gpu_state *gpu, bool is_empty)
{
    const struct gpu_process *processes = gpu->processes.items;
    bool may_be_all = is_empty && is_valid(gpu, GPU_MEMORY_USED);
    struct external_use use = { 0 };
    for (size_t i = 0; i < gpu->processes.count; i++) {
        const struct job *adoptee = find_adoptee(core, &processes[i]);
        if (processes[i].job != 0 && adoptee == NULL)
            continue;
        uint64_t memory = processes[i].is_memory_known != 0 ? processes[i].memory_bytes
                          : may_be_all                      ? gpu->memory_used_bytes
                                                            : 0;
        uint64_t room = gpu->memory_bytes > use.sum ? gpu->memory_bytes - use.sum : 0;
        use.count++;
        use.most = memory > use.most ? memory : use.most;
        if (adoptee == NULL)
            use.most_unadopted = memory > use.most_unadopted ? memory : use.most_unadopted;
        else if (use.adoptee == 0)
            use.adoptee = adoptee->ask->adopted_pid;
        use.sum += memory < room ? memory : room;
    }
    return use;
}

static void forget_others(struct gpu_watch *watch)
{
    watch->is_used_externally = false;
    watch->external_memory = watch->less = watch->adoptee = 0;
}

/* Increases apply at once, decreases after they have lasted for some time. */
static void follow_memory(struct gpu_watch *watch, uint64_t sum)
{
    uint64_t memory = (sum > 0 ? (sum - 1) / MEMORY_STEP + 1 : 1) * MEMORY_STEP;
    if (memory >= watch->external_memory) {
        watch->external_memory = memory;
        watch->less = 0;
        return;
    }
    watch->most = watch->less == 0 || memory > watch->most ? memory : watch->most;
    if (++watch->less >= SAMPLES_SHRINK) {
        watch->external_memory = watch->most;
        watch->less = 0;
    }
}

/* The number of bytes above which external processes count, and how much of their memory is compared with
 * it. */
static uint64_t limit_of(const struct external_settings *settings, const struct gpu_state *gpu)
{
    return settings->external_part > 0 ? gpu->memory_bytes / 100 * settings->external_part
                                       : settings->external_memory;
}

static void watch_any(const struct external_use *use, struct gpu_watch *watch)
{
    watch->alone = use->count > 0 ? 0 : watch->alone + 1;
    if (use->count > 0 || watch->alone >= SAMPLES_HOLD)
        watch->has_external = use->count > 0;
}

static void watch_others(
    const struct core *core, const struct gpu_state *gpu, bool is_empty, struct gpu_watch *watch)
{
    const struct external_settings *settings = &core->options.external;
    if (!is_valid(gpu, GPU_PROCESSES)) {
        watch->loaded = 0;
        if (++watch->unknown >= SAMPLES_UNKNOWN) {
            watch->has_external = false;
            forget_others(watch);
        }
        return;
    }
    watch->unknown = 0;
    struct external_use use = count_external(core, gpu, is_empty);
    bool is_loaded = is_empty && use.count > 0 && is_valid(gpu, GPU_UTILIZATION) &&
                     gpu->utilization_percent > settings->external_load;
    uint64_t limit = limit_of(settings, gpu), memory = settings->external_part > 0 ? use.sum : use.most;
    watch_any(&use, watch);
    watch->loaded = is_loaded ? watch->loaded + 1 : 0;
    if (memory > limit || watch->loaded >= SAMPLES_HOLD) {
        watch->is_used_externally = true;
        watch->calm = 0;
    } else if (++watch->calm >= SAMPLES_HOLD) {
        forget_others(watch);
    }
    watch->adoptee = watch->is_used_externally && use.most_unadopted <= limit ? use.adoptee : 0;
    if (watch->is_used_externally)
        follow_memory(watch, use.sum);
}

static bool is_above(uint64_t value, uint64_t whole, uint32_t limit)
{
    return whole > 0 && value > whole / 100 * limit;
}

static void watch_crowd(const struct external_settings *settings, const struct gpu_state *gpu, bool is_shared,
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
        struct core_gpu *gpu = core_gpu_at(node, i);
        const struct cluster_gpu *books = core_gpu_books(ledger, gpu);
        bool is_empty = books == NULL || cluster_gpu_is_empty(books);
        struct gpu_watch *watch = &gpu->watch;
        watch->is_unclean = gpus[i].is_unclean != 0;
        watch->is_refused = gpus[i].refusal != NULL;
        watch->is_one_process = gpus[i].is_one_process != 0;
        watch_others(core, &gpus[i], is_empty, watch);
        watch_crowd(&core->options.external, &gpus[i], books != NULL && books->share_slots != 0, watch);
    }
}

static void close_device(const struct core *core, const struct core_node *node, const struct core_gpu *gpu,
    struct cluster_device *device)
{
    const struct gpu_watch *watch = &gpu->watch;
    enum external_policy policy = core_gpu_policy(core, gpu);
    device->has_external = watch->has_external && policy != EXTERNAL_IGNORE;
    if (watch->is_used_externally && policy == EXTERNAL_AVOID)
        device->closed |= DEVICE_EXTERNAL;
    if (watch->is_used_externally && policy == EXTERNAL_FIT_AROUND)
        device->memory_external = watch->external_memory;
    if (watch->is_used_externally)
        device->adoptee = watch->adoptee;
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
    .name = "external",
    .sample = watch_gpus,
    .processes = watch_gpus,
    .close = close_device,
};
