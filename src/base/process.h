/* SPDX-License-Identifier: MIT */
/* The identity of a process: a pid is unique only together with its start time and its boot. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOOT_ID_SIZE 37 // 36 characters and the terminating NUL

/* Reads /proc/sys/kernel/random/boot_id, which changes at every boot. Returns 0 or a negative errno. */
int process_boot_id(char boot_id[BOOT_ID_SIZE]);

/* Field 22 of /proc/PID/stat, in clock ticks since boot; 0 if the process does not exist. */
uint64_t process_start_time(pid_t pid);

/* True while the process with this pid and start time exists, also as a zombie. */
bool process_is_alive(pid_t pid, uint64_t start_time);

/* The time of a thread since it began, in nanoseconds, running or waiting for a
 * processor. */
struct process_times {
    uint64_t ran_ns, waited_ns;
    bool is_runnable; // now: it runs, or waits for a processor
};

/* Times of a thread (`tid` is the pid for the first). Returns 0 or a negative errno; -ENOENT also where the
 * kernel does not count them. */
int process_read_times(pid_t pid, pid_t tid, struct process_times *ret);

/* pidfd_open(2) with a check of the start time, so a reused pid is never opened (-ESRCH). */
int process_open(pid_t pid, uint64_t start_time);

/* Sends a signal through a pidfd (pidfd_send_signal(2)). */
int process_signal(int pidfd, int signal);
