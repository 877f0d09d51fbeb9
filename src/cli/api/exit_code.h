/* SPDX-License-Identifier: MIT */
/* Exit statuses: for mgpu's own failures, and for jobs it waited for. */
#pragma once

#include <jansson.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_PARTLY = 1, // failed, or partly failed
    EXIT_USAGE = 2,
    EXIT_MISSING = 3, // no such job, GPU or node
    EXIT_REFUSED = 4, // permission denied
    EXIT_UNREACHABLE = 5,
    EXIT_WRONG_STATE = 6, // for example, already ended
    EXIT_TIMEOUT = 124,
    EXIT_SELF = 125, // failure of mgpu itself in a verb that exits with its job's status
    EXIT_SIGNAL_BASE = 128,
};

/* The status for a negative errno of a verb. */
int exit_code_of_error(int code);

/* The status for an ended job: its own, 128 + signal, or 125 if unknown. */
int exit_code_of_job(const json_t *job);
