/* SPDX-License-Identifier: MIT */
#include "controller/cluster/leadership.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "controller/cluster/cluster_log.h"
#include "controller/cluster/curl_library.h"

#define RENEWALS 3  // renewals per lease duration
#define MARGIN   10 // the fraction of a lease by which clocks may differ (1/10)
#define RETRY_MS 100

struct leadership {
    struct etcd *etcd; // the thread's
    int64_t lease, revision, lease_ms;
    atomic_llong until_ms; // boot clock: leadership is certain until then; 0: ended
    int eventfd;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; // protects is_ending
    pthread_cond_t wake;
    bool is_ending;
};

bool leadership_is_certain(const struct leadership *leadership)
{
    return clock_boot_ms() < (int64_t)atomic_load(&leadership->until_ms);
}

int64_t leadership_left_ms(const struct leadership *leadership)
{
    int64_t left_ms = (int64_t)atomic_load(&leadership->until_ms) - clock_boot_ms();
    return left_ms > 0 ? left_ms : 0;
}

int64_t leadership_revision(const struct leadership *leadership)
{
    return leadership->revision;
}

int leadership_fd(const struct leadership *leadership)
{
    return leadership->eventfd;
}

/* From now on leadership is not certain. Idempotent; may be called from any thread. */
void leadership_resign(struct leadership *leadership)
{
    atomic_store(&leadership->until_ms, 0);
    (void)eventfd_write(leadership->eventfd, 1);
}

/* Only moves the time forward, and never after the end. */
static void extend(struct leadership *leadership, int64_t sent_ms)
{
    long long old = atomic_load(&leadership->until_ms);
    int64_t until_ms = sent_ms + leadership->lease_ms - leadership->lease_ms / MARGIN;
    if (old != 0 && clock_boot_ms() < (int64_t)old && until_ms > (int64_t)old)
        (void)atomic_compare_exchange_strong(&leadership->until_ms, &old, until_ms);
}

static json_t *lease_body(const struct leadership *leadership)
{
    char id[24];
    (void)snprintf(id, sizeof(id), "%" PRId64, leadership->lease);
    return json_pack("{s:s}", "ID", id);
}

/* 0: renewed. -ENOENT: the lease has expired. */
static int renew(struct leadership *leadership, struct error *err)
{
    json_t *answer = NULL;
    int64_t sent_ms = clock_boot_ms();
    int r = etcd_call(leadership->etcd, "lease/keepalive", lease_body(leadership),
        (int)(leadership->lease_ms / RENEWALS), &answer, err);
    if (r < 0)
        return r;
    bool is_alive = etcd_number(json_object_get(answer, "result"), "TTL") > 0;
    json_decref(answer);
    if (!is_alive)
        return error_set(err, -ENOENT, "the lease in etcd has expired");
    extend(leadership, sent_ms);
    return 0;
}

/* True when leadership has ended. */
static bool wait_for_end(struct leadership *leadership, int64_t wait_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ms % 1000 * 1000000;
    until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&leadership->mutex);
    int rc = 0;
    while (!leadership->is_ending && rc == 0)
        rc = pthread_cond_timedwait(&leadership->wake, &leadership->mutex, &until);
    bool is_ending = leadership->is_ending;
    (void)pthread_mutex_unlock(&leadership->mutex);
    return is_ending;
}

static void *keep(void *arg)
{
    struct leadership *leadership = arg;
    struct error err = { 0 };
    int r = 0;
    while (!wait_for_end(leadership, r == 0 ? leadership->lease_ms / RENEWALS / 2 : RETRY_MS)) {
        r = renew(leadership, &err);
        if (r == -ENOENT || !leadership_is_certain(leadership)) {
            log_error("the leader's lease was not renewed in time%s%s", r < 0 ? ": " : "",
                r < 0 ? err.message : "");
            break;
        }
    }
    leadership_resign(leadership);
    return NULL;
}

static int start_keeping(struct leadership *leadership, struct error *err)
{
    pthread_condattr_t monotonic;
    (void)pthread_mutex_init(&leadership->mutex, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&leadership->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    int r = -pthread_create(&leadership->thread, NULL, keep, leadership);
    leadership->has_thread = r == 0;
    return r < 0 ? error_set_errno(err, r, "cannot start a thread") : 0;
}

static int grant(struct leadership *leadership, struct error *err)
{
    json_t *answer = NULL;
    char seconds[24];
    (void)snprintf(seconds, sizeof(seconds), "%" PRId64, (leadership->lease_ms + 999) / 1000);
    int64_t sent_ms = clock_boot_ms();
    int r = etcd_call(
        leadership->etcd, "lease/grant", json_pack("{s:s}", "TTL", seconds), REQUEST_MS, &answer, err);
    if (r < 0)
        return r;
    leadership->lease = etcd_number(answer, "ID");
    json_decref(answer);
    atomic_store(&leadership->until_ms, sent_ms + leadership->lease_ms - leadership->lease_ms / MARGIN);
    return leadership->lease != 0 ? 0 : error_set(err, -EBADMSG, "etcd granted no lease");
}

/* leadership->revision: not 0 if it is ours. */
static int try_claim(struct leadership *leadership, const char *name, struct error *err)
{
    struct etcd *etcd = leadership->etcd;
    struct etcd_txn txn = { 0 };
    _cleanup_(etcd_result_clear) struct etcd_result result = { 0 };
    etcd_txn_if_created_at(&txn, etcd, KEY_LEADER, 0);
    etcd_txn_put(&txn, etcd, KEY_LEADER, name, strlen(name), leadership->lease);
    etcd_txn_otherwise_read(&txn, etcd, KEY_LEADER);
    int r = etcd_commit(etcd, &txn, REQUEST_MS, &result, err);
    const struct etcd_key *there = etcd_result_find(&result, KEY_LEADER);
    if (r == 0 && result.is_success)
        leadership->revision = result.revision;
    else if (r == 0 && there != NULL && there->lease == leadership->lease)
        leadership->revision = there->created;
    return r;
}

/* 1: the key is ours. If a response was lost, the key is read: if it has our lease, the claim succeeded. */
static int claim(struct leadership *leadership, const char *name, struct error *err)
{
    int r = try_claim(leadership, name, err);
    while (r == -EAGAIN && leadership_is_certain(leadership)) {
        etcd_pause();
        r = try_claim(leadership, name, err);
    }
    return r < 0 ? r : leadership->revision != 0;
}

int leadership_take(const struct curl_library *curl, struct etcd_settings *settings, const char *name,
    int64_t lease_ms, struct leadership **ret, struct error *err)
{
    struct leadership *leadership = xcalloc(1, sizeof(*leadership));
    leadership->lease_ms = lease_ms;
    leadership->etcd = etcd_new(curl, settings);
    leadership->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = leadership->eventfd < 0 ? error_set_errno(err, -errno, "cannot create an eventfd") : 0;
    if (r == 0)
        r = grant(leadership, err);
    if (r == 0)
        r = claim(leadership, name, err);
    if (r == 1)
        r = start_keeping(leadership, err) < 0 ? -EAGAIN : 1;
    if (r == 1)
        *ret = leadership;
    else
        leadership_free(leadership);
    return r;
}

void leadership_free(struct leadership *leadership)
{
    if (leadership == NULL)
        return;
    if (leadership->has_thread) {
        (void)pthread_mutex_lock(&leadership->mutex);
        leadership->is_ending = true;
        (void)pthread_cond_signal(&leadership->wake);
        (void)pthread_mutex_unlock(&leadership->mutex);
        (void)pthread_join(leadership->thread, NULL);
        (void)pthread_mutex_destroy(&leadership->mutex);
        (void)pthread_cond_destroy(&leadership->wake);
    }
    if (leadership->lease != 0) {
        json_t *answer = NULL;
        (void)etcd_call(leadership->etcd, "lease/revoke", lease_body(leadership), REQUEST_MS, &answer, NULL);
        json_decref(answer);
    }
    etcd_free(leadership->etcd);
    closep(&leadership->eventfd);
    free(leadership);
}
