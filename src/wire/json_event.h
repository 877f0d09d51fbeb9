/* SPDX-License-Identifier: MIT */
/* Events in the API's form: in /events and in the history of a job. */
#pragma once

#include <jansson.h>

#include "job/job.h"
#include "wire/usernames.h"

/*
 * {"seq","type","job","attempt","at","state", ...fields of this type}. "state" is the job's state right after
 * the event. `job` is the current job, possibly some events later; if NULL, "state" is null for the types
 * whose result depends on earlier events. Contains nothing about the command, its environment or its files.
 * The caller owns the result.
 */
json_t *json_event_write(const struct job_event *event, const struct job *job, struct usernames *names);
