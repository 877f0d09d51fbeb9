/* SPDX-License-Identifier: MIT */
/* Processes of jobs on this machine that the caller may inspect. */
#pragma once

#include "base/error.h"
#include "cli/api/client.h"

/* "listpids [JOB[.STEP] [NODE]]": a line for each process; the exit status, or a negative errno. */
int scontrol_list_pids(int argc, char **argv, struct error *err);

/* "pidinfo PID": its job, when that ends, and the remaining seconds. */
int scontrol_pid_info(struct client *client, const char *text, struct error *err);
