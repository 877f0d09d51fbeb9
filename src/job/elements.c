/* SPDX-License-Identifier: MIT */
/*
 * The record of an array counts its elements as they end (`on_member` of job.c), so these numbers do not
 * depend on which elements are listed, in memory or still kept. Elements not yet split off at a stop of the
 * whole array never became jobs: they are the rest of the sum, and ended like their array.
 */
#include "job/elements.h"

#include "job/array.h"

static uint32_t size_of(const char *text)
{
    struct array array = { 0 };
    if (text == NULL || text[0] == '\0' || parse_array(text, &array, NULL) < 0)
        return 0;
    uint32_t size = array_size(&array);
    array_clear(&array);
    return size;
}

struct job_elements job_elements(const struct job *job)
{
    if (!job_is_array(job))
        return (struct job_elements){ 0 };
    struct job_elements elements = {
        .all = size_of(job->ask->array),
        .waiting = size_of(job->array_left),
        .open = job->array_open,
        .done = job->array_done,
        .failed = job->array_failed - job->array_cancelled,
        .cancelled = job->array_cancelled,
    };
    uint32_t known = elements.waiting + elements.open + job_elements_ended(&elements);
    uint32_t given_up = elements.all > known ? elements.all - known : 0;
    enum job_end end = job->end != END_NONE ? job->end : job->stop_reason;
    *(end == END_CANCELLED ? &elements.cancelled : &elements.failed) += given_up;
    return elements;
}
