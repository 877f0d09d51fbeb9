/* SPDX-License-Identifier: MIT */
/* Commands in jobs on machines that have joined: their node passes their connections on, and mgpud decides
 * what they may do (docs/decisions/0038-commands-in-jobs.md). */
#pragma once

#include "base/error.h"
#include "controller/core/core.h"

struct request;
struct serve;

/* Sets request->who to the owner of the job, with the rights that --job-access leaves. -EPERM if the node of
 * the connection does not run this attempt, or if there is no such access. */
int job_access_identify(struct request *request, struct error *err);

/* Closes the connections of attempts that have ended, if this event is of their job. */
void job_access_publish(struct serve *serve, const struct job_event *event);
