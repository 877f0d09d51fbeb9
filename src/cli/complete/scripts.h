/* SPDX-License-Identifier: MIT */
/* Shell code that calls `mgpu __complete`. */
#pragma once

struct completion_script {
    const char *shell, *try; // the command to try it in the current shell
    const char *text;
};

/* Terminated by a NULL shell. */
extern const struct completion_script completion_scripts[];
