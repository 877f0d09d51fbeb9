/* SPDX-License-Identifier: MIT */
/*
 * A turn is IDLE or BUSY. While it is BUSY its state is the thread's, else the reader's.
 *
 *      IDLE ──a sample is due, or a look was asked for──> BUSY ──the driver has answered──> IDLE, fresh
 *
 * A driver may serve one caller after the other, so a turn may end after the read that began it: the
 * descriptor then becomes readable, and the next read collects it. A look that was asked for while the turn
 * was BUSY is answered by the turn after it. A turn that hangs stays BUSY and shows old values until it
 * counts as lost.
 */
#include "agent/gpu/turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/gpu/report.h"
#include "base/clock.h"
#include "base/memory.h"

#define WAIT_MS     80   // for all turns together: answers that come in time are one report
#define END_WAIT_MS 1000 // for turns that are slow, so that no call is cut off

struct turn {
    struct gpu_turns *turns;
    size_t i;
    pthread_t thread;
    bool is_busy, is_full, is_fresh;
    bool is_due;      // a full sample is
    int64_t since_ms; // boot clock, while busy
    uint64_t asked;   // looks that had been asked for when it began
    struct gpu_state gpu;
};

struct gpu_turns {
    const struct gpu_backend *backend;
    void *state;
    struct gpu_stage *stage;
    int64_t silent_ms;
    int done_fd;          // readable: a turn has ended since the last read
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
        gpu_stage_step(turns->stage);
        (void)pthread_cond_signal(&turns->done);
        (void)eventfd_write(turns->done_fd, 1);
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
    closep(&turns->done_fd);
    free(turns->turns);
    free(turns);
}

struct gpu_turns *gpu_turns_new(const struct gpu_backend *backend, void *state, struct gpu_stage *stage,
    const struct record_list *gpus, int64_t silent_ms)
{
    pthread_condattr_t monotonic;
    int done_fd = gpus->count < 2 ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (done_fd < 0)
        return NULL;
    struct gpu_turns *turns = xcalloc(1, sizeof(*turns));
    turns->done_fd = done_fd;
    turns->stage = stage;
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

static void begin(struct gpu_turns *turns, bool is_full, uint64_t asked, bool *is_begun)
{
    int64_t now_ms = clock_boot_ms();
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = &turns->turns[i];
        turn->is_due = turn->is_due || is_full;
        is_begun[i] = !turn->is_busy && (turn->is_due || turn->asked < asked);
        if (!is_begun[i])
            continue;
        turn->is_busy = true;
        turn->is_full = turn->is_due;
        turn->is_due = false;
        turn->asked = asked;
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

static void wait_for_all(struct gpu_turns *turns, const bool *is_begun, int64_t ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000L;
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

/* Takes over what ended turns have read; true when it answers a look. */
static bool collect(struct gpu_turns *turns, struct gpu_state *gpus)
{
    eventfd_t ended;
    bool is_answer = false;
    (void)eventfd_read(turns->done_fd, &ended);
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

/* The turn that is busy for the longest time; NULL when one is not. */
static const struct turn *find_oldest(const struct gpu_turns *turns)
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

bool gpu_turns_read(struct gpu_turns *turns, bool is_full, uint64_t asked, struct record_list *gpus)
{
    struct gpu_state *states = gpus->items;
    bool is_begun[NODE_GPUS_MAX];
    (void)pthread_mutex_lock(&turns->lock);
    bool is_answer = collect(turns, states);
    begin(turns, is_full, asked, is_begun);
    wait_for_all(turns, is_begun, WAIT_MS);
    is_answer = collect(turns, states) || is_answer;
    int64_t now_ms = clock_boot_ms();
    for (size_t i = 0; i < turns->count; i++)
        if (turns->turns[i].is_busy && now_ms - turns->turns[i].since_ms >= turns->silent_ms)
            lose(&states[i]);
    const struct turn *oldest = find_oldest(turns);
    (void)pthread_mutex_unlock(&turns->lock);
    if (oldest == NULL)
        gpu_stage_enter(turns->stage, NULL);
    else
        gpu_stage_hang(turns->stage, turns->backend->key(turns->state, oldest->i));
    return is_answer;
}

int gpu_turns_fd(const struct gpu_turns *turns)
{
    return turns != NULL ? turns->done_fd : -1;
}

bool gpu_turns_end(struct gpu_turns *turns)
{
    bool is_any[NODE_GPUS_MAX];
    if (turns == NULL)
        return true;
    for (size_t i = 0; i < turns->count; i++)
        is_any[i] = true;
    (void)pthread_mutex_lock(&turns->lock);
    turns->is_over = true;
    wait_for_all(turns, is_any, END_WAIT_MS);
    bool is_hung = is_waited_for(turns, is_any);
    (void)pthread_cond_broadcast(&turns->begin);
    (void)pthread_mutex_unlock(&turns->lock);
    if (is_hung)
        return false;
    for (size_t i = 0; i < turns->count; i++)
        (void)pthread_join(turns->turns[i].thread, NULL);
    free_turns(turns);
    return true;
}
