/* SPDX-License-Identifier: MIT */
/*
 * Chooses the cgroup v2 below which an instance creates its cgroups. Controllers cannot be enabled below a
 * cgroup with processes, and an mgpud started from a shell shares that of the shell.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* The input of the choice: facts of this machine (place_facts_read()), or of a test. */
struct place_facts {
    const char *mount; // of cgroup v2
    char *own;         // our cgroup, as in /proc/self/cgroup; NULL: unknown
    char *first;       // that of process 1; NULL: unknown
    bool is_root;
    bool is_systemd; // which allows no other process to create cgroups at the top
};

/* Reads them for this process. `mount` is kept. */
void place_facts_read(const char *mount, struct place_facts *ret);
void place_facts_clear(struct place_facts *facts);

/*
 * The cgroup below which an instance belongs, as in /proc/PID/cgroup; the caller frees it. NULL: our own is
 * unknown. It is
 *
 * - our own, if controllers can be enabled in it, if there are none, or if we run inside a job;
 * - the scope that systemd made for this agent (agent/host/scope.h);
 * - as root without systemd, the one at the top; in a container, that of process 1.
 *
 * In the last two cases its own processes are moved into its child "holder". If that fails, or no case
 * applies, it is our own anyway, where v2_enable() reports what is missing.
 */
char *place_choose(const struct place_facts *facts);
