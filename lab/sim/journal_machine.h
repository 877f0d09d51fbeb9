/* SPDX-License-Identifier: MIT */
/* The machine on which a journal was written: its nodes, and the settings of its scheduler. */
#pragma once

#include "base/error.h"
#include "lab/sim/nodes.h"
#include "sched/sched.h"

/*
 * Reads from the journal `path` the nodes that it names, each as it was last up, and the settings that were
 * last in force. -EINVAL: it is not a journal, or contains no node.
 */
int journal_machine_read(
    const char *path, struct sim_nodes *nodes, struct sched_settings *settings, struct error *err);
