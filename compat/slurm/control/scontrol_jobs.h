/* SPDX-License-Identifier: MIT */
/* What scontrol does to jobs, and waits for. All return the exit status, or a negative errno. */
#pragma once

#include "base/error.h"
#include "cli/api/client.h"

/* "hold", "release", "requeue", "suspend" and others: `action` is that of the API. */
int scontrol_act(
    struct client *client, const char *word, const char *action, int argc, char **argv, struct error *err);

/* "top JOB[,JOB...]": they are considered before the caller's other jobs. */
int scontrol_top(struct client *client, int argc, char **argv, struct error *err);

/* "wait_job JOB": until it has its nodes. */
int scontrol_wait(struct client *client, int argc, char **argv, struct error *err);

/* "completing": jobs that are ending, and their nodes. */
int scontrol_completing(struct client *client, struct error *err);
