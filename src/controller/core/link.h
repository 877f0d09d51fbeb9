/* SPDX-License-Identifier: MIT */
/* The link to a node's agent. */
#pragma once

struct core;
struct core_node;

void core_drop_link(struct core *core, struct core_node *node); // its link is closed
