/* SPDX-License-Identifier: MIT */
/*
 * The leader writes a snapshot of its store to etcd when the log has become longer than the last snapshot,
 * and then removes the log up to it. etcd therefore holds about twice the size of a store. A controller that
 * is new, or was away for too long, begins with the snapshot.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "controller/cluster/cluster_private.h"

#define OUTGOING  "outgoing.db"
#define LOOK_MS   1000
#define RETRY_MS  60000
#define LOG_BYTES (16ULL << 20) // minimum growth of the log before the next snapshot

int cluster_snapshot(struct cluster *cluster, struct etcd *etcd, int64_t revision, const char *instance,
    uint64_t *ret_bytes, struct error *err)
{
    _cleanup_free_ char *path = xasprintf("%s/" OUTGOING, cluster->store_dir);
    struct store_position position;
    struct stat file;
    (void)unlink(path);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot create %s", path);
    int r = store_replica_copy(cluster->store_dir, path, &position, err);
    if (r == 0)
        r = cluster_log_put_base(etcd, revision, instance, fd, position, err);
    if (r == 0 && ret_bytes != NULL && fstat(fd, &file) == 0)
        *ret_bytes = (uint64_t)file.st_size;
    (void)unlink(path);
    return r;
}

/* Frees the space of the removed keys; until then, etcd keeps their history. */
static void compact(struct etcd *etcd)
{
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    json_t *answer = NULL;
    etcd_txn_read(&txn, etcd, KEY_BASE, NULL, 0);
    if (etcd_commit(etcd, &txn, REQUEST_MS, &result, NULL) < 0)
        return;
    if (etcd_call(etcd, "kv/compaction", json_pack("{s:I}", "revision", (json_int_t)result.revision),
            REQUEST_MS, &answer, NULL) == 0)
        json_decref(answer);
    etcd_result_clear(&result);
}

void *cluster_snapshotter(void *arg)
{
    struct cluster *cluster = arg;
    struct etcd *etcd = etcd_new(cluster->curl, &cluster->settings);
    uint64_t last_bytes = 0;
    int64_t wait_ms = LOOK_MS;
    while (!cluster_wait(cluster, wait_ms)) {
        struct error err = { 0 };
        uint64_t appended = atomic_load(&cluster->appended);
        wait_ms = LOOK_MS;
        if (appended < LOG_BYTES || appended < last_bytes)
            continue;
        if (cluster_snapshot(
                cluster, etcd, leadership_revision(cluster->leadership), NULL, &last_bytes, &err) == 0) {
            (void)atomic_fetch_sub(&cluster->appended, appended);
            compact(etcd);
        } else {
            log_warning("no snapshot in etcd: %s", err.message);
            wait_ms = RETRY_MS;
        }
    }
    etcd_free(etcd);
    return NULL;
}
