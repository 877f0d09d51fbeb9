/* SPDX-License-Identifier: MIT */
/* Parked attempts of a modelled node: what agent/park does there. Its helper processes outlive the agent. */
#pragma once

#include "node.h"

/* It runs, and no order about it is being carried out. */
bool node_is_back(const struct spooled *entry);

/* The effect `park` of the agent's core. */
void node_park(void *arg, const struct message_park *order);
