/* SPDX-License-Identifier: MIT */
/*
 * Nodes and clients identify a cluster by its keys, so all controllers have the same keys. They are stored in
 * etcd: the first leader writes them, and every later one writes them to its own directory before it listens.
 * Anyone who can read this prefix of etcd can act as a controller (docs/high-availability.md).
 */
#include "controller/cluster/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "controller/cluster/cluster_private.h"
#include "controller/cluster/etcd.h"

#define FILE_MAX 65536
#define RETRY_MS 100

static const char *const names[] = { "authority.key", "authority.crt", "server.key", "server.crt" };

#define NAMES (sizeof(names) / sizeof(names[0]))

static int open_dir(const char *dir, struct error *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create %s", dir);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 ? error_set_errno(err, -errno, "cannot open %s", dir) : fd;
}

/* Keys of two clusters would not match, so none is written if one is missing. */
static int check_files(const json_t *files, struct error *err)
{
    for (size_t i = 0; i < NAMES; i++)
        if (!json_is_string(json_object_get(files, names[i])))
            return error_set(err, -EBADMSG, "etcd: the key " KEY_IDENTITY " has no %s", names[i]);
    return 0;
}

static int write_files(const struct etcd_key *key, const char *dir, struct error *err)
{
    _cleanup_close_ int fd = open_dir(dir, err);
    json_t *files = json_loadb((const char *)key->value.bytes, key->value.length, 0, NULL);
    int r = fd < 0 ? fd : check_files(files, err);
    for (size_t i = 0; r == 0 && i < NAMES; i++) {
        const char *text = json_string_value(json_object_get(files, names[i]));
        r = file_write(fd, names[i], text, strlen(text), true);
        if (r < 0)
            (void)error_set_errno(err, r, "cannot write %s/%s", dir, names[i]);
    }
    json_decref(files);
    return r;
}

int cluster_identity_read(struct etcd *etcd, const char *dir, struct error *err)
{
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    etcd_txn_read(&txn, etcd, KEY_IDENTITY, NULL, 0);
    int r = etcd_commit(etcd, &txn, REQUEST_MS, &result, err);
    if (r < 0)
        return r;
    const struct etcd_key *key = etcd_result_find(&result, KEY_IDENTITY);
    r = key == NULL ? 0 : write_files(key, dir, err) < 0 ? err->code : 1;
    etcd_result_clear(&result);
    return r;
}

int cluster_identity_fetch(struct cluster *cluster, const char *dir, struct error *err)
{
    int r;
    do
        r = cluster_identity_read(cluster->log_etcd, dir, err);
    while (r == -EAGAIN && cluster_is_certain(cluster) && !cluster_wait(cluster, RETRY_MS));
    return r;
}

static int read_files(const char *dir, json_t *files, struct error *err)
{
    _cleanup_close_ int fd = open_dir(dir, err);
    int r = fd < 0 ? fd : 0;
    for (size_t i = 0; r == 0 && i < NAMES; i++) {
        _cleanup_buffer_ struct buffer bytes = { 0 };
        r = file_read(fd, names[i], FILE_MAX, &bytes);
        if (r < 0)
            return error_set_errno(err, r, "cannot read %s/%s", dir, names[i]);
        (void)json_object_set_new(files, names[i], json_stringn((const char *)bytes.bytes, bytes.length));
        OPENSSL_cleanse(bytes.bytes, bytes.length);
    }
    return r;
}

int cluster_identity_put(struct cluster *cluster, const char *dir, struct error *err)
{
    json_t *files = json_object();
    int r = read_files(dir, files, err);
    _cleanup_free_ char *text = json_dumps(files, JSON_COMPACT);
    json_decref(files);
    if (r < 0)
        return r;
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    etcd_txn_if_created_at(&txn, cluster->log_etcd, KEY_LEADER, leadership_revision(cluster->leadership));
    etcd_txn_put(&txn, cluster->log_etcd, KEY_IDENTITY, text, strlen(text), 0);
    r = etcd_commit(cluster->log_etcd, &txn, REQUEST_MS, &result, err);
    OPENSSL_cleanse(text, strlen(text));
    if (r == 0 && !result.is_success)
        r = error_set(err, -ECANCELED, "this controller no longer leads the cluster");
    etcd_result_clear(&result);
    return r;
}
