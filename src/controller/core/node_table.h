/* SPDX-License-Identifier: MIT */
/* The known nodes, by name and by link. */
#pragma once

#include "controller/core/core.h"

struct core_node *core_find_node(const struct core *core, const char *name);
struct core_node *core_find_link(const struct core *core, uint32_t link); // up, by its link
struct core_node *core_add_node(
    struct core *core, const char *name); // existing, or created without any report
/* Orders the attempts of its HELLO for core_find_known(). */
void core_sort_known(struct core_node *node);
/* The entry of its HELLO for this rank of the job's current attempt; NULL: there is none. */
const struct known_attempt *core_find_known(
    const struct core_node *node, const struct job *job, uint32_t rank);
/* True if two boot ids of a node are of the same boot, whether with the same spool or not. */
bool core_is_same_boot(const char *id, const char *other);
/* The node's report about this feature (agent/confine/node_features.c); NULL: none. */
const struct node_feature *core_find_feature(const struct core_node *node, const char *name);
void core_touch_node(struct core *core, struct core_node *node); // it has sent a message
void core_ack_node(struct core *core, struct core_node *node);   // acknowledges its messages
