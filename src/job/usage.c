/* SPDX-License-Identifier: MIT */
/* The timeline is text, so that it fits records and JSON alike; it never exceeds USAGE_BUCKETS *
 * USAGE_BUCKET_SIZE bytes, however long the job runs. */
#include "job/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const struct record_field gpu_fields[] = {
    RECORD_FIELD(1, RECORD_U64, struct usage_gpu, idle_ms, 0),
};
static const struct record_type usage_gpu_record = RECORD_TYPE(8, "GPU usage", struct usage_gpu, gpu_fields);

static const struct record_field fields[] = {
    RECORD_FIELD(1, RECORD_U32, struct job_usage, valid, 0),
    RECORD_FIELD(2, RECORD_U64, struct job_usage, sampled_ms, 0),
    RECORD_FIELD(3, RECORD_U32, struct job_usage, utilization_milli, 0),
    RECORD_FIELD(4, RECORD_U32, struct job_usage, utilization_peak_milli, 0),
    RECORD_FIELD(5, RECORD_SIZE, struct job_usage, gpu_memory_peak, 0),
    RECORD_FIELD(6, RECORD_SIZE, struct job_usage, gpu_memory_size, 0),
    RECORD_FIELD(7, RECORD_U64, struct job_usage, energy_mj, 0),
    RECORD_FIELD(8, RECORD_SIZE, struct job_usage, memory_peak, 0),
    RECORD_FIELD(9, RECORD_U64, struct job_usage, idle_gpu_ms, 0),
    RECORD_FIELD(10, RECORD_TIME, struct job_usage, idle_since_ms, 0),
    RECORD_FIELD(11, RECORD_U32, struct job_usage, xid, 0),
    RECORD_FIELD(12, RECORD_STRING, struct job_usage, fault, USAGE_FAULT_MAX),
    RECORD_FIELD(13, RECORD_STRING, struct job_usage, stray, USAGE_FAULT_MAX),
    RECORD_FIELD(14, RECORD_U32, struct job_usage, bucket_s, 0),
    RECORD_FIELD(15, RECORD_STRING, struct job_usage, timeline, USAGE_BUCKETS *USAGE_BUCKET_SIZE),
    RECORD_FIELD(16, RECORD_STRING, struct job_usage, tail, USAGE_TAIL_MAX),
    RECORD_FIELD(50, RECORD_U64, struct job_usage, idle_ms, 0),
    RECORD_SUBLIST(51, struct job_usage, gpus, USAGE_GPUS_MAX, &usage_gpu_record),
    RECORD_FIELD(71, RECORD_U32, struct job_usage, progress_ppm, 0),
    RECORD_FIELD(72, RECORD_STRING, struct job_usage, status, USAGE_STATUS_MAX),
    RECORD_FIELD(330, RECORD_STRING, struct job_usage, share, USAGE_SHARE_MAX),
    RECORD_FIELD(331, RECORD_STRING, struct job_usage, share_why, USAGE_SHARE_MAX),
    RECORD_FIELD(332, RECORD_SIZE, struct job_usage, gpu_memory_cap, 0),
    RECORD_FIELD(333, RECORD_SIZE, struct job_usage, gpu_memory_over, 0),
    RECORD_FIELD(334, RECORD_U64, struct job_usage, over_ms, 0),
    RECORD_FIELD(335, RECORD_U64, struct job_usage, first_use_ms, 0),
    RECORD_FIELD(73, RECORD_TIME, struct job_usage, checkpointed_ms, 0),
};
const struct record_type job_usage_record = RECORD_TYPE(7, "usage", struct job_usage, fields);

static bool is_valid(const struct job_usage *usage, enum usage_value value)
{
    return usage != NULL && (usage->valid & (uint32_t)value) != 0;
}

struct optional usage_utilization_milli(const struct job_usage *usage)
{
    bool is_known = is_valid(usage, USAGE_UTILIZATION);
    return optional_if(is_known, is_known ? usage->utilization_milli : 0);
}

struct optional usage_utilization_peak_milli(const struct job_usage *usage)
{
    bool is_known = is_valid(usage, USAGE_UTILIZATION);
    return optional_if(is_known, is_known ? usage->utilization_peak_milli : 0);
}

struct optional usage_first_use_ms(const struct job_usage *usage)
{
    bool is_known = usage != NULL && usage->first_use_ms > 0;
    return optional_if(is_known, is_known ? usage->first_use_ms : 0);
}

struct optional usage_gpu_memory_peak(const struct job_usage *usage)
{
    bool is_known = is_valid(usage, USAGE_GPU_MEMORY) && usage->gpu_memory_peak > 0;
    return optional_if(is_known, is_known ? usage->gpu_memory_peak : 0);
}

struct optional usage_gpu_memory_size(const struct job_usage *usage)
{
    bool is_known = is_valid(usage, USAGE_GPU_MEMORY) && usage->gpu_memory_size > 0;
    return optional_if(is_known, is_known ? usage->gpu_memory_size : 0);
}

struct optional usage_energy_mj(const struct job_usage *usage)
{
    bool is_known = is_valid(usage, USAGE_ENERGY);
    return optional_if(is_known, is_known ? usage->energy_mj : 0);
}

struct optional usage_memory_peak(const struct job_usage *usage)
{
    bool is_known = is_valid(usage, USAGE_MEMORY) && usage->memory_peak > 0;
    return optional_if(is_known, is_known ? usage->memory_peak : 0);
}

static size_t count_buckets(const struct job_usage *usage)
{
    return usage->timeline == NULL ? 0 : strlen(usage->timeline) / USAGE_BUCKET_SIZE;
}

bool usage_bucket_read(const struct job_usage *usage, uint32_t index, struct usage_bucket *ret)
{
    unsigned busy, memory, power;
    if (index >= count_buckets(usage) ||
        sscanf(usage->timeline + (size_t)index * USAGE_BUCKET_SIZE, "%2x%2x%2x", &busy, &memory, &power) != 3)
        return false;
    *ret = (struct usage_bucket){ (uint8_t)busy, (uint8_t)memory, (uint8_t)power };
    return true;
}

uint8_t usage_higher(uint8_t a, uint8_t b)
{
    if (a == USAGE_NOT_KNOWN || b == USAGE_NOT_KNOWN)
        return a == USAGE_NOT_KNOWN ? b : a;
    return a > b ? a : b;
}

static void append(struct job_usage *usage, const struct usage_bucket *bucket)
{
    const char *before = usage->timeline == NULL ? "" : usage->timeline;
    char *longer = xasprintf("%s%02x%02x%02x", before, bucket->busy, bucket->memory, bucket->power);
    free(usage->timeline);
    usage->timeline = longer;
}

static void halve(struct job_usage *usage)
{
    struct job_usage full = *usage;
    struct usage_bucket first, second;
    usage->timeline = NULL;
    for (uint32_t i = 0; usage_bucket_read(&full, i, &first); i += 2) {
        if (!usage_bucket_read(&full, i + 1, &second))
            second = first;
        append(
            usage, &(struct usage_bucket){ usage_higher(first.busy, second.busy),
                       usage_higher(first.memory, second.memory), usage_higher(first.power, second.power) });
    }
    usage->bucket_s *= 2;
    free(full.timeline);
}

void usage_bucket_add(struct job_usage *usage, const struct usage_bucket *bucket)
{
    if (usage->bucket_s == 0)
        usage->bucket_s = 1;
    if (count_buckets(usage) >= USAGE_BUCKETS)
        halve(usage);
    append(usage, bucket);
}

bool job_usage_has_reports(const struct job_usage *usage)
{
    return (usage->valid & USAGE_PROGRESS) != 0 || usage->status != NULL || usage->checkpointed_ms != 0;
}

void job_usage_clear(struct job_usage *usage)
{
    record_clear(&job_usage_record, usage);
}

struct job_usage *job_usage_copy(const struct job_usage *usage)
{
    if (usage == NULL)
        return NULL;
    struct job_usage *copy = xcalloc(1, sizeof(*copy));
    record_copy(&job_usage_record, copy, usage);
    return copy;
}

void job_usage_free(struct job_usage *usage)
{
    if (usage == NULL)
        return;
    job_usage_clear(usage);
    free(usage);
}
