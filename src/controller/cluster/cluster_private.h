/* SPDX-License-Identifier: MIT */
/* For the files of this folder. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "controller/cluster/cluster.h"
#include "controller/cluster/cluster_log.h"
#include "controller/cluster/curl_library.h"
#include "controller/cluster/etcd.h"
#include "controller/cluster/leadership.h"

struct cluster {
    const struct curl_library *curl;
    struct etcd_settings settings;
    char *name, *store_dir;
    char *address, *nodes_address;
    char *leader_text; // "NAME ADDRESS"
    int64_t lease_ms;
    atomic_bool is_stopping;
    pthread_mutex_t mutex; // protects the status, and is the mutex of the threads' waits
    pthread_cond_t wake;
    struct cluster_status status;
    bool is_news;            // the watcher has seen a change
    atomic_bool is_watching; // the watcher sees changes
    bool has_namesake;       // another controller has this one's name, and stays
    atomic_bool may_lead;    // no controller at another address has reported this one's name
    pthread_t follower, snapshots, reporter, watcher;
    bool has_follower, has_snapshots, has_reporter, has_watcher;
    atomic_bool is_watch_over, has_identity;
    int eventfd;                   // a standby's
    struct leadership *leadership; // written by the follower before it ends
    struct etcd *log_etcd;         // of the store's thread
    const char *_Atomic trouble;   // of the log
    atomic_ullong appended;        // bytes since the latest snapshot
    struct store_log_writer writer;
};

/* Has another controller had this one's name for so long that it is no trace of this one before a restart? */
bool cluster_has_namesake(struct cluster *cluster);

/* follow.c: the standby's thread. */
void *cluster_follower(void *arg);

/* members.c: a controller's report about itself and etcd. */
void *cluster_reporter(void *arg);

/* members.c: parses the report of another controller. False: it is invalid. */
bool cluster_member_read(const void *bytes, size_t length, struct cluster_member *ret);

/* members.c: the problem that a member of etcd reports, "": none. A constant text. */
const char *cluster_server_trouble(const json_t *answer);

/* identity.c: writes the keys in etcd to DIR: 1, or 0 if etcd has none yet. */
int cluster_identity_read(struct etcd *etcd, const char *dir, struct error *err);

/* watch.c: wakes the standby's thread. */
void *cluster_watcher(void *arg);

/* Waits that long, until the watcher has seen something, or until cluster_stop(): then true. */
bool cluster_wait_for_news(struct cluster *cluster, int64_t wait_ms);

/* snapshots.c: the leader's thread. */
void *cluster_snapshotter(void *arg);

/* snapshots.c: writes one now. Revision 0 founds the cluster. */
int cluster_snapshot(struct cluster *cluster, struct etcd *etcd, int64_t revision, const char *instance,
    uint64_t *ret_bytes, struct error *err);

/* Waits that long, or until cluster_stop(): then true. */
bool cluster_wait(struct cluster *cluster, int64_t wait_ms);
