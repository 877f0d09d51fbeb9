/* SPDX-License-Identifier: MIT */
#include "job/usage_merge.h"

#include "base/memory.h"

static uint64_t higher_number(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Ranks are weighted by their number of GPUs. */
static void add_utilization(const struct usage_part *parts, size_t count, struct job_usage *merged)
{
    uint64_t sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        const struct job_usage *usage = parts[i].usage;
        if (usage == NULL || (usage->valid & USAGE_UTILIZATION) == 0)
            continue;
        uint64_t share = usage->sampled_ms * (parts[i].n_gpus > 0 ? parts[i].n_gpus : 1);
        sum += share * usage->utilization_milli;
        weight += share;
    }
    merged->utilization_milli = weight > 0 ? (uint32_t)(sum / weight) : 0;
}

/* The values of the rank that has been above its share for longest. */
static void add_share(const struct job_usage *usage, struct job_usage *merged)
{
    if (merged->share == NULL) {
        merged->share = xstrdup(usage->share);
        merged->share_why = xstrdup(usage->share_why);
    }
    bool is_worse = merged->gpu_memory_over == 0 || usage->over_ms > merged->over_ms;
    if (merged->gpu_memory_cap != 0 && (usage->gpu_memory_over == 0 || !is_worse))
        return;
    merged->gpu_memory_cap = usage->gpu_memory_cap;
    merged->gpu_memory_over = usage->gpu_memory_over;
    merged->over_ms = usage->over_ms;
}

static void add_numbers(const struct job_usage *usage, struct job_usage *merged)
{
    merged->valid |= usage->valid;
    merged->sampled_ms = higher_number(merged->sampled_ms, usage->sampled_ms);
    merged->utilization_peak_milli =
        (uint32_t)higher_number(merged->utilization_peak_milli, usage->utilization_peak_milli);
    if (usage->gpu_memory_peak > merged->gpu_memory_peak || merged->gpu_memory_size == 0) {
        merged->gpu_memory_peak = usage->gpu_memory_peak;
        merged->gpu_memory_size = usage->gpu_memory_size;
    }
    merged->energy_mj += usage->energy_mj;
    merged->memory_peak = higher_number(merged->memory_peak, usage->memory_peak);
    merged->idle_gpu_ms += usage->idle_gpu_ms;
    merged->first_use_ms = higher_number(merged->first_use_ms, usage->first_use_ms);
    if (merged->xid == 0 && usage->xid != 0) {
        merged->xid = usage->xid;
        merged->fault = xstrdup(usage->fault);
    }
    if (merged->stray == NULL)
        merged->stray = xstrdup(usage->stray);
    add_share(usage, merged);
}

/* The shortest idle time of all ranks; 0 if that of any rank is not known. */
static void add_idleness(const struct usage_part *parts, size_t count, struct job_usage *merged)
{
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        const struct job_usage *usage = parts[i].usage;
        uint64_t idle_ms = usage != NULL ? usage->idle_ms : 0;
        if (parts[i].n_gpus == 0 || (!is_first && idle_ms >= merged->idle_ms))
            continue;
        merged->idle_ms = idle_ms;
        merged->idle_since_ms = idle_ms > 0 ? usage->idle_since_ms : 0;
        is_first = false;
    }
}

static void add_gpus(const struct usage_part *parts, size_t count, struct job_usage *merged)
{
    size_t total = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].n_gpus;
    if (total == 0 || total > USAGE_GPUS_MAX)
        return;
    struct usage_gpu *gpus = xcalloc(total, sizeof(*gpus));
    for (size_t i = 0; i < count; at += parts[i++].n_gpus)
        for (size_t k = 0; parts[i].usage != NULL && k < parts[i].n_gpus && k < parts[i].usage->gpus.count;
             k++)
            gpus[at + k] = ((const struct usage_gpu *)parts[i].usage->gpus.items)[k];
    merged->gpus = (struct record_list){ gpus, total };
}

/* The maximum of the buckets that are in bucket `index` of `width` seconds; false: there are none. */
static bool add_buckets(
    const struct job_usage *usage, uint32_t index, uint32_t width, struct usage_bucket *highest)
{
    struct usage_bucket bucket;
    uint32_t each = width / usage->bucket_s, at = index * each;
    bool is_known = usage_bucket_read(usage, at, &bucket);
    for (; at < (index + 1) * each && usage_bucket_read(usage, at, &bucket); at++)
        *highest = (struct usage_bucket){ usage_higher(highest->busy, bucket.busy),
            usage_higher(highest->memory, bucket.memory), usage_higher(highest->power, bucket.power) };
    return is_known;
}

static bool has_timeline(const struct usage_part *part)
{
    return part->usage != NULL && part->usage->bucket_s > 0 && part->usage->timeline != NULL;
}

/* Uses the coarsest buckets of any rank: all widths are powers of 2, and all ranks began together. */
static void add_timeline(const struct usage_part *parts, size_t count, struct job_usage *merged)
{
    uint32_t width = 0;
    for (size_t i = 0; i < count; i++)
        if (has_timeline(&parts[i]) && parts[i].usage->bucket_s > width)
            width = parts[i].usage->bucket_s;
    for (uint32_t index = 0; width > 0 && index < USAGE_BUCKETS; index++) {
        struct usage_bucket bucket = { USAGE_NOT_KNOWN, USAGE_NOT_KNOWN, USAGE_NOT_KNOWN };
        bool is_known = false;
        for (size_t i = 0; i < count; i++)
            if (has_timeline(&parts[i]))
                is_known |= add_buckets(parts[i].usage, index, width, &bucket);
        if (!is_known)
            return;
        merged->bucket_s = width;
        usage_bucket_add(merged, &bucket);
    }
}

struct job_usage *job_usage_merge(const struct usage_part *parts, size_t count)
{
    struct job_usage *merged = NULL;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].usage == NULL)
            continue;
        if (merged == NULL)
            merged = xcalloc(1, sizeof(*merged));
        add_numbers(parts[i].usage, merged);
    }
    if (merged == NULL)
        return NULL;
    add_utilization(parts, count, merged);
    add_idleness(parts, count, merged);
    add_gpus(parts, count, merged);
    add_timeline(parts, count, merged);
    return merged;
}
