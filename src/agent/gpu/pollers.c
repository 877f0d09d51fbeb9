/* SPDX-License-Identifier: MIT */
/*
 * A turn is IDLE or BUSY. While it is BUSY its state belongs to the thread, otherwise to the reader.
 *
 *      IDLE ──a sample is due, or a check was requested──> BUSY ──the driver has answered──> IDLE, fresh
 *
 * A driver may serve callers one after the other, so a turn may end after the read that began it: the
 * descriptor then becomes readable, and the next read collects it. Turns that the reader waits for wake it
 * only once, at the last of them: a check wakes two threads, however many GPUs there are. A check requested
 * while the turn was BUSY is answered by the next turn. A turn that hangs stays BUSY and shows old values
 * until its GPU counts as lost.
 */
#include "agent/gpu/pollers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/gpu/report.h"
#include "base/memory.h"

#define WAIT_MS     80   // for all turns together: answers that arrive within it are one report
#define END_WAIT_MS 1000 // for slow turns, so that no call is interrupted

struct turn {
    struct gpu_pollers *turns;
    size_t i;
    pthread_t thread;
    pthread_cond_t begin;
    bool is_busy, is_full, is_fresh;
    bool is_awaited;  // the read that began it waits for it
    bool is_due;      // a full sample is due
    int64_t since_ms; // time on the page when it began, while it is busy
    uint64_t asked;   // number of the check requested for this GPU when it began
    struct gpu_state gpu;
};

struct gpu_pollers {
    const struct gpu_backend *backend;
    void *state;
    struct gpu_progress *page;
    int64_t silent_ms;
    int done_fd;          // readable: a turn has ended since the last read
    pthread_mutex_t lock; // protects everything except the states
    pthread_cond_t done;
    size_t n_awaited;
    bool is_signalled; // through done_fd
    bool is_over;
    struct turn *turns;
    size_t count;
};

static void signal_done(struct gpu_pollers *turns, struct turn *turn)
{
    if (!turn->is_awaited) {
        turns->is_signalled = true;
        (void)eventfd_write(turns->done_fd, 1);
        return;
    }
    turn->is_awaited = false;
    if (--turns->n_awaited == 0)
        (void)pthread_cond_signal(&turns->done);
}

static void *take_turns(void *arg)
{
    struct turn *turn = arg;
    (void)prctl(PR_SET_NAME, GPU_POLLER);
    struct gpu_pollers *turns = turn->turns;
    (void)pthread_mutex_lock(&turns->lock);
    for (;;) {
        while (!turn->is_busy && !turns->is_over)
            (void)pthread_cond_wait(&turn->begin, &turns->lock);
        if (turns->is_over)
            break;
        bool is_full = turn->is_full || turns->backend->look == NULL;
        (void)pthread_mutex_unlock(&turns->lock);
        (is_full ? turns->backend->sample : turns->backend->look)(turns->state, turn->i, &turn->gpu);
        (void)pthread_mutex_lock(&turns->lock);
        turn->is_busy = false;
        turn->is_fresh = true;
        gpu_progress_step(turns->page);
        signal_done(turns, turn);
    }
    (void)pthread_mutex_unlock(&turns->lock);
    return NULL;
}

static void free_turns(struct gpu_pollers *turns)
{
    for (size_t i = 0; i < turns->count; i++) {
        record_clear(&gpu_state_record, &turns->turns[i].gpu);
        (void)pthread_cond_destroy(&turns->turns[i].begin);
    }
    (void)pthread_cond_destroy(&turns->done);
    (void)pthread_mutex_destroy(&turns->lock);
    closep(&turns->done_fd);
    free(turns->turns);
    free(turns);
}

struct gpu_pollers *gpu_pollers_new(const struct gpu_backend *backend, void *state, struct gpu_progress *page,
    const struct record_list *gpus, int64_t silent_ms)
{
    pthread_condattr_t monotonic;
    int done_fd = gpus->count < 2 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (done_fd < 0)
        return NULL;
    struct gpu_pollers *turns = xcalloc(1, sizeof(*turns));
    turns->done_fd = done_fd;
    turns->page = page;
    turns->backend = backend;
    turns->state = state;
    turns->silent_ms = silent_ms;
    turns->turns = xcalloc(gpus->count, sizeof(*turns->turns));
    (void)pthread_mutex_init(&turns->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&turns->done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    for (size_t i = 0; i < gpus->count; i++) {
        struct turn *turn = &turns->turns[i];
        turn->turns = turns;
        turn->i = i;
        (void)pthread_cond_init(&turn->begin, NULL);
        record_copy(&gpu_state_record, &turn->gpu, (const struct gpu_state *)gpus->items + i);
        turns->count++;
        if (pthread_create(&turn->thread, NULL, take_turns, turn) == 0)
            continue;
        record_clear(&gpu_state_record, &turn->gpu);
        (void)pthread_cond_destroy(&turn->begin);
        turns->count--;
        (void)gpu_pollers_end(turns); // no turn is busy yet
        return NULL;
    }
    return turns;
}

static void await(struct gpu_pollers *turns, struct turn *turn)
{
    turns->n_awaited += !turn->is_awaited;
    turn->is_awaited = true;
}

static void begin(struct gpu_pollers *turns, bool is_full)
{
    int64_t now_ms = gpu_progress_time_ms(turns->page);
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = &turns->turns[i];
        uint64_t wanted = gpu_progress_wanted(turns->page, i);
        turn->is_due = turn->is_due || is_full;
        if (turn->is_busy || (!turn->is_due && turn->asked >= wanted))
            continue;
        turn->is_busy = true;
        turn->is_full = turn->is_due;
        turn->is_due = false;
        turn->asked = wanted;
        turn->since_ms = now_ms;
        await(turns, turn);
        (void)pthread_cond_signal(&turn->begin);
    }
}

/* False if some have not ended in time; the caller no longer waits for these. */
static bool wait_for_all(struct gpu_pollers *turns, int64_t ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    int r = 0;
    while (r != ETIMEDOUT && turns->n_awaited > 0)
        r = pthread_cond_timedwait(&turns->done, &turns->lock, &until);
    bool is_done = turns->n_awaited == 0;
    for (size_t i = 0; i < turns->count; i++)
        turns->turns[i].is_awaited = false;
    turns->n_awaited = 0;
    return is_done;
}

static void lose(struct gpu_state *gpu)
{
    gpu->is_lost = 1;
    gpu->valid = 0;
    gpu_processes_cut(&gpu->processes, 0);
    free(gpu->trouble);
    gpu->trouble = xstrdup("the driver does not respond to queries about it");
}

/* A GPU and its instances have the same key, and are lost together. */
static void lose_all_of(const struct gpu_pollers *turns, size_t i, struct gpu_state *states)
{
    const char *key = turns->backend->key(turns->state, i);
    for (size_t k = 0; k < turns->count; k++)
        if (k == i || strcmp(turns->backend->key(turns->state, k), key) == 0)
            lose(&states[k]);
}

/* Collects the results of turns that have ended; true if they answer a check. */
static bool collect(struct gpu_pollers *turns, struct gpu_state *gpus)
{
    eventfd_t ended;
    bool is_answer = false;
    if (turns->is_signalled)
        (void)eventfd_read(turns->done_fd, &ended);
    turns->is_signalled = false;
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = &turns->turns[i];
        if (turn->is_busy || !turn->is_fresh)
            continue;
        turn->is_fresh = false;
        is_answer = is_answer || turn->asked > gpus[i].answers;
        record_clear(&gpu_state_record, &gpus[i]);
        record_copy(&gpu_state_record, &gpus[i], &turn->gpu);
        gpus[i].answers = turn->asked;
    }
    return is_answer;
}

/* The turn that has been busy longest; NULL if one is idle. */
static const struct turn *find_oldest(const struct gpu_pollers *turns)
{
    const struct turn *oldest = NULL;
    for (size_t i = 0; i < turns->count; i++) {
        const struct turn *turn = &turns->turns[i];
        if (!turn->is_busy)
            return NULL;
        if (oldest == NULL || turn->since_ms < oldest->since_ms)
            oldest = turn;
    }
    return oldest;
}

bool gpu_pollers_read(struct gpu_pollers *turns, bool is_full, struct record_list *gpus)
{
    struct gpu_state *states = gpus->items;
    (void)pthread_mutex_lock(&turns->lock);
    bool is_answer = collect(turns, states);
    begin(turns, is_full);
    (void)wait_for_all(turns, WAIT_MS);
    is_answer = collect(turns, states) || is_answer;
    int64_t now_ms = gpu_progress_time_ms(turns->page);
    for (size_t i = 0; i < turns->count; i++)
        if (turns->turns[i].is_busy && now_ms - turns->turns[i].since_ms >= turns->silent_ms)
            lose_all_of(turns, i, states);
    const struct turn *oldest = find_oldest(turns);
    (void)pthread_mutex_unlock(&turns->lock);
    if (oldest == NULL)
        gpu_progress_enter(turns->page, NULL);
    else
        gpu_progress_hang(turns->page, turns->backend->key(turns->state, oldest->i));
    return is_answer;
}

int gpu_pollers_fd(const struct gpu_pollers *turns)
{
    return turns != NULL ? turns->done_fd : -1;
}

bool gpu_pollers_end(struct gpu_pollers *turns)
{
    if (turns == NULL)
        return true;
    (void)pthread_mutex_lock(&turns->lock);
    turns->is_over = true;
    for (size_t i = 0; i < turns->count; i++) {
        if (turns->turns[i].is_busy)
            await(turns, &turns->turns[i]);
        (void)pthread_cond_signal(&turns->turns[i].begin);
    }
    bool is_done = wait_for_all(turns, END_WAIT_MS);
    (void)pthread_mutex_unlock(&turns->lock);
    if (!is_done)
        return false;
    for (size_t i = 0; i < turns->count; i++)
        (void)pthread_join(turns->turns[i].thread, NULL);
    free_turns(turns);
    return true;
}
