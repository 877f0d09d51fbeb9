/* SPDX-License-Identifier: MIT */
/*
 * In every controller, a thread reports the controller in etcd with a lease, reads the reports of the others,
 * and queries the state of each etcd member. No decision depends on this. It is for administrators (mgpu
 * cluster, doctor), and for clients and nodes, which learn the addresses of all controllers. An unchanged
 * report is not written again, because etcd keeps every revision.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/version.h"
#include "controller/cluster/cluster_private.h"
#include "controller/cluster/status.h"

#define REPORT_MS  1000
#define WRITE_MS   5000 // between two writes of values that change constantly
#define LEASE_S    10
#define SERVERS_MS 10000 // between two queries of etcd's members
#define SERVER_MS  1000  // timeout of one query
#define CALL_MS    2000

struct reporter {
    struct cluster *cluster;
    struct etcd *etcd;
    char *key;
    int64_t lease;
    char *written; // NULL: nothing yet
    int64_t written_ms, servers_ms, clash_ms;
    bool was_leading;
};

/* True for text that is allowed in a header, a list and a message. */
static bool is_plain(const char *text)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]%";
    return strspn(text, known) == strlen(text);
}

static void take_text(const json_t *object, const char *name, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));
    ret[0] = '\0';
    if (text != NULL && strlen(text) < size && is_plain(text))
        (void)snprintf(ret, size, "%s", text);
}

bool cluster_member_read(const void *bytes, size_t length, struct cluster_member *ret)
{
    json_t *object = json_loadb(bytes, length, 0, NULL);
    struct cluster_member member = { .entry = (uint64_t)etcd_number(object, "entry"),
        .is_leading = json_is_true(json_object_get(object, "leading")) };
    const char *text = json_string_value(json_object_get(object, "trouble"));
    _cleanup_free_ char *trouble = text != NULL ? text_escape_fit(text, sizeof(member.trouble) - 1) : NULL;
    take_text(object, "name", member.name, sizeof(member.name));
    take_text(object, "api", member.api, sizeof(member.api));
    take_text(object, "nodes", member.nodes, sizeof(member.nodes));
    take_text(object, "version", member.version, sizeof(member.version));
    (void)snprintf(member.trouble, sizeof(member.trouble), "%s", trouble != NULL ? trouble : "");
    json_decref(object);
    if (member.name[0] == '\0')
        return false;
    *ret = member;
    return true;
}

static void take_members(struct cluster *cluster, const struct etcd_result *result)
{
    struct cluster_member members[CLUSTER_MEMBERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < result->n_keys && count < CLUSTER_MEMBERS_MAX; i++)
        count +=
            cluster_member_read(result->keys[i].value.bytes, result->keys[i].value.length, &members[count]);
    (void)pthread_mutex_lock(&cluster->mutex);
    memcpy(cluster->status.members, members, count * sizeof(members[0]));
    cluster->status.n_members = count;
    (void)pthread_mutex_unlock(&cluster->mutex);
}

static json_t *write_self(struct cluster *cluster)
{
    struct cluster_status status;
    cluster_read_status(cluster, &status);
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:I, s:o}", "name", cluster->name, "api", cluster->address,
        "nodes", cluster->nodes_address, "version", MGPU_VERSION, "leading", (int)status.is_leading, "entry",
        (json_int_t)status.position.number, "trouble", cluster_status_text(status.trouble));
}

/* 0 with reporter->lease. */
static int keep_lease(struct reporter *reporter, struct error *err)
{
    json_t *answer = NULL;
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRId64, reporter->lease);
    int r = reporter->lease == 0 ? -ENOENT
                                 : etcd_call(reporter->etcd, "lease/keepalive",
                                       json_pack("{s:s}", "ID", text), CALL_MS, &answer, err);
    bool is_alive = r == 0 && etcd_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    if (is_alive || (r < 0 && r != -ENOENT))
        return r;
    (void)snprintf(text, sizeof(text), "%d", LEASE_S);
    r = etcd_call(reporter->etcd, "lease/grant", json_pack("{s:s}", "TTL", text), CALL_MS, &answer, err);
    if (r < 0)
        return r;
    reporter->lease = etcd_number(answer, "ID");
    json_decref(answer);
    free(take_ptr(reporter->written)); // it was removed with the lease
    return 0;
}

/* True if the key has another lease: one of this controller before its restart, which expires soon, or one of
 * another controller. A key with another address certainly belongs to another controller. */
static bool is_anothers(
    const struct reporter *reporter, const struct etcd_result *result, bool *ret_is_elsewhere)
{
    struct cluster_member member;
    const struct etcd_key *key = etcd_result_find(result, reporter->key);
    bool is_clash = key != NULL && key->lease != reporter->lease;
    *ret_is_elsewhere = is_clash && cluster_member_read(key->value.bytes, key->value.length, &member) &&
                        strcmp(member.api, reporter->cluster->address) != 0;
    return is_clash;
}

/* Nodes and clients would not learn the address of this controller, so it must not become leader. */
static void note_clash(struct reporter *reporter, bool is_clash, bool is_elsewhere)
{
    struct cluster *cluster = reporter->cluster;
    int64_t now_ms = clock_boot_ms();
    atomic_store(&cluster->may_lead, !is_elsewhere);
    if (!is_clash || reporter->clash_ms == 0)
        reporter->clash_ms = is_clash ? now_ms : 0;
    bool is_lasting = is_clash && now_ms - reporter->clash_ms > (LEASE_S + 2) * 1000;
    (void)pthread_mutex_lock(&cluster->mutex);
    bool is_new = is_lasting && !cluster->has_namesake, is_leading = cluster->status.is_leading;
    cluster->has_namesake = is_lasting;
    (void)pthread_mutex_unlock(&cluster->mutex);
    if (is_new && is_leading)
        leadership_resign(cluster->leadership);
}

static int report(struct reporter *reporter, struct error *err)
{
    struct etcd_txn txn = { 0 };
    struct etcd_result result = { 0 };
    int r = keep_lease(reporter, err);
    if (r < 0)
        return r;
    json_t *self = write_self(reporter->cluster);
    _cleanup_free_ char *text = json_dumps(self, JSON_COMPACT);
    bool is_leading = json_is_true(json_object_get(self, "leading"));
    json_decref(self);
    bool is_due =
        reporter->written == NULL || is_leading != reporter->was_leading ||
        (strcmp(text, reporter->written) != 0 && clock_boot_ms() - reporter->written_ms >= WRITE_MS);
    etcd_txn_read(&txn, reporter->etcd, KEY_CONTROLLERS, KEY_CONTROLLERS_END, CLUSTER_MEMBERS_MAX);
    r = etcd_commit(reporter->etcd, &txn, CALL_MS, &result, err);
    bool is_elsewhere = false, is_clash = r == 0 && is_anothers(reporter, &result, &is_elsewhere);
    if (r == 0)
        take_members(reporter->cluster, &result);
    etcd_result_clear(&result);
    if (r == 0)
        note_clash(reporter, is_clash, is_elsewhere);
    if (r < 0 || !is_due || is_clash)
        return r;
    etcd_txn_put(&txn, reporter->etcd, reporter->key, text, strlen(text), reporter->lease);
    r = etcd_commit(reporter->etcd, &txn, CALL_MS, &result, err);
    etcd_result_clear(&result);
    if (r < 0)
        return r;
    free(reporter->written);
    reporter->written = take_ptr(text);
    reporter->written_ms = clock_boot_ms();
    reporter->was_leading = is_leading;
    return 0;
}

/* --- etcd's members --- */

static bool says(const json_t *text, const char *words)
{
    const char *value = json_string_value(text);
    return value != NULL && strstr(value, words) != NULL;
}

/* Alarms are texts such as "memberID:10276657743932975437 alarm:NOSPACE". */
const char *cluster_server_trouble(const json_t *answer)
{
    size_t i;
    const json_t *text;
    json_array_foreach(json_object_get(answer, "errors"), i, text)
    {
        if (says(text, "NOSPACE"))
            return "its database is full (alarm NOSPACE)";
        if (says(text, "CORRUPT"))
            return "its data are damaged (alarm CORRUPT)";
        if (says(text, "no leader"))
            return "it is in no majority";
    }
    return etcd_number(answer, "leader") == 0 ? "it is in no majority" : "";
}

static void check_servers(struct reporter *reporter)
{
    struct cluster *cluster = reporter->cluster;
    for (size_t i = 0; i < cluster->settings.endpoints.count && i < CLUSTER_SERVERS_MAX; i++) {
        struct cluster_server server = { 0 };
        struct error err = { 0 };
        json_t *answer = NULL;
        (void)snprintf(server.url, sizeof(server.url), "%s", cluster->settings.endpoints.items[i]);
        etcd_choose(reporter->etcd, i);
        int r = etcd_call(reporter->etcd, "maintenance/status", json_object(), SERVER_MS, &answer, &err);
        server.is_up = r == 0;
        server.used_bytes = r == 0 ? etcd_number(answer, "dbSize") : 0;
        (void)snprintf(server.trouble, sizeof(server.trouble), "%.255s",
            r == 0 ? cluster_server_trouble(answer) : err.message);
        json_decref(answer);
        (void)pthread_mutex_lock(&cluster->mutex);
        cluster->status.servers[i] = server;
        if (cluster->status.n_servers <= i)
            cluster->status.n_servers = i + 1;
        (void)pthread_mutex_unlock(&cluster->mutex);
        if (cluster_wait(cluster, 0))
            return;
    }
}

static void withdraw(struct reporter *reporter)
{
    json_t *answer = NULL;
    char text[24];
    if (reporter->lease == 0)
        return;
    (void)snprintf(text, sizeof(text), "%" PRId64, reporter->lease);
    (void)etcd_call(reporter->etcd, "lease/revoke", json_pack("{s:s}", "ID", text), SERVER_MS, &answer, NULL);
    json_decref(answer);
}

void *cluster_reporter(void *arg)
{
    struct cluster *cluster = arg;
    struct reporter reporter = { .cluster = cluster, .etcd = etcd_new(cluster->curl, &cluster->settings) };
    reporter.key = xasprintf(KEY_CONTROLLERS "%s", cluster->name);
    while (!cluster_wait(cluster, reporter.written == NULL ? REPORT_MS / 10 : REPORT_MS)) {
        struct error err = { 0 };
        int64_t now_ms = clock_boot_ms();
        if (report(&reporter, &err) < 0 && cluster_wait(cluster, REPORT_MS))
            break;
        if (reporter.servers_ms == 0 || now_ms - reporter.servers_ms >= SERVERS_MS) {
            check_servers(&reporter);
            reporter.servers_ms = now_ms;
        }
    }
    withdraw(&reporter);
    etcd_free(reporter.etcd);
    free(reporter.key);
    free(reporter.written);
    return NULL;
}

/* --- addresses --- */

char *cluster_addresses(struct cluster *cluster, enum cluster_audience audience)
{
    struct cluster_status status;
    _cleanup_buffer_ struct buffer list = { 0 };
    cluster_read_status(cluster, &status);
    /* This controller's report may not be in etcd yet: after a start, or while etcd is slow. */
    bool is_listed = false;
    for (size_t i = 0; i < status.n_members; i++)
        is_listed = is_listed || strcmp(status.members[i].name, cluster->name) == 0;
    if (!is_listed && status.n_members > 0)
        buffer_printf(&list, "%s", audience == CLUSTER_FOR_NODES ? cluster->nodes_address : cluster->address);
    for (int pass = 0; pass < 2; pass++) // the leader first
        for (size_t i = 0; i < status.n_members; i++) {
            const struct cluster_member *member = &status.members[i];
            const char *address = audience == CLUSTER_FOR_NODES ? member->nodes : member->api;
            if (member->is_leading == (pass == 0) && address[0] != '\0')
                buffer_printf(&list, "%s%s", list.length > 0 ? "," : "", address);
        }
    return list.length > 0 ? xstrdup(buffer_text(&list)) : NULL;
}
