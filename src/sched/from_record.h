/* SPDX-License-Identifier: MIT */
/* Converts stored data (job records, changes of the cluster) to the scheduler's form. The controller's start
 * and the replay of a journal share this code, so that their results are the same. */
#pragma once

#include "job/cluster_change.h"
#include "job/job.h"
#include "sched/sched.h"

/* The job's allocation in terms of the cluster; its nodes need not have reported yet. The caller clears
 * it. */
void allocation_of_job(struct cluster *cluster, const struct job *job, struct allocation *ret);

/* The GPUs of its node on which the parked job may return, "0,2": its own and those of the same model; NULL:
 * only its own. The caller frees it. */
char *park_places_of_job(const struct cluster *cluster, const struct job *job);

/* For a job that the scheduler has parked or may park by its own rule: adds to `spec` how long the job has
 * run and been parked and, if it is parked now, since when, and the GPUs that it left: `left`, which the
 * caller clears. */
void park_times_of_job(struct cluster *cluster, const struct job *job, int64_t now_ms,
    struct sched_job_spec *spec, struct allocation *left);
/* The request of such a job while it is parked; the texts are those of its own request. */
void park_owed_ask(const struct job *job, struct job_ask *ret);
/* The start of an active job for the scheduler, which excludes parked time. 0: it has not started. */
int64_t park_run_since(const struct job *job, int64_t now_ms);
/* True if, according to its record, the scheduler may park this waiting or running job by its own rule.
 */
bool park_is_permitted(const struct cluster *cluster, const struct job *job);
/* True if this is a waiting job which, according to its record, could be parked and started again: it borrows
 * GPUs that are owed to parked jobs if its command refuses to be parked. */
bool park_may_borrow(const struct cluster *cluster, const struct job *job);
/* The reason why not, as a sentence without its full stop; NULL: it may. */
const char *park_why_not(const struct cluster *cluster, const struct job *job);

/* Sets the node up with the hardware of a CHANGE_NODE_UP. The caller sets pauses and drains again and touches
 * the node. */
struct cluster_node *cluster_take_node(struct cluster *cluster, const struct cluster_change *change);

/* The reservation of a CHANGE_RESERVE that lists its GPUs as devices. The caller clears it, also after an
 * error. */
int reservation_of_change(struct cluster *cluster, const struct cluster_change *change,
    struct sched_reservation *ret, struct error *err);

/* Parses "1000,1001" into uids. */
int reservation_read_users(struct sched_reservation *reservation, const char *text, struct error *err);
void reservation_clear(struct sched_reservation *reservation);
