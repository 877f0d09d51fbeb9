/* SPDX-License-Identifier: MIT */
#include "controller/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "controller/cluster/cluster_private.h"
#include "controller/cluster/etcd_trouble.h"

#define ELECTION_MS       15000 // an election of etcd at its default timeouts takes 1 to 5 s
#define ELECTION_RETRY_MS 200

int cluster_open(const struct cluster_options *options, struct cluster **ret, struct error *err)
{
    struct cluster *cluster = xcalloc(1, sizeof(*cluster));
    cluster->eventfd = -1;
    int r = etcd_settings_parse(options->etcd, &cluster->settings, err);
    if (r == 0 && !store_replica_is_supported())
        r = error_set(err, -ENOTSUP, "--cluster requires an SQLite with its session extension");
    if (r == 0)
        r = curl_library_load(&cluster->curl, err);
    if (r < 0) {
        free(cluster);
        return r;
    }
    cluster->settings.ca = xstrdup(options->ca);
    cluster->settings.cert = xstrdup(options->cert);
    cluster->settings.key = xstrdup(options->key);
    cluster->name = xstrdup(options->name);
    cluster->store_dir = xstrdup(options->store_dir);
    cluster->address = xstrdup(options->address);
    cluster->nodes_address = xstrdup(options->nodes_address);
    cluster->leader_text = xasprintf("%s %s", options->name, options->address);
    cluster->lease_ms = options->lease_ms;
    cluster->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_condattr_t monotonic;
    (void)pthread_mutex_init(&cluster->mutex, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&cluster->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    *ret = cluster;
    r = cluster->eventfd < 0 ? error_set_errno(err, -errno, "cannot create an eventfd") : 0;
    return r == 0 ? etcd_trouble_check(&cluster->settings, err) : r;
}

static int try_to_found(struct cluster *cluster, struct etcd *etcd, struct error *err)
{
    _cleanup_(cluster_view_clear) struct cluster_view view = { 0 };
    struct store_replica *replica = NULL;
    _cleanup_free_ char *instance = NULL;
    int r = cluster_log_read(etcd, UINT64_MAX, &view, err);
    if (r < 0)
        goto out;
    int joined = store_replica_open(cluster->store_dir, &replica, NULL);
    if (view.cluster != NULL) {
        if (joined < 0 || strcmp(view.cluster, store_replica_instance(replica)) != 0)
            r = error_set(
                err, -EEXIST, "etcd already contains a cluster, under %s", cluster->settings.prefix);
        if (r < 0)
            (void)error_hint(err, "to join it, start mgpud without --migrate; another cluster needs another "
                                  "prefix: --cluster etcd://HOST/PREFIX");
        goto out;
    }
    /* A store whose log in etcd was lost begins a new log. */
    store_replica_close(replica);
    replica = NULL;
    r = joined == 0 ? store_replica_found_again(cluster->store_dir, err)
                    : store_replica_found(cluster->store_dir, err);
    if (r == 0)
        r = store_replica_open(cluster->store_dir, &replica, err);
    if (r < 0)
        goto out;
    instance = xstrdup(store_replica_instance(replica));
    store_replica_close(replica);
    replica = NULL;
    r = cluster_snapshot(cluster, etcd, 0, instance, NULL, err);
out:
    store_replica_close(replica);
    return r;
}

/* Each attempt uses the next endpoint. */
int cluster_found(struct cluster *cluster, struct error *err)
{
    struct etcd *etcd = etcd_new(cluster->curl, &cluster->settings);
    int64_t until_ms = clock_boot_ms() + ELECTION_MS;
    size_t failed = 0; // consecutive endpoints that could not be reached
    int r;
    do {
        r = try_to_found(cluster, etcd, err);
        failed = etcd_may_elect(etcd) ? 0 : failed + 1;
    } while (r == -EAGAIN && failed < cluster->settings.endpoints.count && clock_boot_ms() < until_ms &&
             (failed > 0 || !cluster_wait(cluster, ELECTION_RETRY_MS)));
    etcd_free(etcd);
    return r;
}

int cluster_follow(struct cluster *cluster, struct error *err)
{
    int r = -pthread_create(&cluster->follower, NULL, cluster_follower, cluster);
    cluster->has_follower = r == 0;
    cluster->has_watcher = r == 0 && pthread_create(&cluster->watcher, NULL, cluster_watcher, cluster) == 0;
    cluster->has_reporter =
        r == 0 && pthread_create(&cluster->reporter, NULL, cluster_reporter, cluster) == 0;
    return r < 0 ? error_set_errno(err, r, "cannot start a thread") : 0;
}

int cluster_fd(const struct cluster *cluster)
{
    return cluster->leadership != NULL && !cluster->has_follower ? leadership_fd(cluster->leadership)
                                                                 : cluster->eventfd;
}

/* --- the leader's log --- */

static bool may_continue(void *arg)
{
    const struct cluster *cluster = arg;
    return !atomic_load(&cluster->is_stopping) && leadership_is_certain(cluster->leadership);
}

static int append(void *arg, const struct store_entry *entry, struct error *err)
{
    struct cluster *cluster = arg;
    const struct cluster_appending appending = {
        .etcd = cluster->log_etcd,
        .revision = leadership_revision(cluster->leadership),
        .may_continue = may_continue,
        .arg = cluster,
        .trouble = &cluster->trouble,
    };
    int r = cluster_log_append(&appending, entry, err);
    if (r < 0)
        return r;
    (void)atomic_fetch_add(&cluster->appended, entry->length);
    (void)pthread_mutex_lock(&cluster->mutex);
    cluster->status.position = entry->position;
    (void)pthread_mutex_unlock(&cluster->mutex);
    return 0;
}

bool cluster_has_namesake(struct cluster *cluster)
{
    (void)pthread_mutex_lock(&cluster->mutex);
    bool has_one = cluster->has_namesake;
    (void)pthread_mutex_unlock(&cluster->mutex);
    return has_one;
}

int cluster_lead(struct cluster *cluster, struct error *err)
{
    (void)pthread_join(cluster->follower, NULL);
    cluster->has_follower = false;
    atomic_store(&cluster->is_watch_over, true); // the thread ends by itself
    if (cluster->leadership == NULL && cluster_has_namesake(cluster)) {
        (void)error_set(
            err, -EINVAL, "another controller of this cluster is called %s as well", cluster->name);
        return error_hint(err, "give each its own name: --node NAME (mgpu cluster lists them)");
    }
    if (cluster->leadership == NULL)
        return error_set(err, -ECANCELED, "this controller does not lead");
    /* Not if it was elected: earlier status came from it as a standby. */
    (void)pthread_mutex_lock(&cluster->mutex);
    cluster->status.is_leading = true;
    (void)snprintf(cluster->status.leader, sizeof(cluster->status.leader), "%s", cluster->leader_text);
    (void)pthread_mutex_unlock(&cluster->mutex);
    cluster->log_etcd = etcd_new(cluster->curl, &cluster->settings);
    cluster->writer = (struct store_log_writer){ .arg = cluster, .append = append };
    return 0;
}

const struct store_log_writer *cluster_writer(struct cluster *cluster)
{
    return cluster != NULL ? &cluster->writer : NULL;
}

/* In etcd first, so that no other controller can become leader any more. */
int cluster_dissolve(struct cluster *cluster, struct error *err)
{
    struct etcd_txn txn = { 0 };
    _cleanup_(etcd_result_clear) struct etcd_result result = { 0 };
    etcd_txn_if_created_at(&txn, cluster->log_etcd, KEY_LEADER, leadership_revision(cluster->leadership));
    etcd_txn_delete(&txn, cluster->log_etcd, "", "~");
    int r = etcd_commit(cluster->log_etcd, &txn, REQUEST_MS, &result, err);
    if (r == 0 && !result.is_success)
        r = error_set(err, -ECANCELED, "this controller no longer leads the cluster");
    return r == 0 ? store_replica_leave(cluster->store_dir, err) : r;
}

bool cluster_has_identity(const struct cluster *cluster)
{
    return atomic_load(&cluster->has_identity);
}

void cluster_begin_snapshots(struct cluster *cluster)
{
    cluster->has_snapshots = pthread_create(&cluster->snapshots, NULL, cluster_snapshotter, cluster) == 0;
}

bool cluster_is_certain(const struct cluster *cluster)
{
    return cluster == NULL || (cluster->leadership != NULL && leadership_is_certain(cluster->leadership));
}

bool cluster_is_full(const struct cluster *cluster)
{
    return cluster != NULL && atomic_load(&cluster->trouble) == cluster_log_full;
}

/* --- status and end --- */

void cluster_read_status(struct cluster *cluster, struct cluster_status *ret)
{
    const char *trouble = atomic_load(&cluster->trouble);
    (void)pthread_mutex_lock(&cluster->mutex);
    *ret = cluster->status;
    if (ret->trouble[0] == '\0' && cluster->has_namesake)
        (void)snprintf(ret->trouble, sizeof(ret->trouble),
            "another controller is called %s as well: give each its own --node", cluster->name);
    (void)pthread_mutex_unlock(&cluster->mutex);
    if (trouble != NULL)
        (void)snprintf(ret->trouble, sizeof(ret->trouble), "%s", trouble);
    ret->lease_ms = cluster->lease_ms;
    ret->lease_left_ms =
        ret->is_leading && cluster->leadership != NULL ? leadership_left_ms(cluster->leadership) : 0;
}

static bool wait_for(struct cluster *cluster, int64_t wait_ms, bool for_news)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ms % 1000 * 1000000;
    until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&cluster->mutex);
    int rc = 0;
    while (!atomic_load(&cluster->is_stopping) && !(for_news && cluster->is_news) && rc == 0)
        rc = pthread_cond_timedwait(&cluster->wake, &cluster->mutex, &until);
    if (for_news)
        cluster->is_news = false;
    (void)pthread_mutex_unlock(&cluster->mutex);
    return atomic_load(&cluster->is_stopping);
}

bool cluster_wait(struct cluster *cluster, int64_t wait_ms)
{
    return wait_for(cluster, wait_ms, false);
}

bool cluster_wait_for_news(struct cluster *cluster, int64_t wait_ms)
{
    return wait_for(cluster, wait_ms, true);
}

void cluster_stop(struct cluster *cluster)
{
    if (cluster == NULL)
        return;
    (void)pthread_mutex_lock(&cluster->mutex);
    atomic_store(&cluster->is_stopping, true);
    (void)pthread_cond_broadcast(&cluster->wake);
    (void)pthread_mutex_unlock(&cluster->mutex);
}

void cluster_free(struct cluster *cluster)
{
    if (cluster == NULL)
        return;
    cluster_stop(cluster);
    if (cluster->has_follower)
        (void)pthread_join(cluster->follower, NULL);
    if (cluster->has_snapshots)
        (void)pthread_join(cluster->snapshots, NULL);
    if (cluster->has_watcher)
        (void)pthread_join(cluster->watcher, NULL);
    if (cluster->has_reporter)
        (void)pthread_join(cluster->reporter, NULL);
    leadership_free(cluster->leadership);
    etcd_free(cluster->log_etcd);
    closep(&cluster->eventfd);
    (void)pthread_mutex_destroy(&cluster->mutex);
    (void)pthread_cond_destroy(&cluster->wake);
    etcd_settings_clear(&cluster->settings);
    free(cluster->name);
    free(cluster->store_dir);
    free(cluster->address);
    free(cluster->nodes_address);
    free(cluster->leader_text);
    free(cluster);
}
