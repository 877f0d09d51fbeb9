/* SPDX-License-Identifier: MIT */
/* An event as the API shows it: in /events and in the history of one job. */
#pragma once

#include <jansson.h>

#include "job/job.h"
#include "wire/usernames.h"

/*
 * {"seq","type","job","attempt","at","state", ...what this type adds}. "state" is the job's state right after
 * the event. `job` is the job as it is now, some events later perhaps; when it is NULL, "state" is null for
 * the types after which the state depends on what came before. Nothing in it tells of the command, its
 * environment or its files. The caller owns the result.
 */
json_t *json_event_write(const struct job_event *event, const struct job *job, struct usernames *names);
