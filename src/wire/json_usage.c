/* SPDX-License-Identifier: MIT */
#include "wire/json_usage.h"

#include "wire/json_text.h"

static json_t *number(struct optional value)
{
    return value.is_known ? json_integer((json_int_t)value.value) : json_null();
}

/* Converts thousandths; json_text_milli and json_text_seconds have the same signature. */
static json_t *thousandths(struct optional value)
{
    return value.is_known ? json_text_seconds((int64_t)value.value) : json_null();
}

static json_t *percent(uint8_t value)
{
    return value == USAGE_NOT_KNOWN ? json_null() : json_integer(value);
}

static json_t *timeline(const struct job_usage *usage)
{
    json_t *array = json_array();
    struct usage_bucket bucket;
    for (uint32_t i = 0; usage_bucket_read(usage, i, &bucket); i++) {
        json_t *triple = json_array();
        (void)json_array_append_new(triple, percent(bucket.busy));
        (void)json_array_append_new(triple, percent(bucket.memory));
        (void)json_array_append_new(triple, percent(bucket.power));
        (void)json_array_append_new(array, triple);
    }
    return array;
}

static json_t *gpus(const struct job_usage *usage)
{
    const struct usage_gpu *items = usage->gpus.items;
    json_t *array = json_array();
    for (size_t i = 0; i < usage->gpus.count; i++)
        (void)json_array_append_new(array, json_text_seconds((int64_t)items[i].idle_ms));
    return array;
}

json_t *json_usage_write(const struct job_usage *usage, bool is_whole)
{
    if (usage == NULL)
        return json_null();
    const struct {
        const char *name;
        json_t *value;
    } rows[] = {
        { "sampled_seconds", json_text_seconds((int64_t)usage->sampled_ms) },
        { "utilization", thousandths(usage_utilization_milli(usage)) },
        { "utilization_peak", thousandths(usage_utilization_peak_milli(usage)) },
        { "gpu_memory_peak_bytes", number(usage_gpu_memory_peak(usage)) },
        { "gpu_memory_bytes", number(usage_gpu_memory_size(usage)) },
        { "energy_joules", thousandths(usage_energy_mj(usage)) },
        { "memory_peak_bytes", number(usage_memory_peak(usage)) },
        { "idle_gpu_seconds", json_text_seconds((int64_t)usage->idle_gpu_ms) },
        { "idle_since", json_text_time(usage->idle_since_ms) },
        { "idle_s", json_text_seconds((int64_t)usage->idle_ms) },
        { "gpus_idle_s", gpus(usage) },
        { "first_use_seconds", thousandths(usage_first_use_ms(usage)) },
        { "share", json_text_string(usage->share) },
        { "share_why", json_text_string(usage->share_why) },
        { "gpu_memory_cap_bytes",
            usage->gpu_memory_cap != 0 ? json_integer((json_int_t)usage->gpu_memory_cap) : json_null() },
        { "gpu_memory_over_bytes",
            usage->gpu_memory_over != 0 ? json_integer((json_int_t)usage->gpu_memory_over) : json_null() },
        { "stray_gpus", json_text_string(usage->stray) },
        { "xid", usage->xid != 0 ? json_integer(usage->xid) : json_null() },
        { "fault", json_text_string(usage->fault) },
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        (void)json_object_set_new(object, rows[i].name, rows[i].value);
    if (!is_whole)
        return object;
    (void)json_object_set_new(object, "bucket_seconds", json_integer(usage->bucket_s));
    (void)json_object_set_new(object, "timeline", timeline(usage));
    (void)json_object_set_new(object, "tail", json_text_string(usage->tail));
    return object;
}
