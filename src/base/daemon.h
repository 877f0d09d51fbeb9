/* SPDX-License-Identifier: MIT */
/* What a daemon does at its start, whoever started it. */
#pragma once

/* Removes variables that could steer libraries or shells (LD_*, BASH_ENV, ...); keeps a fixed list. */
void daemon_clean_environment(void);

/* Started as root, we are the last that the kernel ends for want of memory, as under systemd. A job does not
 * inherit this. */
void daemon_spare_from_oom(void);

/* Tells the service manager, as sd_notify(3) does: one datagram to NOTIFY_SOCKET. Harmless without one. */
void daemon_notify_ready(const char *status);
