/* SPDX-License-Identifier: MIT */
/*
 * A start checks only the necessary parts: the pages of a small file, open jobs and their GPUs. The rest is
 * checked here, while mgpud runs, on a snapshot before it gets its name: a copy of all pages, which no
 * process writes and no lock protects. Copy and check may therefore take minutes without delaying a commit,
 * and a damaged copy never replaces a sound snapshot.
 *
 * Copy and check together take at most one part in SHARE of the time, so one that needs two minutes gets a
 * snapshot every forty minutes instead of every ten.
 */
#include "store/store_verify.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/store_check.h"
#include "store/store_snapshot.h"
#include "store/store_sqlite.h"

#define SHARE    20
#define REST_MS  1000 // shorter checks may be repeated immediately
#define NICENESS 10

struct verified {
    struct store_request request;
    struct store_verification result;
};

static void answer_verified(struct store *store, struct store_request *request)
{
    if (store->observer.on_verified != NULL)
        store->observer.on_verified(store->observer.arg, &((struct verified *)request)->result);
}

static const struct store_request_kind verified_kind = { .answer = answer_verified };

static void hand_over(struct store *store, const struct store_verification *result)
{
    struct verified *verified = xcalloc(1, sizeof(*verified));
    verified->request.kind = &verified_kind;
    verified->result = *result;
    store_thread_answer(store, &verified->request);
}

static int copy_and_check(struct store *store, struct store_verification *ret, struct error *err)
{
    _cleanup_free_ char *path = store_snapshot_copy_path(store);
    int r = store_snapshot_write(store, err);
    if (r < 0)
        return r;
    r = store_fsck_copy(path, &store->verifier.is_stopping, &store->observer.progress, ret, err);
    if (r == 0 && ret->findings == 0)
        return store_snapshot_keep(store, err);
    store_snapshot_discard(store);
    return r;
}

static void *run(void *arg)
{
    struct store *store = arg;
    struct store_verifier *verifier = &store->verifier;
    struct store_verification result = { 0 };
    struct error err = { 0 };
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    int r = copy_and_check(store, &result, &err);
    (void)malloc_trim(0); // its connections had a cache each
    store_progress_report(&store->observer.progress, NULL, 0, 0);
    int64_t now_ms = clock_boot_ms(), took_ms = now_ms - verifier->began_ms;
    verifier->next_ms = took_ms < REST_MS ? 0 : now_ms + (SHARE - 1) * took_ms;
    /* The receiver of the result may request the next snapshot. */
    atomic_store(&verifier->is_running, false);
    if (r == 0)
        hand_over(store, &result);
    else if (r != -ECANCELED)
        store_thread_warn(store, &err);
    return NULL;
}

bool store_verify_is_busy(struct store *store)
{
    struct store_verifier *verifier = &store->verifier;
    return atomic_load(&verifier->is_running) || clock_boot_ms() < verifier->next_ms;
}

void store_verify_begin(struct store *store)
{
    struct store_verifier *verifier = &store->verifier;
    if (verifier->is_started)
        (void)pthread_join(verifier->id, NULL);
    atomic_store(&verifier->is_running, true);
    verifier->began_ms = clock_boot_ms();
    int error = pthread_create(&verifier->id, NULL, run, store);
    verifier->is_started = error == 0;
    if (error == 0)
        return;
    struct error err = { 0 };
    (void)error_set_errno(&err, -error, "cannot start a snapshot");
    store_thread_warn(store, &err);
    atomic_store(&verifier->is_running, false);
}

void store_verify_stop(struct store *store, bool wait)
{
    struct store_verifier *verifier = &store->verifier;
    atomic_store(&verifier->is_stopping, true);
    if (!wait || !verifier->is_started)
        return;
    (void)pthread_join(verifier->id, NULL);
    verifier->is_started = false;
}
