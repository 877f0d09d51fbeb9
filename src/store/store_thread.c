/* SPDX-License-Identifier: MIT */
/*
 * The thread waits for requests and, between them, does background work that must not delay a commit:
 * checkpoints of the write-ahead log and the pages of a snapshot. A checkpoint is due at STORE_WAL_SOFT bytes
 * after a moment without requests, and at STORE_WAL_HARD in any case. A log that restarts overwrites its old
 * blocks, which makes the sync of a commit cheaper than growing the file does. After STORE_CALM_NS without
 * requests, the cache of pages is released, and with it what the whole program has freed, so a flood leaves
 * little behind.
 *
 *   works ──a request fails──> failed ──on_failed was called──> dead
 *
 * Answers with pages of events and of ended jobs have their own queue, so they cannot delay the end of a
 * commit, for which all clients wait.
 *
 * From `failed` on no request is executed and nothing is written: the next start determines the outcome of a
 * failed COMMIT.
 */
#include "store/store_thread.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "store/store_batch.h"
#include "store/store_sqlite.h"

#define STORE_WAL_SOFT  (2 << 20)  // bytes
#define STORE_WAL_HARD  (64 << 20) // bytes
#define STORE_IDLE_NS   20000000L
#define STORE_CALM_NS   1000000000L
#define STORE_CACHE_LOW (2 << 20) // bytes that are not given back
#define STORE_GROUP_MAX 64        // batches executed as one transaction

static void queue_init(struct store_queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void queue_add(struct store_queue *queue, struct store_request *first)
{
    *queue->end = first;
    while (*queue->end != NULL)
        queue->end = &(*queue->end)->next;
}

/* The first request, and those of its kind that directly follow it if the kind is grouped. */
static struct store_request *queue_take(struct store_queue *queue)
{
    struct store_request *first = queue->first, *last = first;
    for (size_t n = 1; first->kind->is_grouped && n < STORE_GROUP_MAX && last->next != NULL; n++) {
        if (last->next->kind != first->kind)
            break;
        last = last->next;
    }
    queue->first = last->next;
    if (queue->first == NULL)
        queue->end = &queue->first;
    last->next = NULL;
    return first;
}

static void free_request(struct store_request *request)
{
    if (request->kind->free != NULL)
        request->kind->free(request);
    else
        free(request);
}

static void drop_all(struct store_queue *queue)
{
    while (queue->first != NULL) {
        struct store_request *request = queue->first;
        queue->first = request->next;
        if (queue->first == NULL)
            queue->end = &queue->first;
        if (request->kind->drop != NULL)
            request->kind->drop(request);
        free_request(request);
    }
}

static void notify(struct store_thread *thread, bool is_page)
{
    const uint64_t one = 1;
    (void)!write(thread->eventfd, &one, sizeof(one));
    if (!is_page)
        (void)!write(thread->prompt_eventfd, &one, sizeof(one));
}

void store_thread_answer(struct store *store, struct store_request *requests)
{
    struct store_thread *thread = &store->thread;
    bool is_page = requests->kind->is_page;
    (void)pthread_mutex_lock(&thread->mutex);
    queue_add(is_page ? &thread->pages : &thread->answers, requests);
    (void)pthread_mutex_unlock(&thread->mutex);
    notify(thread, is_page);
}

static void fail(struct store *store, struct store_request *failed, uint64_t batch, const struct error *err)
{
    struct store_thread *thread = &store->thread;
    (void)pthread_mutex_lock(&thread->mutex);
    thread->health = STORE_FAILED;
    thread->failed_batch = batch;
    thread->failure = *err;
    queue_add(&thread->left, failed);
    queue_add(&thread->left, thread->requests.first);
    queue_init(&thread->requests);
    (void)pthread_mutex_unlock(&thread->mutex);
    notify(thread, false);
}

/* False if this ended the store. */
static bool run_requests(struct store *store, struct store_request *requests)
{
    struct error err = { 0 };
    if (requests->kind->run(store, requests, &err) == 0) {
        store_thread_answer(store, requests);
        return true;
    }
    fail(store, requests, store_batch_of_request(requests), &err);
    return false;
}

/* A log that another process is reading cannot restart: the next try is then much later. */
static void checkpoint(struct store *store)
{
    int log_pages = 0, done_pages = 0;
    int rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &log_pages, &done_pages);
    store->checkpoint_at = rc == SQLITE_OK && log_pages == done_pages
                               ? 0
                               : store->wal_pages + STORE_WAL_HARD / store->page_bytes;
    if (rc == SQLITE_OK && log_pages == done_pages)
        store->wal_pages = 0;
    if (rc == SQLITE_OK || store_sql_code(store->db, rc) == -ENOSPC || (rc & 0xff) == SQLITE_BUSY)
        return;
    struct error err = { 0 };
    (void)store_sql_fail(&err, store->db, rc, "checkpoint");
    fail(store, NULL, 0, &err);
}

static bool is_checkpoint_due(const struct store *store, int bytes)
{
    return store->wal_pages >= bytes / store->page_bytes && store->wal_pages >= store->checkpoint_at;
}

static bool is_cache_large(const struct store *store)
{
    int used = 0, highest = 0;
    (void)sqlite3_db_status(store->db, SQLITE_DBSTATUS_CACHE_USED, &used, &highest, 0);
    return used > STORE_CACHE_LOW;
}

/* The pause after which background work is due; 0: there is none. */
static long idle_ns(const struct store *store)
{
    if (is_checkpoint_due(store, STORE_WAL_SOFT))
        return STORE_IDLE_NS;
    if (is_cache_large(store))
        return STORE_CALM_NS;
    return store_space_is_short(store) ? STORE_SPACE_AGE * 1000000L : 0;
}

/* Waits for work; true if the wait was long enough to count the store as idle. */
static bool wait_for_requests(struct store *store)
{
    struct store_thread *thread = &store->thread;
    long wait_ns = idle_ns(store);
    if (wait_ns == 0) {
        (void)pthread_cond_wait(&thread->wake, &thread->mutex);
        return false;
    }
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += wait_ns;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return pthread_cond_timedwait(&thread->wake, &thread->mutex, &until) == ETIMEDOUT;
}

/* One piece of background work. Called and returns with the mutex held. */
static void run_idle(struct store *store)
{
    struct store_thread *thread = &store->thread;
    if (!wait_for_requests(store) || thread->requests.first != NULL || thread->is_closing)
        return;
    (void)pthread_mutex_unlock(&thread->mutex);
    store_space_check(store);
    if (is_checkpoint_due(store, STORE_WAL_SOFT)) {
        checkpoint(store);
    } else if (is_cache_large(store)) {
        (void)sqlite3_db_release_memory(store->db);
        (void)malloc_trim(0);
    }
    (void)pthread_mutex_lock(&thread->mutex);
}

/* Runs the background work that is due even under a constant load of requests. */
static void run_overdue(struct store *store)
{
    store_space_check(store);
    if (is_checkpoint_due(store, STORE_WAL_HARD))
        checkpoint(store);
}

/* Called with the mutex held. */
static bool has_work(const struct store_thread *thread)
{
    return !thread->is_closing || thread->requests.first != NULL;
}

static void *run(void *arg)
{
    struct store *store = arg;
    struct store_thread *thread = &store->thread;
    (void)pthread_mutex_lock(&thread->mutex);
    while (has_work(thread)) {
        if (thread->health != STORE_WORKS) {
            (void)pthread_cond_wait(&thread->wake, &thread->mutex);
            continue;
        }
        if (thread->requests.first == NULL) {
            run_idle(store);
            continue;
        }
        struct store_request *requests = queue_take(&thread->requests);
        (void)pthread_mutex_unlock(&thread->mutex);
        if (run_requests(store, requests))
            run_overdue(store);
        (void)pthread_mutex_lock(&thread->mutex);
    }
    (void)pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

int store_thread_start(struct store *store, struct error *err)
{
    struct store_thread *thread = &store->thread;
    int64_t page_bytes = 0;
    int r = store_sql_number(store->db, "PRAGMA page_size", &page_bytes, err);
    if (r < 0)
        return r;
    store->page_bytes = (int)page_bytes;
    _cleanup_close_ int prompt_eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (thread->eventfd < 0 || prompt_eventfd < 0)
        return error_set_errno(err, -errno, "cannot create an eventfd");
    thread->prompt_eventfd = take_fd(&prompt_eventfd);
    queue_init(&thread->requests);
    queue_init(&thread->answers);
    queue_init(&thread->pages);
    queue_init(&thread->left);
    (void)pthread_mutex_init(&thread->mutex, NULL);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&thread->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    r = -pthread_create(&thread->id, NULL, run, store);
    if (r == 0)
        return 0;
    (void)close(take_fd(&thread->eventfd));
    (void)close(take_fd(&thread->prompt_eventfd));
    return error_set_errno(err, r, "cannot start the store's thread");
}

void store_thread_stop(struct store *store)
{
    struct store_thread *thread = &store->thread;
    if (thread->eventfd < 0)
        return;
    store_verify_stop(store, false);
    (void)pthread_mutex_lock(&thread->mutex);
    thread->is_closing = true;
    (void)pthread_cond_signal(&thread->wake);
    (void)pthread_mutex_unlock(&thread->mutex);
    (void)pthread_join(thread->id, NULL);
    store_verify_stop(store, true);
    drop_all(&thread->answers);
    drop_all(&thread->pages);
    drop_all(&thread->left);
    (void)pthread_mutex_destroy(&thread->mutex);
    (void)pthread_cond_destroy(&thread->wake);
    (void)close(take_fd(&thread->eventfd));
    (void)close(take_fd(&thread->prompt_eventfd));
}

void store_thread_push(struct store *store, struct store_request *request)
{
    struct store_thread *thread = &store->thread;
    (void)pthread_mutex_lock(&thread->mutex);
    bool is_served = thread->health == STORE_WORKS && !thread->is_closing;
    queue_add(is_served ? &thread->requests : &thread->left, request);
    (void)pthread_cond_signal(&thread->wake);
    (void)pthread_mutex_unlock(&thread->mutex);
}

struct warning {
    struct store_request request;
    struct error text;
};

static void answer_warning(struct store *store, struct store_request *request)
{
    struct warning *warning = (struct warning *)request;
    if (store->observer.on_warning != NULL)
        store->observer.on_warning(store->observer.arg, &warning->text);
}

static const struct store_request_kind warning_kind = { .answer = answer_warning };

void store_thread_warn(struct store *store, const struct error *text)
{
    struct warning *warning = xcalloc(1, sizeof(*warning));
    warning->request.kind = &warning_kind;
    warning->text = *text;
    store_thread_answer(store, &warning->request);
}

int store_fd(const struct store *store)
{
    return store->thread.eventfd;
}

int store_prompt_fd(const struct store *store)
{
    return store->thread.prompt_eventfd;
}

static void deliver(struct store *store, struct store_request *answers)
{
    for (struct store_request *request = answers; request != NULL;) {
        struct store_request *next = request->next;
        if (request->kind->answer != NULL)
            request->kind->answer(store, request);
        free_request(request);
        request = next;
    }
}

void store_dispatch_prompt(struct store *store)
{
    struct store_thread *thread = &store->thread;
    uint64_t count = 0;
    (void)!read(thread->prompt_eventfd, &count, sizeof(count));
    (void)pthread_mutex_lock(&thread->mutex);
    struct store_request *answers = thread->answers.first;
    queue_init(&thread->answers);
    bool has_failed = thread->health == STORE_FAILED;
    if (has_failed)
        thread->health = STORE_DEAD;
    (void)pthread_mutex_unlock(&thread->mutex);
    deliver(store, answers);
    if (has_failed)
        store->observer.on_failed(store->observer.arg, thread->failed_batch, &thread->failure);
}

void store_dispatch(struct store *store)
{
    struct store_thread *thread = &store->thread;
    uint64_t count = 0;
    (void)!read(thread->eventfd, &count, sizeof(count));
    store_dispatch_prompt(store);
    (void)pthread_mutex_lock(&thread->mutex);
    struct store_request *pages = thread->pages.first;
    queue_init(&thread->pages);
    (void)pthread_mutex_unlock(&thread->mutex);
    deliver(store, pages);
}
