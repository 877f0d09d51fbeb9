/* SPDX-License-Identifier: MIT */
/* Who a process is: a pid is only a name together with its start time and the boot it belongs to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOOT_ID_SIZE 37 // 36 characters and the closing NUL

/* /proc/sys/kernel/random/boot_id, which is new at every boot. Returns 0 or a negative errno. */
int process_boot_id(char boot_id[BOOT_ID_SIZE]);

/* Field 22 of /proc/PID/stat in clock ticks since boot, 0 when the process is gone. */
uint64_t process_start_time(pid_t pid);

/* True while the process of that pid and start time exists (a zombie exists). */
bool process_is_alive(pid_t pid, uint64_t start_time);

/* pidfd_open(2), checked against the start time so that a reused pid is never opened: -ESRCH then. */
int process_open(pid_t pid, uint64_t start_time);

/* Sends a signal through a pidfd (pidfd_send_signal(2)). */
int process_signal(int pidfd, int signal);
