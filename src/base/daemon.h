/* SPDX-License-Identifier: MIT */
/* What every daemon does when it starts. */
#pragma once

/* Removes variables that could steer libraries or shells (LD_*, BASH_ENV, ...); keeps a fixed list. */
void daemon_clean_environment(void);

/* If started as root, makes this process the last choice of the kernel's OOM killer, as systemd would. Jobs
 * do not inherit this. */
void daemon_spare_from_oom(void);

/* Notifies the service manager as sd_notify(3) does: one datagram to NOTIFY_SOCKET. Does nothing if that is
 * not set. */
void daemon_notify(const char *assignments);

/* Notifies it that the daemon has started, with this status. */
void daemon_notify_ready(const char *status);
