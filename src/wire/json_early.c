/* SPDX-License-Identifier: MIT */
#include "wire/json_early.h"

#include "wire/json_text.h"

json_t *json_early_park(const struct json_job_view *view)
{
    if (job_is_early(view->job) && job_park(view->job)->phase != PARK_PARKED)
        return json_string(park_cause_name(PARK_EARLY));
    return json_text_string(
        (view->job->state == JOB_DONE) ? NULL : park_phase_name(job_park(view->job)->phase));
}

json_t *json_early_seconds(const struct json_job_view *view)
{
    int64_t early_ms = job_early_ms(view->job, view->now_ms);
    return early_ms > 0 ? json_text_seconds(early_ms) : json_null();
}

json_t *json_early_parked_at(const struct json_job_view *view)
{
    return json_text_time(job_park(view->job)->is_early == 0 ? job_park(view->job)->since_ms : 0);
}

json_t *json_early_parked_s(const struct json_job_view *view)
{
    int64_t parked_ms = job_parked_ms(view->job, view->now_ms) - job_early_ms(view->job, view->now_ms);
    return parked_ms > 0 ? json_text_seconds(parked_ms) : json_null();
}
