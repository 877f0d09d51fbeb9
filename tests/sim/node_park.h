/* SPDX-License-Identifier: MIT */
/* Parked attempts of a modelled node: what agent/park does there. Its helper processes outlive the agent. */
#pragma once

#include "node.h"

/* What HELLO says of orders to park the attempt. */
void node_recall_park(const struct node *node, const struct spooled *entry, struct known_attempt *known);

/* Its LAUNCH says whether it starts without its GPUs. */
void node_begin_early(struct spooled *entry, bool is_early);

/* The effect `park` of the agent's core. */
void node_park(void *arg, const struct message_park *order);
