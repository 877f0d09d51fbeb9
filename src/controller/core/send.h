/* SPDX-License-Identifier: MIT */
/* Messages about a job to the node of one rank. */
#pragma once

#include "controller/core/core.h"

struct core_entry;

/* The last messages to the node of a rank, so that an event of one rank of a thousand does not resend the
 * same to the others. */
struct core_sent {
    uint32_t stop_link, terms_link; // 0: nothing
    struct message_stop stop;
    struct message_update terms;
};

/* True if every node of the job has an address that the others can reach; else *ret_node is one that has
 * none. */
bool core_can_meet(const struct core *core, const struct job *job, const char **ret_node);
/* struct launch_peer of each node, in order of rank; the caller frees the list with core_free_peers(). */
struct record_list core_list_peers(const struct core *core, const struct job *job);
void core_free_peers(struct record_list *peers);
/* `peers`: NULL for a job on one node. False: its spec is not in memory and was requested from the store. */
bool core_send_launch(struct core *core, struct core_entry *entry, uint32_t rank, uint32_t link,
    const struct record_list *peers);
/* PREPARE for the next attempt of a waiting job, with these GPUs; results as for core_send_launch(). */
bool core_send_prepare(
    struct core *core, struct core_entry *entry, const struct record_list *gpus, uint32_t link);
/* `sent`: sends nothing that this link has already carried; NULL: sends it again. */
void core_send_stop(
    struct core *core, const struct core_entry *entry, uint32_t rank, uint32_t link, struct core_sent *sent);
/* Asks the node to give the attempt back if it has not begun. */
void core_send_recall(const struct core *core, const struct job *job, uint32_t link);
/* PARK of this rank, with the job's latest number; `bytes_max`: of GPU memory. */
void core_send_park(struct core *core, const struct job *job, uint32_t rank, enum park_action action,
    uint64_t bytes_max, uint32_t link);
/* `sent`: as for core_send_stop(). */
void core_send_update(
    struct core *core, const struct job *job, uint32_t rank, uint32_t link, struct core_sent *sent);
