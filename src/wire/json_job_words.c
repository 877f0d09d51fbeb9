/* SPDX-License-Identifier: MIT */
/* Words and lists used in a job's object, in events and in ranks. */
#include "wire/json_job.h"
#include "wire/json_text.h"

const char *json_job_end_state(enum job_end end, int32_t exit_code)
{
    if (end == END_CANCELLED)
        return "cancelled";
    if (end == END_RELEASED)
        return "done";
    return end == END_EXIT && exit_code == 0 ? "done" : "failed";
}

const char *json_job_hold(uint32_t hold)
{
    if (hold & HOLD_ADMIN)
        return "admin";
    return hold & HOLD_USER ? "user" : NULL;
}

json_t *json_job_grants(const struct record_list *grants)
{
    json_t *array = json_array();
    const struct gpu_grant *items = grants->items;
    for (size_t i = 0; i < grants->count; i++) {
        const struct gpu_grant *grant = &items[i];
        json_t *object = json_object();
        (void)json_object_set_new(object, "index", json_integer(grant->index));
        (void)json_object_set_new(object, "uuid", json_text_string(grant->uuid));
        (void)json_object_set_new(object, "memory", json_integer((json_int_t)grant->memory));
        (void)json_object_set_new(object, "shared", json_boolean(grant->slot != 0));
        (void)json_object_set_new(
            object, "share", grant->share != 0 ? json_integer(grant->share) : json_null());
        (void)json_object_set_new(object, "node", json_text_string(grant->node));
        (void)json_array_append_new(array, object);
    }
    return array;
}
