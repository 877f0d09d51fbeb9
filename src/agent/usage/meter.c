/* SPDX-License-Identifier: MIT */
/*
 * Each sample adds the time since the previous one, at most SAMPLE_MAX_MS: nothing is assumed about time
 * without an agent. Counters (energy, CPU time) bridge such gaps.
 *
 * A GPU is idle in a sample if it computed nothing, the memory in use did not grow, and the attempt used
 * hardly any CPU: loading data before the first kernel is work. Idle time is counted only while it is
 * observed without interruption. Paused time does not count. The count starts again after a gap in which the
 * attempt may have worked, or after a sample that lacks the load of one of its GPUs.
 */
#include "agent/usage/meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "job/event.h"
#include "job/share.h"

#define SAMPLE_MAX_MS     5000
#define FIRST_SAMPLE_MS   1000                // maximum time that the first sample covers
#define UNSEEN_MS         5000                // between samples; a first use within this time is missed
#define IDLE_GAP_MS       60000               // a restarted agent is back sooner than this
#define IDLE_PERCENT      2U                  // GPU utilization below this counts as none
#define IDLE_CPU_PERCENT  5U                  // of one CPU
#define IDLE_GROWTH_BYTES (UINT64_C(1) << 20) // memory that varies without work of the job

static const struct record_field gpu_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct meter_gpu, energy_mj, 0),
    RECORD_FIELD(2, RECORD_SIZE, struct meter_gpu, memory_used, 0),
    RECORD_FIELD(3, RECORD_U64, struct meter_gpu, idle_ms, 0),
};
static const struct record_type meter_gpu_record = RECORD_TYPE(61, "GPU meter", struct meter_gpu, gpu_fields);

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct usage_meter, job, 0),
    RECORD_FIELD(2, RECORD_U32, struct usage_meter, attempt, 0),
    RECORD_FIELD(3, RECORD_I64, struct usage_meter, last_ms, 0),
    RECORD_FIELD(4, RECORD_U64, struct usage_meter, busy_ms, 0),
    RECORD_FIELD(5, RECORD_U64, struct usage_meter, gpu_ms, 0),
    RECORD_FIELD(6, RECORD_U64, struct usage_meter, cpu_ms, 0),
    RECORD_SUBLIST(7, struct usage_meter, gpus, EVENT_GPUS_MAX, &meter_gpu_record),
    RECORD_FIELD(8, RECORD_U64, struct usage_meter, bucket_ms, 0),
    RECORD_FIELD(9, RECORD_U32, struct usage_meter, busy, 0),
    RECORD_FIELD(10, RECORD_U32, struct usage_meter, memory, 0),
    RECORD_FIELD(11, RECORD_U32, struct usage_meter, power, 0),
    RECORD_SUBLIST(12, struct usage_meter, usage, 1, &job_usage_record),
    RECORD_FIELD(13, RECORD_I64, struct usage_meter, unused_from_ms, 0),
};
const struct record_type usage_meter_record = RECORD_TYPE(62, "usage meter", struct usage_meter, fields);

static void empty_bucket(struct usage_meter *meter)
{
    meter->bucket_ms = 0;
    meter->busy = meter->memory = meter->power = USAGE_NOT_KNOWN;
}

void usage_meter_init(
    struct usage_meter *meter, uint64_t job, uint32_t attempt, size_t n_grants, int64_t started_ms)
{
    *meter = (struct usage_meter){
        .job = job,
        .attempt = attempt,
        .last_ms = started_ms,
        .unused_from_ms = started_ms,
        .gpus = { xcalloc(n_grants, sizeof(struct meter_gpu)), n_grants },
        .usage = { xcalloc(1, sizeof(struct job_usage)), 1 },
    };
    empty_bucket(meter);
}

void usage_meter_clear(struct usage_meter *meter)
{
    record_clear(&usage_meter_record, meter);
}

/* --- one sample --- */

/* The values of the granted GPUs together in one sample. */
struct sum {
    uint32_t busy, n_busy;     // sum of utilization in percent, and the number of GPUs in it
    uint32_t memory;           // percent, of the GPU with the least free memory; USAGE_NOT_KNOWN
    uint64_t power, power_max; // milliwatts of the GPUs that report both values
    size_t n_idle;
    bool is_cpu_idle;
    bool is_gap;        // the last sample is too old to assume that the GPUs were idle since then
    uint64_t idle_ms;   // idle time added to each GPU that is idle
    uint64_t over, cap; // of a GPU on which it exceeds its share: bytes used, and the share; 0: none
};

static bool is_granted(const struct gpu_grant *grant, const struct gpu_state *gpu)
{
    return grant->uuid != NULL && gpu->uuid != NULL ? strcmp(grant->uuid, gpu->uuid) == 0
                                                    : grant->index == gpu->index;
}

static const struct gpu_state *find_gpu(const struct record_list *gpus, const struct gpu_grant *grant)
{
    const struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++)
        if (is_granted(grant, &states[i]))
            return &states[i];
    return NULL;
}

static bool is_own(const struct usage_meter *meter, const struct gpu_process *process)
{
    return process->start != 0 && process->job == meter->job && process->attempt == meter->attempt;
}

static bool is_shared(const struct gpu_grant *grant)
{
    return grant->slot != 0;
}

/* Thousandths of a shared GPU that count for this attempt. */
static uint64_t share_milli(const struct gpu_grant *grant, const struct gpu_state *gpu)
{
    if (!is_shared(grant))
        return 1000;
    if (grant->share != 0)
        return grant->share;
    return gpu->memory_bytes > 0 ? grant->memory * 1000 / gpu->memory_bytes : 1000;
}

/* The memory of the attempt's own processes; false if a process does not report it. */
static bool read_own_memory(
    const struct usage_meter *meter, const struct gpu_state *gpu, bool *ret_is_seen, uint64_t *ret)
{
    const struct gpu_process *processes = gpu->processes.items;
    bool is_known = (gpu->valid & GPU_PROCESSES) != 0;
    *ret = 0;
    *ret_is_seen = false;
    for (size_t i = 0; is_known && i < gpu->processes.count; i++) {
        if (!is_own(meter, &processes[i]))
            continue;
        *ret_is_seen = true;
        is_known = processes[i].is_memory_known != 0;
        *ret += processes[i].memory_bytes;
    }
    return is_known;
}

/* The attempt's own memory if its processes report it; else all used memory, if the GPU is not shared. */
static bool read_memory(const struct usage_meter *meter, const struct gpu_grant *grant,
    const struct gpu_state *gpu, uint64_t *ret)
{
    bool is_seen;
    if (read_own_memory(meter, gpu, &is_seen, ret) && (is_seen || is_shared(grant)))
        return true;
    *ret = gpu->memory_used_bytes;
    return (gpu->valid & GPU_MEMORY_USED) != 0;
}

static void add_memory(const struct usage_meter *meter, const struct gpu_grant *grant,
    const struct gpu_state *gpu, struct sum *sum, struct job_usage *usage)
{
    uint64_t bytes;
    if (!read_memory(meter, grant, gpu, &bytes))
        return;
    if (bytes >= usage->gpu_memory_peak) {
        usage->gpu_memory_peak = bytes;
        usage->gpu_memory_size = gpu->memory_bytes;
    }
    usage->valid |= USAGE_GPU_MEMORY;
    uint32_t percent = gpu->memory_bytes > 0 ? (uint32_t)(bytes * 100 / gpu->memory_bytes) : 0;
    if (sum->memory == USAGE_NOT_KNOWN || percent > sum->memory)
        sum->memory = percent > 100 ? 100 : percent;
}

/* The memory of other jobs on the GPU never counts against the attempt. */
static void compare_share(const struct usage_meter *meter, const struct gpu_grant *grant,
    const struct gpu_state *gpu, struct sum *sum)
{
    struct job_usage *usage = meter->usage.items;
    uint64_t cap = share_bytes(grant, gpu->memory_bytes), used;
    bool is_seen;
    if (usage->share == NULL || cap == 0)
        return;
    usage->gpu_memory_cap = cap;
    if (!read_own_memory(meter, gpu, &is_seen, &used) || used <= cap || used <= sum->over)
        return;
    sum->over = used;
    sum->cap = cap;
}

/* The counter includes unobserved time; if it decreased, the driver has reset it. */
static void add_energy(struct meter_gpu *last, const struct gpu_grant *grant, const struct gpu_state *gpu,
    uint64_t passed_ms, struct job_usage *usage)
{
    bool has_counter = (gpu->valid & GPU_ENERGY) != 0;
    uint64_t drawn = 0;
    bool is_measured = true;
    if (has_counter && last->energy_mj != 0 && gpu->energy_mj >= last->energy_mj)
        drawn = gpu->energy_mj - last->energy_mj;
    else if ((gpu->valid & GPU_POWER) != 0 && passed_ms > 0)
        drawn = gpu->power_mw * passed_ms / 1000;
    else
        is_measured = false; // the count begins with the first reading of the counter
    last->energy_mj = has_counter ? gpu->energy_mj : 0;
    usage->energy_mj += drawn * share_milli(grant, gpu) / 1000;
    if (is_measured)
        usage->valid |= USAGE_ENERGY;
}

static void add_busy(struct usage_meter *meter, const struct gpu_state *gpu, uint64_t passed_ms,
    struct sum *sum, struct job_usage *usage)
{
    uint32_t milli = gpu->utilization_percent * 10;
    meter->busy_ms += milli * passed_ms;
    meter->gpu_ms += passed_ms;
    sum->busy += gpu->utilization_percent;
    sum->n_busy++;
    if (milli > usage->utilization_peak_milli)
        usage->utilization_peak_milli = milli;
    if (meter->gpu_ms == 0)
        return; // no time has passed for a mean
    usage->utilization_milli = (uint32_t)(meter->busy_ms / meter->gpu_ms);
    usage->valid |= USAGE_UTILIZATION;
}

static void add_gpu(struct usage_meter *meter, size_t i, const struct gpu_grant *grant,
    const struct gpu_state *gpu, uint64_t passed_ms, struct sum *sum)
{
    struct job_usage *usage = meter->usage.items;
    struct meter_gpu *last = (struct meter_gpu *)meter->gpus.items + i;
    bool has_busy = (gpu->valid & GPU_UTILIZATION) != 0;
    bool has_grown =
        (gpu->valid & GPU_MEMORY_USED) != 0 && gpu->memory_used_bytes > last->memory_used + IDLE_GROWTH_BYTES;
    add_memory(meter, grant, gpu, sum, usage);
    compare_share(meter, grant, gpu, sum);
    add_energy(last, grant, gpu, passed_ms, usage);
    if (has_busy)
        add_busy(meter, gpu, passed_ms, sum, usage);
    if ((gpu->valid & GPU_POWER) != 0 && (gpu->valid & GPU_POWER_LIMIT) != 0) {
        sum->power += gpu->power_mw;
        sum->power_max += gpu->power_limit_mw;
    }
    last->memory_used = gpu->memory_used_bytes;
    bool is_quiet = has_busy && gpu->utilization_percent < IDLE_PERCENT && !has_grown;
    last->idle_ms = is_quiet && !sum->is_gap ? last->idle_ms + sum->idle_ms : 0;
    if (!is_quiet || !sum->is_cpu_idle)
        return;
    sum->n_idle++;
    usage->idle_gpu_ms += passed_ms;
}

static void add_host(
    struct usage_meter *meter, const struct usage_host *host, uint64_t real_ms, struct sum *sum)
{
    struct job_usage *usage = meter->usage.items;
    sum->is_cpu_idle = true;
    if (host->is_memory_known) {
        usage->valid |= USAGE_MEMORY;
        if (host->memory > usage->memory_peak)
            usage->memory_peak = host->memory;
    }
    if (!host->is_cpu_known)
        return;
    uint64_t used_ms = host->cpu_ms > meter->cpu_ms ? host->cpu_ms - meter->cpu_ms : 0;
    sum->is_cpu_idle = used_ms * 100 < real_ms * IDLE_CPU_PERCENT;
    meter->cpu_ms = host->cpu_ms;
}

/* --- the whole sample --- */

static bool is_listed(const char *list, uint32_t index)
{
    char number[16];
    size_t length = (size_t)snprintf(number, sizeof(number), "%u", index);
    for (const char *at = list; at != NULL && *at != '\0'; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, number, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

static bool is_seen_on(const struct usage_meter *meter, const struct gpu_state *gpu)
{
    const struct gpu_process *processes = gpu->processes.items;
    for (size_t i = 0; i < gpu->processes.count; i++)
        if (is_own(meter, &processes[i]))
            return true;
    return false;
}

static void note_strays(
    struct usage_meter *meter, const struct record_list *grants, const struct record_list *gpus)
{
    struct job_usage *usage = meter->usage.items;
    const struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++) {
        bool is_given = false;
        for (size_t k = 0; k < grants->count; k++)
            is_given = is_given || is_granted((const struct gpu_grant *)grants->items + k, &states[i]);
        const char *before = usage->stray != NULL ? usage->stray : "";
        if (is_given || !is_seen_on(meter, &states[i]) || is_listed(before, states[i].index) ||
            strlen(before) + 12 > USAGE_FAULT_MAX)
            continue;
        char *longer = xasprintf("%s%s%u", before, before[0] != '\0' ? "," : "", states[i].index);
        free(usage->stray);
        usage->stray = longer;
    }
}

static void lift(uint32_t *percent, uint32_t value)
{
    if (value != USAGE_NOT_KNOWN && (*percent == USAGE_NOT_KNOWN || value > *percent))
        *percent = value;
}

static struct usage_bucket bucket_of(const struct usage_meter *meter)
{
    return (struct usage_bucket){ (uint8_t)meter->busy, (uint8_t)meter->memory, (uint8_t)meter->power };
}

static void fill_bucket(struct usage_meter *meter, const struct sum *sum, uint64_t passed_ms)
{
    struct job_usage *usage = meter->usage.items;
    uint64_t power = sum->power_max > 0 ? sum->power * 100 / sum->power_max : USAGE_NOT_KNOWN;
    lift(&meter->busy, sum->n_busy > 0 ? sum->busy / sum->n_busy : USAGE_NOT_KNOWN);
    lift(&meter->memory, sum->memory);
    lift(&meter->power, sum->power_max > 0 && power > 100 ? 100 : (uint32_t)power);
    meter->bucket_ms += passed_ms;
    uint64_t full_ms = (usage->bucket_s > 0 ? usage->bucket_s : 1) * UINT64_C(1000);
    struct usage_bucket bucket = bucket_of(meter);
    /* Samples arrive slightly early or late; a gap is one bucket and not a series of them. */
    if (meter->bucket_ms + full_ms / 10 < full_ms)
        return;
    usage_bucket_add(usage, &bucket);
    empty_bucket(meter);
}

static uint64_t clamp_passed(const struct usage_meter *meter, uint64_t real_ms)
{
    const struct job_usage *usage = meter->usage.items;
    uint64_t most = usage->sampled_ms == 0 ? FIRST_SAMPLE_MS : SAMPLE_MAX_MS;
    return real_ms > most ? most : real_ms;
}

static void note_idleness(struct usage_meter *meter, const struct sum *sum, const struct usage_sample *sample)
{
    struct job_usage *usage = meter->usage.items;
    bool is_idle = meter->gpus.count > 0 && sum->n_idle == meter->gpus.count;
    if (is_idle && usage->idle_since_ms != 0 && !sum->is_gap) {
        usage->idle_ms += sum->idle_ms;
        return;
    }
    usage->idle_since_ms = is_idle ? sample->wall_ms : 0;
    usage->idle_ms = 0;
}

/* The time counts from the first sample above the share. */
static void note_excess(struct usage_meter *meter, const struct sum *sum, uint64_t passed_ms)
{
    struct job_usage *usage = meter->usage.items;
    bool was_over = usage->gpu_memory_over != 0;
    usage->gpu_memory_over = sum->over;
    if (sum->over != 0)
        usage->gpu_memory_cap = sum->cap;
    usage->over_ms = was_over && sum->over != 0 ? usage->over_ms + passed_ms : 0;
}

static bool is_on_its_gpus(
    const struct usage_meter *meter, const struct record_list *grants, const struct record_list *gpus)
{
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_state *gpu = find_gpu(gpus, (const struct gpu_grant *)grants->items + i);
        if (gpu != NULL && is_seen_on(meter, gpu))
            return true;
    }
    return false;
}

static void note_first_use(struct usage_meter *meter, const struct record_list *grants,
    const struct usage_sample *sample, uint64_t real_ms)
{
    struct job_usage *usage = meter->usage.items;
    if (meter->unused_from_ms == 0)
        return;
    if (real_ms > UNSEEN_MS) {
        meter->unused_from_ms = 0;
        return;
    }
    if (sample->host.is_paused)
        meter->unused_from_ms += (int64_t)real_ms;
    if (!is_on_its_gpus(meter, grants, sample->gpus))
        return;
    usage->first_use_ms = (uint64_t)(sample->boot_ms - meter->unused_from_ms);
    meter->unused_from_ms = 0;
}

void usage_meter_enforce(struct usage_meter *meter, const char *share, const char *why)
{
    struct job_usage *usage = meter->usage.items;
    free(usage->share);
    free(usage->share_why);
    usage->share = xstrdup(share);
    usage->share_why = xstrdup(why);
}

void usage_meter_add(
    struct usage_meter *meter, const struct record_list *grants, const struct usage_sample *sample)
{
    struct job_usage *usage = meter->usage.items;
    struct sum sum = { .memory = USAGE_NOT_KNOWN };
    if (sample->boot_ms <= meter->last_ms)
        return;
    uint64_t real_ms = (uint64_t)(sample->boot_ms - meter->last_ms);
    uint64_t passed_ms = clamp_passed(meter, real_ms);
    sum.is_gap = usage->sampled_ms == 0 || real_ms > IDLE_GAP_MS;
    sum.idle_ms = sample->host.is_paused ? 0 : passed_ms;
    add_host(meter, &sample->host, real_ms, &sum);
    for (size_t i = 0; i < grants->count && i < meter->gpus.count; i++) {
        const struct gpu_grant *grant = (const struct gpu_grant *)grants->items + i;
        const struct gpu_state *gpu = find_gpu(sample->gpus, grant);
        if (gpu != NULL && gpu->is_lost == 0)
            add_gpu(meter, i, grant, gpu, passed_ms, &sum);
        else
            ((struct meter_gpu *)meter->gpus.items)[i].idle_ms = 0;
    }
    note_strays(meter, grants, sample->gpus);
    note_first_use(meter, grants, sample, real_ms);
    note_idleness(meter, &sum, sample);
    note_excess(meter, &sum, passed_ms);
    if (meter->gpus.count > 0)
        fill_bucket(meter, &sum, passed_ms);
    usage->sampled_ms += passed_ms;
    meter->last_ms = sample->boot_ms;
}

static void add_gpu_usages(const struct usage_meter *meter, struct job_usage *usage)
{
    const struct meter_gpu *gpus = meter->gpus.items;
    struct usage_gpu *usages = xcalloc(meter->gpus.count, sizeof(*usages));
    for (size_t i = 0; i < meter->gpus.count; i++)
        usages[i].idle_ms = gpus[i].idle_ms;
    usage->gpus = (struct record_list){ usages, meter->gpus.count };
}

struct job_usage *usage_meter_read(const struct usage_meter *meter)
{
    struct job_usage *usage = job_usage_copy(meter->usage.items);
    struct usage_bucket bucket = bucket_of(meter);
    if (usage->sampled_ms == 0 && job_usage_has_reports(usage))
        return usage;
    if (usage->sampled_ms == 0) {
        job_usage_free(usage);
        return NULL;
    }
    if (meter->bucket_ms > 0)
        usage_bucket_add(usage, &bucket);
    if (meter->gpus.count > 0)
        add_gpu_usages(meter, usage);
    return usage;
}
