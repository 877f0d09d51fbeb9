/* SPDX-License-Identifier: MIT */
/* Values of options in Slurm's syntax. `what` names the option in messages: "--time". */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SLURM_NO_LIMIT 0

/* Parses "30", "30:00", "1:30:00", "2-0", "2-0:30" or "2-0:30:00" into seconds: a bare number is minutes.
 * Zero in any form, "-1", "UNLIMITED" and "INFINITE" are SLURM_NO_LIMIT. */
int slurm_parse_time(const char *what, const char *value, int64_t *ret_seconds, struct error *err);

/* Parses "2", "h200:2" or "h200". *ret_model is NULL for any; the caller frees it. */
int slurm_parse_gpus(
    const char *what, const char *value, int64_t *ret_count, char **ret_model, struct error *err);

/* The same for "gpu:2", "gres:gpu:h200:2", "none", and a list of these; other resources are refused unless
 * their number is 0. */
int slurm_parse_gres(const char *value, int64_t *ret_count, char **ret_model, struct error *err);

/* Parses "4G", "500", "500M", "1T" or "64K" into bytes: a bare number is MiB. 0 is all memory of a node. */
int slurm_parse_memory(const char *what, const char *value, uint64_t *ret_bytes, struct error *err);

/* The indexes of an array as mgpu takes them, in order and each once: of "[1-3]", "1,1,2", "1,,3%0" and
 * "1-3,2-4". Empty if the value has no index and no limit; a text that is no list is returned as it is. The
 * caller frees it. */
char *slurm_array_indexes(const char *value);

/* Converts Slurm's codes in a file name to mgpu's. The caller frees it. */
char *slurm_path(const char *value);
