/* SPDX-License-Identifier: MIT */
/* Values of options as they are written for Slurm. `what` names the option in the sentence: "--time". */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SLURM_NO_LIMIT (-1)

/* Seconds of "30", "30:00", "1:30:00", "2-0", "2-0:30", "2-0:30:00": a bare number is minutes. "0" and
 * "UNLIMITED" are SLURM_NO_LIMIT. */
int slurm_parse_time(const char *what, const char *value, int64_t *ret_seconds, struct error *err);

/* "2", "h200:2" or "h200". *ret_model is NULL for any; the caller frees it. */
int slurm_parse_gpus(
    const char *what, const char *value, int64_t *ret_count, char **ret_model, struct error *err);

/* The same of "gpu:2", "gres:gpu:h200:2", "none". */
int slurm_parse_gres(const char *value, int64_t *ret_count, char **ret_model, struct error *err);

/* Bytes of "4G", "500", "500M", "1T", "64K": a bare number is MiB. 0 is all memory of a node. */
int slurm_parse_memory(const char *what, const char *value, uint64_t *ret_bytes, struct error *err);

/* The moment as our options have it: "now+2hours", "teatime", "16:00", "12/26/26-08:00". What is written as
 * we write it, or not at all, stays. The caller frees it. */
char *slurm_moment(const char *value);

/* The name of a file with Slurm's codes in ours. The caller frees it. */
char *slurm_path(const char *value);
