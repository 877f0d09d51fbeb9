/* SPDX-License-Identifier: MIT */
#include "wire/json_ranks.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/json_job.h"
#include "wire/json_text.h"

/* From the record of an ended job. */
static struct json_rank rank_of_record(const struct job *job, size_t rank)
{
    const struct job_node *node = job_node(job, rank);
    enum job_end end = (enum job_end)node->end;
    bool has_exit = job->state == JOB_DONE && end > END_NONE && end < END_KINDS;
    return (struct json_rank){
        .state = has_exit                 ? json_job_end_state(end, node->exit_code)
                 : job->state == JOB_DONE ? "returned"
                                          : "starting",
        .log_path = node->log_path,
        .has_exit = has_exit,
        .end = end,
        .exit_code = node->exit_code,
    };
}

json_t *json_ranks_write(const struct job *job, const struct json_rank *live)
{
    if (!job_is_wide(job))
        return json_null();
    json_t *array = json_array();
    _cleanup_free_ size_t *gpus = job_count_gpus(job);
    for (size_t rank = 0; rank < job_node_count(job); rank++) {
        struct json_rank one = live != NULL ? live[rank] : rank_of_record(job, rank);
        json_t *object = json_object();
        (void)json_object_set_new(object, "rank", json_integer((json_int_t)rank));
        (void)json_object_set_new(object, "node", json_text_string(job_node_name(job, rank)));
        (void)json_object_set_new(object, "gpus", json_integer((json_int_t)gpus[rank]));
        (void)json_object_set_new(object, "state", json_string(one.state));
        (void)json_object_set_new(
            object, "ended_by", one.has_exit ? json_string(job_end_name(one.end)) : json_null());
        (void)json_object_set_new(
            object, "exit_code", one.has_exit ? json_integer(one.exit_code) : json_null());
        (void)json_object_set_new(object, "log", json_text_string(one.log_path));
        (void)json_object_set_new(object, "unreachable_since", json_text_time(one.unreachable_ms));
        (void)json_array_append_new(array, object);
    }
    return array;
}
