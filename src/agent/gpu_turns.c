/* SPDX-License-Identifier: MIT */
/*
 * A turn is IDLE or BUSY. While it is BUSY its state is the thread's, else the reader's.
 *
 *      IDLE ──read──> BUSY ──the driver has answered──> IDLE, with something fresh
 *
 * A turn that hangs stays BUSY, is not waited for again, and shows what it knew until it counts as lost.
 */
#include "agent/gpu_turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "agent/gpu_report.h"
#include "base/clock.h"
#include "base/memory.h"

#define WAIT_MS 80 // for all of them together: whoever asked for a look waits so long for one that hangs

struct turn {
    struct gpu_turns *turns;
    size_t i;
    pthread_t thread;
    bool is_busy, is_full, is_fresh;
    int64_t since_ms; // boot clock, while busy
    struct gpu_state gpu;
};

struct gpu_turns {
    const struct gpu_backend *backend;
    void *state;
    int64_t silent_ms;
    pthread_mutex_t lock; // of everything but the states
    pthread_cond_t begin, done;
    bool is_over;
    struct turn *turns;
    size_t count;
};

static void *take_turns(void *arg)
{
    struct turn *turn = arg;
    struct gpu_turns *turns = turn->turns;
    (void)pthread_mutex_lock(&turns->lock);
    for (;;) {
        while (!turn->is_busy && !turns->is_over)
            (void)pthread_cond_wait(&turns->begin, &turns->lock);
        if (turns->is_over)
            break;
        bool is_full = turn->is_full || turns->backend->look == NULL;
        (void)pthread_mutex_unlock(&turns->lock);
        (is_full ? turns->backend->sample : turns->backend->look)(turns->state, turn->i, &turn->gpu);
        (void)pthread_mutex_lock(&turns->lock);
        turn->is_busy = false;
        turn->is_fresh = true;
        (void)pthread_cond_signal(&turns->done);
    }
    (void)pthread_mutex_unlock(&turns->lock);
    return NULL;
}

static void free_turns(struct gpu_turns *turns)
{
    for (size_t i = 0; i < turns->count; i++)
        record_clear(&gpu_state_record, &turns->turns[i].gpu);
    (void)pthread_cond_destroy(&turns->begin);
    (void)pthread_cond_destroy(&turns->done);
    (void)pthread_mutex_destroy(&turns->lock);
    free(turns->turns);
    free(turns);
}

struct gpu_turns *gpu_turns_new(
    const struct gpu_backend *backend, void *state, const struct record_list *gpus, int64_t silent_ms)
{
    pthread_condattr_t monotonic;
    if (gpus->count < 2)
        return NULL;
    struct gpu_turns *turns = xcalloc(1, sizeof(*turns));
    turns->backend = backend;
    turns->state = state;
    turns->silent_ms = silent_ms;
    turns->turns = xcalloc(gpus->count, sizeof(*turns->turns));
    (void)pthread_mutex_init(&turns->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&turns->begin, NULL);
    (void)pthread_cond_init(&turns->done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    for (size_t i = 0; i < gpus->count; i++) {
        struct turn *turn = &turns->turns[i];
        turn->turns = turns;
        turn->i = i;
        record_copy(&gpu_state_record, &turn->gpu, (const struct gpu_state *)gpus->items + i);
        turns->count++;
        if (pthread_create(&turn->thread, NULL, take_turns, turn) == 0)
            continue;
        record_clear(&gpu_state_record, &turn->gpu);
        turns->count--;
        (void)gpu_turns_end(turns); // none is busy yet
        return NULL;
    }
    return turns;
}

static void begin(struct gpu_turns *turns, bool is_full, bool *is_begun)
{
    int64_t now_ms = clock_boot_ms();
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = &turns->turns[i];
        is_begun[i] = !turn->is_busy;
        if (turn->is_busy)
            continue;
        turn->is_busy = true;
        turn->is_full = is_full;
        turn->since_ms = now_ms;
    }
    (void)pthread_cond_broadcast(&turns->begin);
}

static bool is_waited_for(const struct gpu_turns *turns, const bool *is_begun)
{
    for (size_t i = 0; i < turns->count; i++)
        if (is_begun[i] && turns->turns[i].is_busy)
            return true;
    return false;
}

static void wait_for_all(struct gpu_turns *turns, const bool *is_begun)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int r = 0;
    while (r != ETIMEDOUT && is_waited_for(turns, is_begun))
        r = pthread_cond_timedwait(&turns->done, &turns->lock, &until);
}

static void lose(struct gpu_state *gpu)
{
    gpu->is_lost = 1;
    gpu->valid = 0;
    gpu_processes_cut(&gpu->processes, 0);
    free(gpu->trouble);
    gpu->trouble = xstrdup("the driver does not answer when it is asked about it");
}

static void refresh(const struct gpu_turns *turns, struct turn *turn, struct gpu_state *gpu, int64_t now_ms)
{
    if (turn->is_busy && now_ms - turn->since_ms >= turns->silent_ms)
        lose(gpu);
    if (turn->is_busy || !turn->is_fresh)
        return;
    turn->is_fresh = false;
    record_clear(&gpu_state_record, gpu);
    record_copy(&gpu_state_record, gpu, &turn->gpu);
}

const char *gpu_turns_read(struct gpu_turns *turns, bool is_full, struct record_list *gpus)
{
    struct gpu_state *states = gpus->items;
    bool is_begun[NODE_GPUS_MAX];
    size_t n_busy = 0;
    const struct turn *oldest = NULL;
    (void)pthread_mutex_lock(&turns->lock);
    begin(turns, is_full, is_begun);
    wait_for_all(turns, is_begun);
    int64_t now_ms = clock_boot_ms();
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = &turns->turns[i];
        refresh(turns, turn, &states[i], now_ms);
        n_busy += turn->is_busy;
        if (turn->is_busy && (oldest == NULL || turn->since_ms < oldest->since_ms))
            oldest = turn;
    }
    (void)pthread_mutex_unlock(&turns->lock);
    return oldest != NULL && n_busy == turns->count ? turns->backend->key(turns->state, oldest->i) : NULL;
}

bool gpu_turns_end(struct gpu_turns *turns)
{
    bool is_hung = false;
    if (turns == NULL)
        return true;
    (void)pthread_mutex_lock(&turns->lock);
    turns->is_over = true;
    for (size_t i = 0; i < turns->count; i++)
        is_hung = is_hung || turns->turns[i].is_busy;
    (void)pthread_cond_broadcast(&turns->begin);
    (void)pthread_mutex_unlock(&turns->lock);
    if (is_hung)
        return false;
    for (size_t i = 0; i < turns->count; i++)
        (void)pthread_join(turns->turns[i].thread, NULL);
    free_turns(turns);
    return true;
}
