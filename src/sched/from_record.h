/* SPDX-License-Identifier: MIT */
/* From what is durable (job records, changes of the cluster) to the scheduler's own terms: for the
 * controller's start and for the replay of a journal, which must come to the same. */
#pragma once

#include "job/cluster_change.h"
#include "job/job.h"
#include "sched/sched.h"

/* What the job holds, found in the cluster; its nodes need not have said anything yet. The caller clears it.
 */
void allocation_of_job(struct cluster *cluster, const struct job *job, struct allocation *ret);

/* The node is up with what a CHANGE_NODE_UP tells. Pauses and drains are the caller's to set again; it
 * touches the node then. */
struct cluster_node *cluster_take_node(struct cluster *cluster, const struct cluster_change *change);

/* The reservation of a CHANGE_RESERVE that names its GPUs by devices. The caller clears it, also after an
 * error. */
int reservation_of_change(struct cluster *cluster, const struct cluster_change *change,
    struct sched_reservation *ret, struct error *err);

/* "1000,1001" into uids. */
int reservation_read_users(struct sched_reservation *reservation, const char *text, struct error *err);
void reservation_clear(struct sched_reservation *reservation);
