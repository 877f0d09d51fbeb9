/* SPDX-License-Identifier: MIT */
/* The data about GPUs in the spool entry of an attempt that started early. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/launch/launcher.h"
#include "job/launch.h"

/* True if it has never had its GPUs. */
bool grant_is_due(const struct launcher *launcher, const struct spool_id *id);

/* Allows it to open them by that order, and writes the result into its entry. Idempotent. Returns 0 or a
 * negative errno with a sentence: it continues to wait; -ENOTRECOVERABLE: it may be able to open them
 * already, and must end before others get them. */
int grant_make(
    const struct launcher *launcher, const struct spool_id *id, uint32_t number, struct error *err);

/* For how long a process of it had waited for a GPU when it was given them; 0: none had, or it was not. */
int64_t grant_waited_ms(const struct launcher *launcher, const struct spool_id *id);
