/* SPDX-License-Identifier: MIT */
/* The steps of a launch that can fail, and their error messages. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/launch.h"
#include "job/start_failure.h"

enum launch_step {
    STEP_NONE,
    STEP_CLONE,
    STEP_STARTED,
    STEP_INIT,
    STEP_SESSION,
    STEP_OOM,
    STEP_LIMITS,
    STEP_GROUPS,
    STEP_GID,
    STEP_UID,
    STEP_PROOF,
    STEP_CWD,
    STEP_LOG_DIRECTORY,
    STEP_LOG,
    STEP_LOG_KIND,
    STEP_LOG_OWNER,
    STEP_REPORT,
    STEP_SPAWN,
    STEP_SHELL,
    STEP_SETUP,
    STEP_EXEC,
    STEP_ENTER,
    STEP_TERMINAL,
    STEP_RUNTIME,
    STEP_MOUNT,
    STEP_SAYING,
    STEP_LATE,
    STEP_ERROR,
    STEP_INPUT,
    STEP_PRIVATE_TMP,
    STEP_LOG_PRIVATE,
    STEP_ERROR_PRIVATE,
    STEP_HOME,
    STEP_EARLY,
    STEPS,
};

/* Why the attempt did not start. `is_output_default`: the output file was not chosen by the user. */
enum start_cause step_cause(enum launch_step step, int error, bool is_output_default);

/* True if the job is retried after this failure. */
bool step_is_transient(enum launch_step step, int error, bool is_output_default);

/* The errno with which exec_search() reports that the file exists but its interpreter or loader is
 * missing. */
#define STEP_NO_INTERPRETER ELIBACC

/* The message for users: "cannot execute nosuchcmd: No such file or directory". Allocates nothing. */
void step_describe(enum launch_step step, int error, const struct launch_spec *spec, const char *log_path,
    char *text, size_t size);

/* The exit status: 125; or, as in a shell, 127 for a missing command and 126 for one that cannot be
 * executed. */
int step_exit_code(enum launch_step step, int error);
