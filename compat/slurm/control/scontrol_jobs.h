/* SPDX-License-Identifier: MIT */
/* Actions of scontrol on jobs, and waiting for them. All return the exit status, or a negative errno. */
#pragma once

#include "base/error.h"
#include "cli/api/client.h"

/* "hold", "release", "requeue", "suspend" and others: `action` is that of the API. */
int scontrol_act(
    struct client *client, const char *word, const char *action, int argc, char **argv, struct error *err);

/* "top JOB[,JOB...]": these jobs are considered before the caller's other jobs. */
int scontrol_top(struct client *client, int argc, char **argv, struct error *err);

/* "wait_job JOB": waits until it has its nodes. */
int scontrol_wait(struct client *client, int argc, char **argv, struct error *err);

/* "completing": jobs that are ending, and their nodes. */
int scontrol_completing(struct client *client, struct error *err);
