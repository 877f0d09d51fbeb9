/* SPDX-License-Identifier: MIT */
/* Waiting until nothing runs any more on GPUs or a node that were taken out of use. */
#pragma once

#include <jansson.h>

#include "base/error.h"
#include "cli/options/call.h"

/* Until no job has one of these GPUs ("0", "node:0"). 0, or a negative errno. */
int maintenance_wait_gpus(struct call *call, const json_t *names, struct error *err);

/* Returns when no process of mgpu has the GPUs of `names` open any more. -EHOSTDOWN: a node is not there to
 * tell, -ETIMEDOUT: it takes too long. */
int maintenance_wait_released(struct call *call, const json_t *names, struct error *err);

/* Until no job is on this node. */
int maintenance_wait_node(struct call *call, const char *node, struct error *err);
