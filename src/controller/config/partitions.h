/* SPDX-License-Identifier: MIT */
/* The section `partitions` of a configuration file. */
#pragma once

#include "base/error.h"
#include "controller/config/options.h"

/* Sets one key of a partition, which is added if it is new. -ENOENT: a user or group that does not exist; the
 * others of the list are kept. */
int partitions_set(struct controller_options *options, const char *name, const char *key, const char *value,
    struct error *err);

/* To be called when all files are read: exactly one partition is the default, and it is the built-in one,
 * SLURM_PARTITION with all nodes, unless the configuration names another. -EINVAL: several defaults. */
int partitions_complete(struct controller_options *options, struct error *err);

/* True if the user may submit to the partition. */
bool partition_admits(const struct core_partition *partition, uint32_t uid);

void partitions_clear(struct controller_options *options);
