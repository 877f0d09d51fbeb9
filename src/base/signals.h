/* SPDX-License-Identifier: MIT */
/* Signals by name. */
#pragma once

/* "USR1", "SIGUSR1", "usr1" or "10"; 0 when it is no signal that can be sent to a job. */
int signal_find(const char *text);

/* "USR1"; NULL for one without a name, such as a real-time signal. */
const char *signal_name(int signal);
