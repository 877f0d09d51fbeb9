/* SPDX-License-Identifier: MIT */
/*
 * A standby. Each step reads the log from the last entry here, inclusive: that entry's id shows that this
 * store and the log have the same history. A store that is behind the log's beginning, or does not fit it, is
 * replaced by the snapshot in etcd and kept aside. A store that is ahead of the log means that etcd has lost
 * what it had acknowledged: it then does nothing, because an administrator has to decide which one is right.
 *
 *   follow ──no leader, all entries applied──> claim the key ──> apply the rest ──> lead
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "controller/cluster/cluster_private.h"

#define INCOMING   "incoming.db"
#define LOOK_MS    1000 // while a watch reports changes; shows that the watch works
#define POLL_MS    200  // without one
#define TROUBLE_MS 1000
#define GATHER_MS  20 // minimum time between two checks, so that consecutive entries are read together
#define CLOSE_LOG  5  // number of entries that is certainly read completely

struct follower {
    struct cluster *cluster;
    struct etcd *etcd;
    struct store_replica *replica; // NULL: not open
    struct cluster_view view;
};

static struct store_position position_of(const struct follower *follower)
{
    return follower->replica != NULL ? store_replica_position(follower->replica)
                                     : (struct store_position){ 0 };
}

static void report(struct follower *follower, bool is_current, const struct error *trouble)
{
    struct cluster *cluster = follower->cluster;
    (void)pthread_mutex_lock(&cluster->mutex);
    struct cluster_status *status = &cluster->status;
    const char *text = trouble != NULL ? trouble->message : "";
    bool is_news = strncmp(status->trouble, text, sizeof(status->trouble) - 1) != 0;
    status->position = position_of(follower);
    if (is_current)
        status->checked_ms = clock_boot_ms();
    (void)snprintf(status->leader, sizeof(status->leader), "%s",
        follower->view.leader != NULL ? follower->view.leader : "");
    (void)snprintf(status->trouble, sizeof(status->trouble), "%.*s", (int)sizeof(status->trouble) - 1, text);
    (void)pthread_mutex_unlock(&cluster->mutex);
    if (is_news && trouble != NULL)
        log_warning(
            "standby: %s%s%s", trouble->message, trouble->hint[0] != '\0' ? " - " : "", trouble->hint);
    else if (is_news)
        log_info("standby: following the log in etcd at entry %" PRIu64, position_of(follower).number);
}

/* Replaces the store here by the snapshot in etcd. */
static int install(struct follower *follower, struct error *err)
{
    const struct cluster *cluster = follower->cluster;
    _cleanup_free_ char *path = xasprintf("%s/" INCOMING, cluster->store_dir);
    store_replica_close(take_ptr(follower->replica));
    (void)unlink(path);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create %s", path);
    int r = cluster_log_get_base(follower->etcd, &follower->view.base, fd, err);
    if (r == 0)
        r = store_replica_install(cluster->store_dir, INCOMING, err);
    if (r < 0) {
        (void)unlink(path);
        return r;
    }
    log_info("the store of this machine is now the snapshot in etcd, at entry %" PRIu64,
        follower->view.base.position.number);
    return store_replica_open(cluster->store_dir, &follower->replica, err);
}

static int open_store(struct follower *follower, struct error *err)
{
    int r = store_replica_open(follower->cluster->store_dir, &follower->replica, err);
    if (r != -ENOENT && r != -EUCLEAN)
        return r;
    if (r == -EUCLEAN)
        log_warning("%s; it is replaced by the snapshot in etcd", err->message);
    return install(follower, err);
}

static int check_cluster(const struct follower *follower, struct error *err)
{
    const struct cluster_view *view = &follower->view;
    const char *prefix = follower->cluster->settings.prefix;
    if (view->cluster == NULL) {
        (void)error_set(err, -ENOENT, "etcd contains no cluster under %s", prefix);
        return error_hint(err, "put the store of one controller there: mgpud --migrate with --cluster");
    }
    if (follower->replica == NULL || strcmp(view->cluster, store_replica_instance(follower->replica)) == 0)
        return 0;
    (void)error_set(err, -EXDEV, "etcd contains another cluster under %s than the one of this store", prefix);
    return error_hint(err, "another cluster needs another prefix: --cluster etcd://HOST/PREFIX");
}

/* 0: entries[*ret] is the next one; 1: the snapshot must be installed. */
static int check_history(const struct follower *follower, size_t *ret, struct error *err)
{
    const struct cluster_view *view = &follower->view;
    struct store_position here = position_of(follower), there = view->base.position;
    *ret = 0;
    if (view->n_entries > 0 && view->entries[0].entry.position.number == here.number) {
        there = view->entries[0].entry.position;
        *ret = 1;
    }
    if (there.number > here.number)
        return 1;
    if (there.number < here.number) {
        (void)error_set(err, -ESTALE,
            "this store has entry %" PRIu64 " of the log, etcd ends before it: etcd has lost data",
            here.number);
        return error_hint(err, "see 'All members of etcd lost' in docs/high-availability.md");
    }
    if (there.id == here.id)
        return 0;
    log_error("the store of this machine has another entry %" PRIu64 " than etcd; it is kept as diverged.db",
        here.number);
    return 1;
}

static int apply_all(struct follower *follower, size_t first, struct error *err)
{
    int r = 0;
    for (size_t i = first; r == 0 && i < follower->view.n_entries; i++)
        r = store_replica_apply(follower->replica, &follower->view.entries[i].entry, err);
    if (r != -EUCLEAN && r != -ESTALE)
        return r;
    log_error("%s; the snapshot in etcd replaces this store, which is kept as diverged.db", err->message);
    return install(follower, err) < 0 ? err->code : 1;
}

/* Reads and applies entries once: 0 if that was the whole log, 1 if more may follow. */
static int step(struct follower *follower, struct error *err)
{
    struct cluster_view *view = &follower->view;
    uint64_t from = position_of(follower).number;
    size_t first = 0;
    cluster_view_clear(view);
    int r = cluster_log_read(follower->etcd, from != 0 ? from : UINT64_MAX, view, err);
    if (r == 0)
        r = check_cluster(follower, err);
    if (r < 0)
        return r;
    if (follower->replica == NULL) {
        r = open_store(follower, err);
        return r < 0 ? r : 1;
    }
    r = check_history(follower, &first, err);
    if (r == 1)
        r = install(follower, err) < 0 ? err->code : 1;
    if (r != 0)
        return r;
    r = apply_all(follower, first, err);
    return r != 0 ? r : view->n_entries > CLOSE_LOG;
}

/* The key is ours, so no other controller appends any more, and the log is complete. */
static int finish(struct follower *follower, const struct leadership *leadership, struct error *err)
{
    int r;
    do
        r = step(follower, err);
    while (r == 1 && leadership_is_certain(leadership));
    if (r < 0)
        return r;
    if (r == 1 || !leadership_is_certain(leadership) ||
        follower->view.leader_revision != leadership_revision(leadership))
        return error_set(err, -ECANCELED, "leadership ended before the log was applied");
    return 0;
}

/* 1: this controller leads. */
static int campaign(struct follower *follower, struct error *err)
{
    struct cluster *cluster = follower->cluster;
    struct leadership *leadership = NULL;
    int r = leadership_take(
        cluster->curl, &cluster->settings, cluster->leader_text, cluster->lease_ms, &leadership, err);
    if (r != 1)
        return r;
    r = finish(follower, leadership, err);
    if (r < 0) {
        leadership_free(leadership);
        return r;
    }
    cluster->leadership = leadership;
    return 1;
}

static void lead(struct follower *follower)
{
    struct cluster *cluster = follower->cluster;
    log_info("this controller leads the cluster from entry %" PRIu64 " on", position_of(follower).number);
    store_replica_close(take_ptr(follower->replica));
    (void)eventfd_write(cluster->eventfd, 1);
}

/* The first leader of a cluster writes the keys when it opens its store. */
static void fetch_identity(struct follower *follower)
{
    struct cluster *cluster = follower->cluster;
    struct error err = { 0 };
    _cleanup_free_ char *dir = xasprintf("%s/tls", cluster->store_dir);
    int r = cluster_identity_read(follower->etcd, dir, &err);
    if (r < 0)
        log_warning("standby: no keys of the cluster: %s", err.message);
    if (r == 1)
        atomic_store(&cluster->has_identity, true);
}

void *cluster_follower(void *arg)
{
    struct cluster *cluster = arg;
    struct follower follower = { .cluster = cluster, .etcd = etcd_new(cluster->curl, &cluster->settings) };
    int64_t wait_ms = 0;
    bool is_leading = false;
    while (!is_leading && !cluster_has_namesake(cluster) && !cluster_wait_for_news(cluster, wait_ms)) {
        struct error err = { 0 };
        int r = step(&follower, &err);
        bool is_current = r == 0;
        if (r == 0 && follower.view.leader == NULL && atomic_load(&cluster->may_lead) &&
            (r = campaign(&follower, &err)) == 1)
            is_leading = true;
        if (is_current && !is_leading && !atomic_load(&cluster->has_identity))
            fetch_identity(&follower);
        wait_ms = r < 0 ? TROUBLE_MS : r == 1 ? 0 : atomic_load(&cluster->is_watching) ? LOOK_MS : POLL_MS;
        report(&follower, is_current, r < 0 ? &err : NULL);
        if (!is_leading && r == 0)
            (void)cluster_wait(cluster, GATHER_MS);
    }
    if (is_leading)
        lead(&follower);
    else if (cluster_has_namesake(cluster))
        (void)eventfd_write(cluster->eventfd, 1); // cluster_lead() reports the reason
    store_replica_close(follower.replica);
    cluster_view_clear(&follower.view);
    etcd_free(follower.etcd);
    return NULL;
}
