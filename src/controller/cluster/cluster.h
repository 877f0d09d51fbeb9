/* SPDX-License-Identifier: MIT */
/*
 * One of several controllers (mgpud --cluster). It begins as a standby: a thread applies the log in etcd to
 * this machine's store. When no controller leads and the log has been applied to its end, it becomes the
 * leader; then mgpud opens the store and serves as a single mgpud does, with every transaction appended to
 * the log first. A leader that can no longer be certain of being the only one exits, and is restarted as a
 * standby.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/store_replica.h"

struct cluster;

struct cluster_options {
    const char *etcd;            // etcd://...
    const char *ca, *cert, *key; // files, or NULL
    const char *name;            // of this controller
    const char *address;         // where clients reach its API
    const char *nodes_address;   // where nodes reach it
    const char *store_dir;       // exists
    int64_t lease_ms;
};

#define CLUSTER_MEMBERS_MAX 9U
#define CLUSTER_SERVERS_MAX 16U

/* A controller, as it reports itself. Texts that are too long or not plain are empty. */
struct cluster_member {
    char name[128], api[200], nodes[200], version[32];
    bool is_leading;
    uint64_t entry; // last entry of its log; some seconds old
    char trouble[200];
};

/* A member of etcd. */
struct cluster_server {
    char url[256];
    bool is_up;
    int64_t used_bytes;
    char trouble[256]; // empty: none
};

struct cluster_status {
    bool is_leading;
    struct store_position position;  // of a standby
    int64_t checked_ms;              // boot clock: when a standby last had all of the log; 0: never
    char leader[256];                // "NAME ADDRESS", empty: there is no leader
    char trouble[512];               // why this controller cannot follow or write, empty: it can
    int64_t lease_ms, lease_left_ms; // of a leader: how long it is certain to be the only one
    struct cluster_member members[CLUSTER_MEMBERS_MAX]; // this one among them
    size_t n_members;
    struct cluster_server servers[CLUSTER_SERVERS_MAX];
    size_t n_servers;
};

/* Loads libcurl. Before the first thread. */
int cluster_open(const struct cluster_options *options, struct cluster **ret, struct error *err);

/* Puts this machine's store, created if missing, into etcd as the beginning of a cluster. 0 also if it is
 * there already; -EEXIST: etcd contains another cluster. */
int cluster_found(struct cluster *cluster, struct error *err);

/* Starts the standby's threads. */
int cluster_follow(struct cluster *cluster, struct error *err);

/* A standby: readable when this controller has become the leader. A leader: when it no longer is. */
int cluster_fd(const struct cluster *cluster);

/* After the standby's fd became readable: ends its thread. The store of this machine is complete and closed.
 */
int cluster_lead(struct cluster *cluster, struct error *err);

/* For store_open_leading(). */
const struct store_log_writer *cluster_writer(struct cluster *cluster);

/* Instead of opening the store: removes the cluster from etcd and makes the store this controller's own. */
int cluster_dissolve(struct cluster *cluster, struct error *err);

/* True once this standby has the keys of the cluster in STORE/tls. */
bool cluster_has_identity(const struct cluster *cluster);

/* The store is open: snapshots are taken to etcd from now on. */
void cluster_begin_snapshots(struct cluster *cluster);

/* True while no other controller can lead; also for NULL, a controller that is the only one. */
bool cluster_is_certain(const struct cluster *cluster);

/* True while etcd has no space for entries. False for NULL. */
bool cluster_is_full(const struct cluster *cluster);

void cluster_read_status(struct cluster *cluster, struct cluster_status *ret);

enum cluster_audience { CLUSTER_FOR_CLIENTS, CLUSTER_FOR_NODES };

/* The addresses of all controllers, "A,B,C", the leader's first; NULL: not known yet. The caller frees it. */
char *cluster_addresses(struct cluster *cluster, enum cluster_audience audience);

/* Stops the threads and resigns leadership, after store_close(). NULL is allowed. */
void cluster_free(struct cluster *cluster);

/* From now on nothing is written; a commit that waits for etcd fails. NULL is allowed. */
void cluster_stop(struct cluster *cluster);
