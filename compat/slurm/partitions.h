/* SPDX-License-Identifier: MIT */
/* Partitions for sinfo, scontrol and messages of sbatch. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "cli/api/client.h"

/* The partitions of the API. The caller releases the array. */
int slurm_partitions_get(struct client *client, json_t **ret, struct error *err);

bool slurm_partition_has(const json_t *partition, const char *node);

/* "debug,gpu": those that contain the node. The caller frees it. */
char *slurm_partitions_of(const json_t *partitions, const char *node);

/* "1-00:00:00", "infinite", or `otherwise`; the caller frees it. */
char *slurm_partition_time(const json_t *partition, const char *key, const char *otherwise);

/* If a request was refused because of its partitions, replaces the message by Slurm's and returns true;
 * "invalid partition specified" is printed at once. `request` is the one that was sent. */
bool slurm_partition_explain(
    struct client *client, const char *program, const json_t *request, struct error *err);
