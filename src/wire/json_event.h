/* SPDX-License-Identifier: MIT */
/* An event as the API shows it: in /events and in the history of one job. */
#pragma once

#include <jansson.h>

#include "job/job.h"
#include "wire/usernames.h"

/*
 * {"seq","type","job","attempt","at","state", ...what this type adds}. `job` is the job after the event; NULL
 * when the event is read back from the store: "state" is then null where it depends on what came before.
 * Nothing in it tells of the command, its environment or its files. The caller owns the result.
 */
json_t *json_event_write(const struct job_event *event, const struct job *job, struct usernames *names);
