/* SPDX-License-Identifier: MIT */
/* Waits until GPUs or a node taken out of use have no running jobs. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/options/call.h"

/* Until no job uses these GPUs ("0", "node:0"). 0, or a negative errno. */
int maintenance_wait_gpus(struct call *call, const json_t *names, struct error *err);

/* Returns when no mgpu process has the GPUs of `names` open any more. -EHOSTDOWN: a node is not connected,
 * -ETIMEDOUT: it takes too long. */
int maintenance_wait_released(struct call *call, const json_t *names, struct error *err);

/* Until no job is on this node. */
int maintenance_wait_node(struct call *call, const char *node, struct error *err);
