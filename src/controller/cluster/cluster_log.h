/* SPDX-License-Identifier: MIT */
/*
 * The cluster's log in etcd, below one prefix:
 *
 *   cluster               the store's instance
 *   leader                the leading controller, with its lease; its create revision guards every write
 *   log/NUMBER            an entry (16 hexadecimal digits)
 *   part/NUMBER/PART      parts of an entry that is too large for one request, written before it
 *   base                  the latest snapshot: the log begins after it
 *   snapshot/NUMBER/PART  its parts
 *   identity              keys and certificates that nodes know the cluster by
 *   controllers/NAME      what each controller reports of itself, with a lease
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "controller/cluster/etcd.h"
#include "store/store_replica.h"

#define KEY_CLUSTER         "cluster"
#define KEY_LEADER          "leader"
#define KEY_BASE            "base"
#define KEY_IDENTITY        "identity"
#define KEY_CONTROLLERS     "controllers/"
#define KEY_CONTROLLERS_END "controllers0" // '0' follows '/'

/* The text of *trouble while etcd has no space. */
extern const char cluster_log_full[];

#define REQUEST_MS 3000 // for one request to etcd

struct cluster_base {
    struct store_position position; // number 0: there is none
    uint64_t bytes;
    uint32_t parts, crc;
};

/* A consistent part of the log. */
struct cluster_view {
    char *cluster; // NULL: no cluster has been founded
    char *leader;  // its name; NULL: there is no leader
    int64_t leader_revision;
    struct cluster_base base;
    struct cluster_log_entry *entries; // ordered
    size_t n_entries;
};

struct cluster_log_entry {
    struct store_entry entry;
    struct buffer bytes; // of entry.changes
    uint32_t parts;
};

/* Reads entries from number `from` on, some at a time. -EAGAIN: etcd does not answer. */
int cluster_log_read(struct etcd *etcd, uint64_t from, struct cluster_view *ret, struct error *err);
void cluster_view_clear(struct cluster_view *view);

/*
 * Appends an entry as the leader with this revision, and repeats that until the outcome is known, or
 * `may_continue` says no. 0: it is in the log. *trouble is set while etcd takes nothing (to a static text),
 * and NULL again. -ECANCELED: another controller leads, or may_continue said no; the entry may be in the log.
 */
struct cluster_appending {
    struct etcd *etcd;
    int64_t revision;
    bool (*may_continue)(void *arg);
    void *arg;
    const char *_Atomic *trouble;
};
int cluster_log_append(
    const struct cluster_appending *appending, const struct store_entry *entry, struct error *err);

/*
 * Writes a snapshot of the store from a file, guarded by the leader's revision, and removes what it makes
 * superfluous: older snapshots and the log up to it. Revision 0: founds the cluster `instance` instead, if
 * there is none (-EEXIST).
 */
int cluster_log_put_base(struct etcd *etcd, int64_t revision, const char *instance, int fd,
    struct store_position position, struct error *err);

/* Writes the snapshot `base` to a file. -ESTALE: it has been replaced by a newer one. */
int cluster_log_get_base(struct etcd *etcd, const struct cluster_base *base, int fd, struct error *err);
