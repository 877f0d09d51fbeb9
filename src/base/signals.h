/* SPDX-License-Identifier: MIT */
/* Signals by name. */
#pragma once

/* Accepts "USR1", "SIGUSR1", "usr1" and "10"; 0 if this is no signal that can be sent to a job. */
int signal_find(const char *text);

/* "USR1"; NULL for signals without a name, such as real-time signals. */
const char *signal_name(int signal);
