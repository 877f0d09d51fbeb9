/* SPDX-License-Identifier: MIT */
/* Exit statuses: of mgpu's own failures, and of the jobs it waited for. */
#pragma once

#include <jansson.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_PARTLY = 1, // failed, or failed in part
    EXIT_USAGE = 2,
    EXIT_MISSING = 3, // no such job, GPU or node
    EXIT_REFUSED = 4, // not allowed
    EXIT_UNREACHABLE = 5,
    EXIT_WRONG_STATE = 6, // such as already ended
    EXIT_TIMEOUT = 124,
    EXIT_SELF = 125, // a verb that exits like its job failed itself
    EXIT_SIGNAL_BASE = 128,
};

/* For a negative errno of a verb. */
int exit_code_of_error(int code);

/* For an ended job: its own status, 128 + signal, or 125 when nobody can know it. */
int exit_code_of_job(const json_t *job);
