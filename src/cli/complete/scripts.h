/* SPDX-License-Identifier: MIT */
/* What makes a shell ask `mgpu __complete` at the key press. */
#pragma once

struct completion_script {
    const char *shell, *try; // how one tries it in the shell at hand
    const char *text;
};

/* Ended by a NULL shell. */
extern const struct completion_script completion_scripts[];
