/* SPDX-License-Identifier: MIT */
/*
 * An entry is created, never overwritten: the transaction checks that its key does not exist, and that the
 * leader's key is the one under which this controller was elected. If the response of a transaction is lost,
 * it is repeated; if the first one succeeded, the key exists with the entry's own random id. The previous
 * entry must exist as well: after etcd was restored from a backup under its leader, there is a gap. For this
 * reason, the last entry contained in a snapshot stays in the log, and founding a cluster writes an empty
 * entry.
 */
#include "controller/cluster/cluster_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/memory.h"

#define MAGIC       0x31676f6c7570676dULL // "mgpulog1"
#define PART_BYTES  (256U << 10)
#define READ_MAX    32 // entries per request
#define PARTS_MAX   65536U
#define SNAPSHOT_MS 10000

struct header {
    uint64_t magic, id, before_id, schema, parts, length;
};

const char cluster_log_full[] = "etcd's database is full";

static char *log_key(uint64_t number)
{
    return xasprintf("log/%016" PRIx64, number);
}

static char *part_key(const char *kind, uint64_t number, uint32_t part)
{
    return xasprintf("%s/%016" PRIx64 "/%06" PRIx32, kind, number, part);
}

/* --- reading --- */

void cluster_view_clear(struct cluster_view *view)
{
    for (size_t i = 0; i < view->n_entries; i++)
        buffer_clear(&view->entries[i].bytes);
    free(view->entries);
    free(view->cluster);
    free(view->leader);
    *view = (struct cluster_view){ 0 };
}

static char *text_of(const struct etcd_result *result, const char *name)
{
    const struct etcd_key *key = etcd_result_find(result, name);
    if (key == NULL)
        return NULL;
    return key->value.length > 0 ? xstrndup((const char *)key->value.bytes, key->value.length) : xstrdup("");
}

static int read_base(const struct etcd_result *result, struct cluster_base *ret, struct error *err)
{
    _cleanup_free_ char *text = text_of(result, KEY_BASE);
    struct cluster_base base = { 0 };
    if (text != NULL &&
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNx32, &base.position.number,
            &base.position.id, &base.bytes, &base.parts, &base.crc) != 5)
        return error_set(err, -EBADMSG, "etcd: the key " KEY_BASE " is not the description of a snapshot");
    if (base.parts > PARTS_MAX)
        return error_set(err, -EBADMSG, "etcd: a snapshot of %" PRIu32 " parts", base.parts);
    *ret = base;
    return 0;
}

static int read_entry(const struct etcd_key *key, struct cluster_log_entry *ret, struct error *err)
{
    struct header header;
    uint64_t number = strtoull(key->name + strlen("log/"), NULL, 16);
    if (key->value.length < sizeof(header))
        return error_set(err, -EBADMSG, "entry %" PRIu64 " of the log is cut", number);
    memcpy(&header, key->value.bytes, sizeof(header));
    size_t inside = key->value.length - sizeof(header);
    if (header.magic != MAGIC || header.parts > PARTS_MAX || (header.parts == 0 && inside != header.length))
        return error_set(err, -EBADMSG, "entry %" PRIu64 " of the log is not an entry of mgpu", number);
    *ret = (struct cluster_log_entry){
        .entry = {
            .position = { number, header.id },
            .before = { number - 1, header.before_id },
            .schema = (uint32_t)header.schema,
            .length = header.length,
        },
        .parts = (uint32_t)header.parts,
    };
    buffer_append(&ret->bytes, key->value.bytes + sizeof(header), inside);
    return 0;
}

/* Reads one key into a buffer; -ESTALE if it does not exist. */
static int get(struct etcd *etcd, const char *name, struct buffer *out, struct error *err)
{
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    etcd_txn_read(&txn, etcd, name, NULL, 0);
    int r = etcd_commit(etcd, &txn, REQUEST_MS, &result, err);
    if (r < 0)
        return r;
    const struct etcd_key *key = etcd_result_find(&result, name);
    if (key != NULL)
        buffer_append(out, key->value.bytes, key->value.length);
    else
        r = error_set(err, -ESTALE, "etcd: %s does not exist any more", name);
    etcd_result_clear(&result);
    return r;
}

static int read_parts(struct etcd *etcd, struct cluster_log_entry *entry, struct error *err)
{
    int r = 0;
    for (uint32_t part = 0; r == 0 && part < entry->parts; part++) {
        _cleanup_free_ char *key = part_key("part", entry->entry.position.number, part);
        r = get(etcd, key, &entry->bytes, err);
    }
    if (r == 0 && entry->bytes.length != entry->entry.length)
        r = error_set(
            err, -EBADMSG, "entry %" PRIu64 " of the log is incomplete", entry->entry.position.number);
    return r;
}

static int read_entries(
    struct etcd *etcd, const struct etcd_result *result, struct cluster_view *view, struct error *err)
{
    int r = 0;
    view->entries = xcalloc(result->n_keys + 1, sizeof(*view->entries));
    for (size_t i = 0; r == 0 && i < result->n_keys; i++) {
        if (strncmp(result->keys[i].name, "log/", 4) != 0)
            continue;
        struct cluster_log_entry *entry = &view->entries[view->n_entries];
        r = read_entry(&result->keys[i], entry, err);
        if (r < 0)
            return r;
        view->n_entries++;
        r = read_parts(etcd, entry, err);
        entry->entry.changes = entry->bytes.bytes;
    }
    return r;
}

int cluster_log_read(struct etcd *etcd, uint64_t from, struct cluster_view *ret, struct error *err)
{
    _cleanup_free_ char *first = log_key(from);
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    struct cluster_view view = { 0 };
    etcd_txn_read(&txn, etcd, KEY_CLUSTER, NULL, 0);
    etcd_txn_read(&txn, etcd, KEY_LEADER, NULL, 0);
    etcd_txn_read(&txn, etcd, KEY_BASE, NULL, 0);
    etcd_txn_read(&txn, etcd, first, "log0", READ_MAX); // '0' follows '/'
    int r = etcd_commit(etcd, &txn, REQUEST_MS, &result, err);
    if (r < 0)
        return r;
    const struct etcd_key *leader = etcd_result_find(&result, KEY_LEADER);
    view.cluster = text_of(&result, KEY_CLUSTER);
    view.leader = text_of(&result, KEY_LEADER);
    view.leader_revision = leader != NULL ? leader->created : 0;
    r = read_base(&result, &view.base, err);
    if (r == 0)
        r = read_entries(etcd, &result, &view, err);
    etcd_result_clear(&result);
    if (r == 0)
        *ret = view;
    else
        cluster_view_clear(&view);
    return r;
}

/* --- appending --- */

static int lost(struct error *err)
{
    return error_set(err, -ECANCELED, "this controller no longer leads the cluster");
}

/* The transaction did not succeed this time, either because it had succeeded before, or because it never
 * will. */
static int judge(const struct cluster_appending *appending, const struct etcd_result *result, const char *key,
    uint64_t id, struct error *err)
{
    const struct etcd_key *there = etcd_result_find(result, key),
                          *leader = etcd_result_find(result, KEY_LEADER);
    struct cluster_log_entry entry;
    if (there != NULL && id != 0 && strncmp(key, "log/", 4) == 0 && read_entry(there, &entry, NULL) == 0) {
        buffer_clear(&entry.bytes);
        if (entry.entry.position.id == id)
            return 0;
    }
    if (leader == NULL || leader->created != appending->revision)
        return lost(err);
    return there == NULL ? error_set(err, -EUCLEAN, "etcd has lost the entry before %s", key)
                         : error_set(err, -EUCLEAN, "etcd has another %s: the log has changed", key);
}

/* Writes one key, and repeats until the outcome is known. `id` 0: the key may exist already, and needs no
 * previous entry. */
static int put(const struct cluster_appending *appending, const char *before, const char *key,
    const struct buffer *value, uint64_t id, struct error *err)
{
    struct etcd *etcd = appending->etcd;
    int r;
    do {
        struct etcd_txn txn = { 0 };
        struct etcd_result result = { 0 };
        etcd_txn_if_created_at(&txn, etcd, KEY_LEADER, appending->revision);
        if (id != 0) {
            etcd_txn_if_created_at(&txn, etcd, key, 0);
            etcd_txn_if_exists(&txn, etcd, before);
        }
        etcd_txn_put(&txn, etcd, key, value->bytes, value->length, 0);
        etcd_txn_otherwise_read(&txn, etcd, KEY_LEADER);
        etcd_txn_otherwise_read(&txn, etcd, key);
        r = etcd_commit(etcd, &txn, REQUEST_MS, &result, err);
        if (r == 0 && !result.is_success)
            r = judge(appending, &result, key, id, err);
        etcd_result_clear(&result);
        bool is_repeated = r == -EAGAIN || r == -ENOSPC;
        atomic_store(appending->trouble, r == -ENOSPC  ? cluster_log_full
                                         : is_repeated ? "etcd does not answer"
                                                       : NULL);
        if (!is_repeated)
            return r;
        etcd_pause();
    } while (appending->may_continue(appending->arg));
    return lost(err);
}

static int put_parts(const struct cluster_appending *appending, const struct store_entry *entry,
    uint32_t parts, struct error *err)
{
    int r = 0;
    for (uint32_t part = 0; r == 0 && part < parts; part++) {
        _cleanup_free_ char *key = part_key("part", entry->position.number, part);
        _cleanup_buffer_ struct buffer value = { 0 };
        size_t at = (size_t)part * PART_BYTES, left = entry->length - at;
        buffer_append(&value, (const uint8_t *)entry->changes + at, left < PART_BYTES ? left : PART_BYTES);
        r = put(appending, NULL, key, &value, 0, err);
    }
    return r;
}

int cluster_log_append(
    const struct cluster_appending *appending, const struct store_entry *entry, struct error *err)
{
    uint32_t parts =
        entry->length > PART_BYTES ? (uint32_t)((entry->length + PART_BYTES - 1) / PART_BYTES) : 0;
    struct header header = { MAGIC, entry->position.id, entry->before.id, entry->schema, parts,
        entry->length };
    _cleanup_buffer_ struct buffer value = { 0 };
    _cleanup_free_ char *key = log_key(entry->position.number), *before = log_key(entry->before.number);
    if (parts > PARTS_MAX)
        return error_set(err, -E2BIG, "a transaction of %zu bytes is too large for the log", entry->length);
    buffer_append(&value, &header, sizeof(header));
    if (parts == 0)
        buffer_append(&value, entry->changes, entry->length);
    int r = put_parts(appending, entry, parts, err);
    return r == 0 ? put(appending, before, key, &value, entry->position.id, err) : r;
}

/* --- snapshots --- */

static int put_snapshot_part(
    struct etcd *etcd, int64_t revision, const char *key, const void *bytes, size_t length, struct error *err)
{
    for (int tries = 0;; tries++) {
        struct etcd_txn txn = { 0 };
        struct etcd_result result = { 0 };
        etcd_txn_if_created_at(&txn, etcd, revision != 0 ? KEY_LEADER : KEY_CLUSTER, revision);
        etcd_txn_put(&txn, etcd, key, bytes, length, 0);
        int r = etcd_commit(etcd, &txn, SNAPSHOT_MS, &result, err);
        bool is_done = r == 0 && result.is_success;
        etcd_result_clear(&result);
        if (r == 0 && !is_done)
            return revision != 0 ? lost(err) : error_set(err, -EEXIST, "etcd already contains a cluster");
        if (r != -EAGAIN || tries == 3)
            return r;
    }
}

static int put_snapshot(
    struct etcd *etcd, int64_t revision, int fd, struct cluster_base *base, struct error *err)
{
    _cleanup_free_ uint8_t *bytes = xcalloc(1, PART_BYTES);
    for (;;) {
        ssize_t n = pread(fd, bytes, PART_BYTES, (off_t)base->bytes);
        if (n < 0)
            return error_set_errno(err, -errno, "cannot read the snapshot");
        if (n == 0)
            return 0;
        if (base->parts == PARTS_MAX)
            return error_set(err, -EFBIG, "the store is too large for a snapshot in etcd");
        _cleanup_free_ char *key = part_key("snapshot", base->position.number, base->parts);
        int r = put_snapshot_part(etcd, revision, key, bytes, (size_t)n, err);
        if (r < 0)
            return r;
        base->crc = crc32c(base->crc, bytes, (size_t)n);
        base->bytes += (uint64_t)n;
        base->parts++;
    }
}

static void delete_range(struct etcd_txn *txn, const struct etcd *etcd, const char *kind, uint64_t end)
{
    _cleanup_free_ char *from = xasprintf("%s/", kind), *to = xasprintf("%s/%016" PRIx64, kind, end);
    etcd_txn_delete(txn, etcd, from, to);
}

/* A request that was given up may still take effect. The base of an older one would then be stored above a
 * log that the newer one has trimmed. Therefore it succeeds only while the base is the one found before. */
static int read_base_revision(struct etcd *etcd, int64_t *ret, struct error *err)
{
    struct etcd_txn txn = { 0 };
    _cleanup_(etcd_result_clear) struct etcd_result result = { 0 };
    etcd_txn_read(&txn, etcd, KEY_BASE, NULL, 0);
    int r = etcd_commit(etcd, &txn, REQUEST_MS, &result, err);
    const struct etcd_key *key = r == 0 ? etcd_result_find(&result, KEY_BASE) : NULL;
    *ret = key != NULL ? key->modified : 0;
    return r;
}

static int publish_base(struct etcd *etcd, int64_t revision, int64_t before, const char *instance,
    const struct cluster_base *base, struct error *err)
{
    char text[128];
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIx32,
        base->position.number, base->position.id, base->bytes, base->parts, base->crc);
    etcd_txn_if_created_at(&txn, etcd, revision != 0 ? KEY_LEADER : KEY_CLUSTER, revision);
    etcd_txn_if_modified_at(&txn, etcd, KEY_BASE, before);
    etcd_txn_put(&txn, etcd, KEY_BASE, text, strlen(text), 0);
    if (revision == 0) {
        const struct header first = { .magic = MAGIC, .id = base->position.id };
        _cleanup_free_ char *key = log_key(base->position.number);
        etcd_txn_put(&txn, etcd, key, &first, sizeof(first), 0);
        etcd_txn_put(&txn, etcd, KEY_CLUSTER, instance, strlen(instance), 0);
    }
    delete_range(&txn, etcd, "snapshot", base->position.number);
    /* The last entry of the snapshot stays, with its parts: a standby that is up to date reads it. */
    delete_range(&txn, etcd, "part", base->position.number);
    delete_range(&txn, etcd, "log", base->position.number);
    int r = etcd_commit(etcd, &txn, SNAPSHOT_MS, &result, err);
    bool is_done = r == 0 && result.is_success;
    etcd_result_clear(&result);
    if (r == 0 && !is_done)
        return revision != 0 ? lost(err) : error_set(err, -EEXIST, "etcd already contains a cluster");
    return r;
}

int cluster_log_put_base(struct etcd *etcd, int64_t revision, const char *instance, int fd,
    struct store_position position, struct error *err)
{
    struct cluster_base base = { .position = position };
    int64_t before = 0;
    int r = read_base_revision(etcd, &before, err);
    if (r == 0)
        r = put_snapshot(etcd, revision, fd, &base, err);
    return r == 0 ? publish_base(etcd, revision, before, instance, &base, err) : r;
}

int cluster_log_get_base(struct etcd *etcd, const struct cluster_base *base, int fd, struct error *err)
{
    uint32_t crc = 0;
    uint64_t bytes = 0;
    for (uint32_t part = 0; part < base->parts; part++) {
        _cleanup_free_ char *key = part_key("snapshot", base->position.number, part);
        _cleanup_buffer_ struct buffer value = { 0 };
        int r = get(etcd, key, &value, err);
        if (r == 0 && (r = write_all(fd, value.bytes, value.length)) < 0)
            (void)error_set_errno(err, r, "cannot write the snapshot");
        if (r < 0)
            return r;
        crc = crc32c(crc, value.bytes, value.length);
        bytes += value.length;
    }
    if (crc != base->crc || bytes != base->bytes)
        return error_set(err, -ESTALE, "the snapshot in etcd is incomplete");
    return fsync(fd) < 0 ? error_set_errno(err, -errno, "cannot sync the snapshot") : 0;
}
