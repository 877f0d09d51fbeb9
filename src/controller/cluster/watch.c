/* SPDX-License-Identifier: MIT */
/*
 * A thread of a standby that holds a watch of etcd open, on the leader's key and the log. What it receives is
 * not interpreted: any event makes the follower check now. Nothing therefore depends on a watch being
 * complete. Without a watch, the follower checks more often.
 */

#include "base/log.h"
#include "base/memory.h"
#include "controller/cluster/cluster_private.h"

#define WATCH_MS 60000 // then the watch is started again: a connection may be dead without any sign
#define RETRY_MS 2000

static void note(struct cluster *cluster, bool is_watching)
{
    (void)pthread_mutex_lock(&cluster->mutex);
    atomic_store(&cluster->is_watching, is_watching);
    cluster->is_news = true;
    (void)pthread_cond_broadcast(&cluster->wake);
    (void)pthread_mutex_unlock(&cluster->mutex);
}

static void on_bytes(void *arg)
{
    note(arg, true);
}

static bool may_continue(void *arg)
{
    struct cluster *cluster = arg;
    return !atomic_load(&cluster->is_stopping) && !atomic_load(&cluster->is_watch_over);
}

void *cluster_watcher(void *arg)
{
    struct cluster *cluster = arg;
    struct etcd *etcd = etcd_new(cluster->curl, &cluster->settings);
    const struct etcd_watching watching = { on_bytes, may_continue, cluster };
    while (may_continue(cluster)) {
        struct error err = { 0 };
        /* The keys "leader" and "log/..." are adjacent. */
        int r = etcd_watch(etcd, KEY_LEADER, "log0", WATCH_MS, &watching, &err);
        if (r == 0)
            continue;
        note(cluster, false);
        if (may_continue(cluster))
            log_debug("no watch of etcd: %s", err.message);
        (void)cluster_wait(cluster, RETRY_MS);
    }
    etcd_free(etcd);
    return NULL;
}
